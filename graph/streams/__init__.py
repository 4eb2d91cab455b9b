"""The stream of a table: what was written to it, by whomever, and all that follows from it."""
