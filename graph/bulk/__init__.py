"""Many items at once: records and items taken in and checked, items written as records, and batches sent side by side."""
