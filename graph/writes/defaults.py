"""What a field is when a write does not say."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from graph.model import Field, ItemType
from graph.scalars import DATE_TIME, date_time_text, date_time_to_epoch


def initial(type_: ItemType, entry: Field, now: datetime) -> Any:
    """Give the value that a field of a new item has when nobody gives one."""
    if entry.name == type_.version:
        return 1
    if entry.count is not None:
        return 0
    if entry.default is None:
        return None
    return str(uuid.uuid4()) if entry.default.uuid else moment(entry, now)


def moment(entry: Field, now: datetime) -> Any:
    """Write the time as a field keeps it: as a date and time, a date, or seconds since 1970."""
    text = date_time_text(now)
    if entry.scalar is not None and entry.scalar.numeric:
        return date_time_to_epoch(text)
    return text if entry.scalar is DATE_TIME else text[:10]
