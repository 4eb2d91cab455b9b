"""From the items of a table to what they are: kinds of values, shapes of keys, groups, and who names whom."""
