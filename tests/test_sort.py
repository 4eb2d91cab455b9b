"""Ranges of sort keys, of one attribute and of several: what they hold, and the key conditions that say it."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.expressions import AllOf, Between, Compare, Condition, Function, holds
from graph.keys import AFTER_ALL
from graph.sort import SortKey, SortRange, just_above, just_below
from tests.memory import refuse_sort
from tests.strategies import DECIMALS

NAMES = ("k", "l", "m")


@pytest.mark.parametrize(
    ("sort", "condition"),
    [
        pytest.param(SortRange(), None, id="whole-partition"),
        pytest.param(SortRange.beginning(""), None, id="beginning-with-nothing"),
        pytest.param(SortRange.beginning("a"), Function("begins_with", "k", ("S", "a")), id="prefix"),
        pytest.param(SortRange.exactly("a"), Compare("k", "=", ("S", "a")), id="one-value"),
        pytest.param(SortRange.exactly(Decimal("1.0")), Compare("k", "=", ("N", "1")), id="one-number"),
        pytest.param(SortRange(("a",), ("b",)), Between("k", ("S", "a"), ("S", "b")), id="closed"),
        pytest.param(SortRange(low=("a",)), Compare("k", ">=", ("S", "a")), id="from"),
        pytest.param(SortRange(high=("a",)), Compare("k", "<=", ("S", "a")), id="to"),
        pytest.param(SortRange(low=(Decimal(1),)), Compare("k", ">=", ("N", "1")), id="from-a-number"),
        pytest.param(
            SortRange.beginning("a").from_(("a3",)), Between("k", ("S", "a3"), ("S", "a" + AFTER_ALL)), id="prefix-from"
        ),
        pytest.param(SortRange.beginning("a").to(("a3",)), Between("k", ("S", "a"), ("S", "a3")), id="prefix-to"),
        pytest.param(
            SortRange.beginning("a").from_(("a",)),
            Function("begins_with", "k", ("S", "a")),
            id="prefix-from-its-beginning",
        ),
        pytest.param(
            SortRange.beginning("a").to(("a" + AFTER_ALL,)),
            Function("begins_with", "k", ("S", "a")),
            id="prefix-to-its-end",
        ),
        pytest.param(
            SortRange.beginning("a").from_(("A",)), Function("begins_with", "k", ("S", "a")), id="prefix-from-before-it"
        ),
        pytest.param(
            SortRange.beginning("a").to(("b",)), Function("begins_with", "k", ("S", "a")), id="prefix-to-behind-it"
        ),
        pytest.param(SortRange().from_(("a",)).to(("a",)), Compare("k", "=", ("S", "a")), id="from-and-to-the-same"),
        pytest.param(
            SortRange.exactly("a", Decimal(1)),
            AllOf((Compare("k", "=", ("S", "a")), Compare("l", "=", ("N", "1")))),
            id="equal-values-from-left-to-right",
        ),
        pytest.param(
            SortRange.beginning("b").behind(("a",)),
            AllOf((Compare("k", "=", ("S", "a")), Function("begins_with", "l", ("S", "b")))),
            id="a-prefix-behind-a-value",
        ),
        pytest.param(
            SortRange(("a", "b", "c"), ("a", "b")),
            AllOf((Compare("k", "=", ("S", "a")), Compare("l", "=", ("S", "b")), Compare("m", ">=", ("S", "c")))),
            id="from-behind-two-values",
        ),
        pytest.param(
            SortRange(("a", "b"), ("a", "c")),
            AllOf((Compare("k", "=", ("S", "a")), Between("l", ("S", "b"), ("S", "c")))),
            id="closed-behind-a-value",
        ),
    ],
)
def test_range_is_written_as(sort: SortRange, condition: Condition | None) -> None:
    assert sort.condition(["k", "l", "m"]) == condition


# --- what lies in a range -----------------------------------------------------------------------------------------

TEXTS = st.text("abc", min_size=1, max_size=2)
LETTERS = ("a", "ab", "b", "bc", "c")
UNIVERSE: dict[int, list[SortKey]] = {size: list(product(LETTERS, repeat=size)) for size in (1, 2, 3)}
SIZES = st.integers(1, 3)


def keys(most: int, least: int = 0) -> st.SearchStrategy[SortKey]:
    """Draw a sort key, or the first values of one."""
    return st.lists(TEXTS, min_size=least, max_size=most).map(tuple)


def ranges(size: int) -> st.SearchStrategy[SortRange]:
    """Draw ranges of sort keys of some attributes: any, and those that a key condition can say."""
    prefixes = st.builds(lambda before, prefix: SortRange.beginning(prefix).behind(before), keys(size - 1), TEXTS)
    return st.builds(SortRange, keys(size), keys(size)) | prefixes | keys(size).map(lambda key: SortRange.exactly(*key))


def inside(sort: SortRange, size: int) -> list[SortKey]:
    """List the keys of the universe in a range, in order, by what a closed range of their first values is."""
    return [
        key
        for key in UNIVERSE[size]
        if sort.low <= key[: len(sort.low)] and (not sort.high or key[: len(sort.high)] <= sort.high)
    ]


def found(sort: SortRange, size: int) -> list[SortKey]:
    """List the keys of the universe that DynamoDB finds by the key condition of a piece."""
    condition = sort.condition(NAMES[:size])
    refuse_sort(condition, NAMES[:size])
    items = [(key, {name: {"S": value} for name, value in zip(NAMES, key, strict=False)}) for key in UNIVERSE[size]]
    return [key for key, item in items if condition is None or holds(condition, item)]


@given(st.data(), SIZES)
def test_range_contains_what_the_conditions_of_its_pieces_find_in_order(data: st.DataObject, size: int) -> None:
    sort = data.draw(ranges(size))

    pieces = [] if sort.empty else sort.pieces()

    assert [key for piece in pieces for key in found(piece, size)] == inside(sort, size)
    assert [key for key in UNIVERSE[size] if sort.contains(key)] == inside(sort, size)
    assert len(pieces) < 2 * size or size == 1
    assert all(one.is_below(later.low) for one, later in pairwise(pieces))


@given(st.data(), SIZES)
def test_narrowed_range_holds_what_is_in_both(data: st.DataObject, size: int) -> None:
    sort, bound = data.draw(ranges(size)), data.draw(keys(size, 1))

    assert inside(sort.from_(bound), size) == [key for key in inside(sort, size) if key[: len(bound)] >= bound]
    assert inside(sort.to(bound), size) == [key for key in inside(sort, size) if key[: len(bound)] <= bound]


@given(st.data(), SIZES)
def test_neighbours_close_the_range_beside_a_key(data: st.DataObject, size: int) -> None:
    sort, bound = SortRange(), data.draw(keys(size, 1))

    above, below = sort.from_(just_above(bound)), sort.to(just_below(bound))

    assert inside(above, size) == [key for key in UNIVERSE[size] if key[: len(bound)] > bound]
    assert inside(below, size) == [key for key in UNIVERSE[size] if key[: len(bound)] < bound]


@given(low=DECIMALS, high=DECIMALS)
def test_range_is_empty_when_its_ends_cross(low: Decimal, high: Decimal) -> None:
    assert SortRange((low,), (high,)).empty == (low > high)
    assert SortRange().from_((low,)).to((high,)).empty == (low > high)
    assert not SortRange(low=(low,)).empty


@given(st.data(), SIZES)
def test_range_that_holds_another_contains_all_of_it(data: st.DataObject, size: int) -> None:
    one, other = data.draw(ranges(size)), data.draw(ranges(size))

    assert not one.holds(other) or other.empty or set(inside(other, size)) <= set(inside(one, size))
    assert one.holds(one)


@given(st.data(), SIZES)
def test_range_around_others_holds_each_and_begins_and_ends_with_one(data: st.DataObject, size: int) -> None:
    drawn = data.draw(st.lists(ranges(size).filter(lambda sort: not sort.empty), min_size=1, max_size=4))

    around = SortRange.around(drawn)

    assert all(around.holds(one) for one in drawn)
    assert around.low in {one.low for one in drawn}
    assert around.high in {one.high for one in drawn}


@given(st.data(), SIZES)
def test_range_is_below_a_key_when_nothing_in_it_reaches_that(data: st.DataObject, size: int) -> None:
    sort, key = data.draw(ranges(size)), data.draw(keys(size, 1))

    assert not sort.is_below(key) or all(one[: len(key)] < key for one in inside(sort, size))
    assert not sort.high or sort.is_below(just_above(sort.high))


@given(st.data(), SIZES)
def test_ranges_meet_unless_one_ends_before_the_other_begins(data: st.DataObject, size: int) -> None:
    drawn = ranges(size).filter(lambda sort: not sort.empty)
    one, later = sorted((data.draw(drawn), data.draw(drawn)), key=lambda sort: sort.low)

    assert one.meets(later) or not set(inside(one, size)) & set(inside(later, size))
