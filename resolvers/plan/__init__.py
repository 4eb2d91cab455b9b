"""Compiled plans: a document becomes, once, steps of reads and writers of JSON, which every later request only runs.

document.py chooses the operation and collects its fields, compiler.py turns them into the steps of items.py,
connections.py and roots.py, which read level by level: all objects of a selection side by side, their leaves column by
column straight from the wire items. values.py completes what is read, failures.py keeps what went wrong.
"""
