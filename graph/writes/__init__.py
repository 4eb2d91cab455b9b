"""Writes: from what a mutation asks for to one transaction that leaves the graph right."""
