"""Full-text search: an index of the texts of nodes, kept beside the table, which holds no more than their keys."""
