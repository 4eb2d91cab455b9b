"""What a sample says of the whole: a share, and how wrong it may be.

Segments are drawn, not items: those of a partition lie in one segment, and items that lie together are alike. So the
error is that of a ratio between segments (W. G. Cochran, "Sampling Techniques", ratio estimates).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

T_QUANTILES = ((1, 12.71), (2, 4.30), (3, 3.18), (4, 2.78), (5, 2.57), (7, 2.36), (10, 2.23), (15, 2.13), (30, 2.04))
"""Student's t for 95 %, by degrees of freedom; 1.96 beyond."""
LEAST_HITS = 5
"""In fewer segments than these the error cannot be told: the share may be up to all that was not seen."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a whole, and the bounds within which it lies in 19 of 20 samples."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.value:.1%}"
        return f"{self.value:.1%} ({self.low:.1%} to {self.high:.1%})"

    def as_json(self) -> dict[str, float]:
        """Give the share for a program."""
        return {"share": round(self.value, 4), "low": round(self.low, 4), "high": round(self.high, 4)}


def share_of(segments: Sequence[tuple[float, float]], read: float) -> Share:
    """Estimate a share from segments: of each, how much belongs to it and how much there is.

    `read` is which part of the table the segments are; of a whole table the share is exact.
    """
    part, whole = sum(one for one, _ in segments), sum(all_ for _, all_ in segments)
    if not whole:
        return Share(0.0, 0.0, 1.0 - read)
    value = part / whole
    if read >= 1.0:
        return Share(value, value, value)
    count = len(segments)
    # What was seen is there, and what was not seen may be anything.
    least, most = value * read, 1.0 - (1.0 - value) * read
    if count < 2 or sum(1 for one, _ in segments if one) < LEAST_HITS:
        return Share(value, least, most)
    scatter = sum((one - value * all_) ** 2 for one, all_ in segments) / (count - 1)
    error = sqrt((1.0 - read) * scatter / count) / (whole / count)
    reach = _quantile(count - 1) * error
    return Share(value, max(least, value - reach), min(most, value + reach))


def _quantile(freedom: int) -> float:
    return (
        next((quantile for most, quantile in reversed(T_QUANTILES) if most <= freedom), 1.96) if freedom < 60 else 1.96
    )
