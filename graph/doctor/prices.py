"""What DynamoDB charges, at list price; nothing here knows of discounts, reserved capacity or the free tier."""

from __future__ import annotations

GB = 10**9
"""AWS counts a GB of storage as 2^30 bytes; the difference is less than that between regions."""
STORAGE_USD = 0.25
"""A GB for a month, in a table of the standard class."""
READ_USD = 0.125 / 1_000_000
"""A read unit, billed by request."""
WRITE_USD = 0.625 / 1_000_000
"""A write unit, billed by request."""
SOURCE = "at list price: us-east-1, standard class"
PRICES_AS_OF = "2026-11"
"""When these were the prices."""


def monthly(size_bytes: float) -> float:
    """Give the price of storing so many bytes for a month, in US dollars."""
    return size_bytes / GB * STORAGE_USD


def dollars(amount: float) -> str:
    """Write an amount for a person, down to what a handful of reads costs."""
    return f"${amount:,.2f}" if amount >= 0.01 else f"${amount:.6f}"


def storage(size_bytes: float) -> str:
    """Write what storing so many bytes costs."""
    return f"{dollars(monthly(size_bytes))} a month for storage ({SOURCE})"


def shown_bytes(size_bytes: float) -> str:
    """Write a number of bytes for a person."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:,.1f} {unit}"
    return f"{size_bytes:,.0f} bytes"
