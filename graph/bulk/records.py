"""A record as the items of its type: values by the model's field names, checked, completed and written."""

from __future__ import annotations
