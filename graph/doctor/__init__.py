"""A table examined: how it differs from its model, what it costs for nothing, and what will fail as it grows."""
