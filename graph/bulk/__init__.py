"""Many items at once: records and items taken in, items written as records, batches sent side by side."""
