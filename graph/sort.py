"""Sort keys, ranges of them and their neighbours: a sort key is the values of an index's sort attributes, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import reduce

from graph.expressions import AllOf, Between, Compare, Condition, Function, Value, value_of
from graph.keys import AFTER_ALL, KeyValue
from graph.requests import key_attribute

SortKey = tuple[KeyValue, ...]
"""The values of an index's sort attributes, or of the first ones: a shorter key stands for all that go on like it."""


@dataclass(frozen=True, slots=True)
class SortRange:
    """A closed range of sort keys; an end without values is open.

    `prefix` is there where the last value of the range is exactly the texts that begin so.
    """

    low: SortKey = ()
    high: SortKey = ()
    prefix: str | None = None

    @staticmethod
    def beginning(prefix: str) -> SortRange:
        """Make the range of all keys whose first value is a text with this prefix."""
        return SortRange((prefix,), (prefix + AFTER_ALL,), prefix) if prefix else SortRange()

    @staticmethod
    def exactly(*values: KeyValue) -> SortRange:
        """Make the range of the keys that begin with these values."""
        return SortRange(values, values)

    def behind(self, before: SortKey) -> SortRange:
        """Make the range of keys that go on like those of this one, behind other values."""
        return SortRange((*before, *self.low), (*before, *self.high), self.prefix)

    def from_(self, low: SortKey) -> SortRange:
        """Narrow the range to start at `low`."""
        return self if low <= self.low else SortRange(low, self.high)

    def to(self, high: SortKey) -> SortRange:
        """Narrow the range to end at `high`."""
        return self if _ends_within(self.high, high) else SortRange(self.low, high)

    @staticmethod
    def around(ranges: Sequence[SortRange]) -> SortRange:
        """Make the least range that holds all of these."""
        return SortRange(min(one.low for one in ranges), reduce(_later_end, (one.high for one in ranges)))

    def holds(self, other: SortRange) -> bool:
        """Say whether another range lies within this one."""
        return self.low <= other.low and _ends_within(other.high, self.high)

    def contains(self, key: SortKey) -> bool:
        """Say whether a sort key lies in the range."""
        return self.holds(SortRange(key, key))

    def is_below(self, key: SortKey) -> bool:
        """Say whether the range ends before a sort key."""
        return _is_before(self.high, key)

    def meets(self, later: SortRange) -> bool:
        """Say whether a range that starts no sooner than this one starts before this one ends."""
        return not _is_before(self.high, later.low)

    @property
    def empty(self) -> bool:
        """Say whether nothing can lie in the range: no key holds an empty text."""
        return _is_before(self.high, self.low) or self.high[-1:] == ("",)

    def pieces(self) -> tuple[SortRange, ...]:
        """Split the range into the fewest that a key condition can say, in their order.

        A key condition says equal values, and one range behind them. What lies from (a, b) to (c, d) takes three: the
        rest of a from b on, all between a and c, and c up to d.
        """
        depth = len(_common(self.low, self.high)) + 1
        if max(len(self.low), len(self.high)) <= depth:
            return (self,)
        return tuple(piece for piece in self._pieces(depth) if not piece.empty)

    def _pieces(self, depth: int) -> Iterator[SortRange]:
        lows = [self.low, *(just_above(self.low[:size]) for size in range(len(self.low) - 1, depth - 1, -1))]
        highs = [self.high, *(just_below(self.high[:size]) for size in range(len(self.high) - 1, depth - 1, -1))]
        yield from (SortRange(low, low[:-1]) for low in lows[:-1])
        yield SortRange(lows[-1], highs[-1])
        yield from (SortRange(high[:-1], high) for high in reversed(highs[:-1]))

    def condition(self, attributes: Sequence[str]) -> Condition | None:
        """Make the key condition on the sort attributes, or None when the whole partition is meant.

        The range is one piece: see `pieces`.
        """
        same = _common(self.low, self.high)
        tests: list[Condition] = [Compare(name, "=", _value(one)) for name, one in zip(attributes, same, strict=False)]
        if (last := self._last(attributes, len(same))) is not None:
            tests.append(last)
        return AllOf(tuple(tests)) if len(tests) > 1 else tests[0] if tests else None

    def _last(self, attributes: Sequence[str], place: int) -> Condition | None:
        """Make the condition on the attribute behind the equal values."""
        if self.prefix is not None:
            return Function("begins_with", attributes[place], _value(self.prefix))
        low, high = ([_value(one) for one in end[place:]] for end in (self.low, self.high))
        if low and high:
            return Between(attributes[place], low[0], high[0])
        if low:
            return Compare(attributes[place], ">=", low[0])
        return Compare(attributes[place], "<=", high[0]) if high else None


def _value(value: KeyValue) -> Value:
    return value_of(key_attribute(value))


def _common(one: SortKey, other: SortKey) -> SortKey:
    size = next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    return one[: min(len(one), len(other)) if size is None else size]


def _is_before(one: SortKey, other: SortKey) -> bool:
    """Say whether all keys that go on like one lie before all that go on like the other."""
    size = min(len(one), len(other))
    return one[:size] < other[:size]


def _ends_within(one: SortKey, other: SortKey) -> bool:
    """Say whether a range that ends at one ends no later than a range that ends at the other."""
    size = min(len(one), len(other))
    return (one[:size], len(other)) <= (other[:size], len(one))


def _later_end(one: SortKey, other: SortKey) -> SortKey:
    """Give the later of the ends of two ranges."""
    return other if _ends_within(one, other) else one


# --- neighbours ---------------------------------------------------------------------------------------------------

_LEAST = Decimal("1E-130")
STORED = Context(prec=38)


def just_above(key: SortKey) -> SortKey:
    """Give the least sort key above all that go on like this one."""
    return (*key[:-1], value_above(key[-1]))


def just_below(key: SortKey) -> SortKey:
    """Give what closes the range of all sort keys below this one."""
    return (*key[:-1], value_below(key[-1]))


def value_above(value: KeyValue) -> KeyValue:
    """Give the least value above this one: of numbers with the 38 digits that DynamoDB stores."""
    if isinstance(value, str):
        return value + "\x00"
    return STORED.next_plus(value) if value else _LEAST


def value_below(value: KeyValue) -> KeyValue:
    """Give what closes the range of all values below this one, as AFTER_ALL does behind a prefix."""
    if not isinstance(value, str):
        return Decimal(value_above(value.copy_negate())).copy_negate()  # a minus sign would round to 28 digits
    head, last = value[:-1], ord(value[-1])
    if last == 0:
        return head
    # Between U+D7FF and U+E000 there are no letters.
    return head + chr(0xD7FF if last == 0xE000 else last - 1) + AFTER_ALL
