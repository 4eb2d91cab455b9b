"""Time series: a table for each year, month or day, whose name says which."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, timedelta

from graph.bounds import Bound
from graph.errors import InputError
from graph.scalars import instant

FORMATS = {"yyyy": "%Y", "yyyyMM": "%Y%m", "yyyyMMdd": "%Y%m%d"}
MOST_PERIODS = 100


@dataclass(frozen=True, slots=True)
class Period:
    """What a table's name says: `events_{time:yyyyMM}` is the month of the field `time`, between two literals."""

    field: str
    format: str
    before: str
    after: str

    def name(self, moment: str) -> str:
        """Name the table that holds a moment."""
        return f"{self.before}{_day(moment).strftime(FORMATS[self.format])}{self.after}"

    def names_table(self, name: str) -> bool:
        """Say whether a name is that of one of the tables."""
        return name.startswith(self.before) and name.endswith(self.after)

    def names(self, bound: Bound | None) -> tuple[str, ...]:
        """Name the tables that a bound reaches, oldest first. Raises InputError when it is open or reaches too many."""
        if bound is not None and bound.values is not None:
            return tuple(sorted({self.name(value) for value in bound.values}))
        if bound is None or bound.low is None or bound.high is None:
            raise InputError(
                f"there is a table for each {self.format} of `{self.field}`: expected both ends of a range of it, so "
                "that the tables to read are known"
            )
        names: list[str] = []
        day, last = _day(bound.low), _day(bound.high)
        while day <= last:
            name = self.name(day.isoformat())
            if not names or names[-1] != name:
                names.append(name)
            if len(names) > MOST_PERIODS:
                raise InputError(
                    f"the range of `{self.field}` reaches more than {MOST_PERIODS} tables, one for each "
                    f"{self.format}: expected a shorter one"
                )
            day += timedelta(days=1)
        return tuple(names)


def _day(moment: str) -> date:
    """Take the day in UTC of a date, or of a date and time."""
    return date.fromisoformat(moment) if len(moment) == 10 else instant(moment).astimezone(UTC).date()
