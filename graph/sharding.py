"""How many shards a partition needs that is read faster than DynamoDB gives one."""

from __future__ import annotations

from math import ceil, floor

from graph.sizes import READ_UNIT_BYTES

PARTITION_READ_UNITS = 3000
"""What one partition gives in a second. Source: DynamoDB Developer Guide, "Designing partition keys"."""


def shards_needed(items: float, size_bytes: float) -> float:
    """Compute N = items read at once / items that one partition gives a second. Source: AWS, write sharding of GSIs."""
    # A read unit gives several small items, or a part of a large one.
    per_unit = floor(READ_UNIT_BYTES / size_bytes) or 1 / ceil(size_bytes / READ_UNIT_BYTES)
    return items / (PARTITION_READ_UNITS * per_unit)
