"""Maintenance: a whole table is compared with what the mutations would have written, and mended."""
