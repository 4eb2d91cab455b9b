"""Cursors: they carry a position there and back, and everything else is refused with CursorError, never otherwise."""

from __future__ import annotations

import base64
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.cursor import Issuer, Position, fingerprint, is_key_position, read_cursor, write_cursor, write_cursors
from graph.errors import CursorError
from graph.filters import Every, Never, Some, Test
from graph.scalars import DATE_TIME, DECIMAL, STRING, number_text
from tests.strategies import DECIMALS, JSON_VALUES, STATUS, TEXTS

ROOT = Path(__file__).parent.parent
NAME = fingerprint("Container", "pallets", "009998")
CONNECTION = Issuer(NAME)

VALUES = TEXTS | DECIMALS
POSITIONS: st.SearchStrategy[Any] = st.recursive(
    st.lists(VALUES | st.integers(0, 2**31), max_size=4).map(tuple),
    lambda inner: st.tuples(st.integers(0, 100), inner) | st.tuples(inner, inner),
    max_leaves=5,
)


def raw(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def forged(content: Any) -> str:
    return raw(orjson.dumps(content))


def spelled(position: Any) -> Any:
    """Tell 0 from Decimal(0), which are equal, and not 10 from 1E+1."""
    if isinstance(position, tuple):
        return tuple(map(spelled, position))
    return f"N {number_text(position)}" if isinstance(position, Decimal) else position


@given(POSITIONS)
def test_position_comes_back_whole(position: Position) -> None:
    back = read_cursor(write_cursor(position, CONNECTION), CONNECTION, "after")

    assert back == position
    assert list(map(type, back)) == list(map(type, position))


@given(one=POSITIONS, other=POSITIONS)
def test_distinct_positions_have_distinct_cursors(one: Position, other: Position) -> None:
    assert (write_cursor(one, CONNECTION) == write_cursor(other, CONNECTION)) == (spelled(one) == spelled(other))


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=40)))
def test_cursors_written_together_are_those_written_one_by_one(texts: list[str]) -> None:
    assert write_cursors(texts, CONNECTION) == [write_cursor((text,), CONNECTION) for text in texts]


def test_equal_numbers_have_one_cursor() -> None:
    assert write_cursor((Decimal("1.50"),), CONNECTION) == write_cursor((Decimal("1.5"),), CONNECTION)


@given(position=POSITIONS, other=TEXTS)
def test_cursor_of_another_connection_is_refused(position: Position, other: str) -> None:
    cursor = write_cursor(position, Issuer(fingerprint(other)))

    with pytest.raises(CursorError, match="the cursor given as `before` belongs to another connection") as refused:
        read_cursor(cursor, CONNECTION, "before")

    assert refused.value.extensions == {"code": "BAD_CURSOR"}


GENUINE = write_cursor(("PALLET_B021002",), CONNECTION)


@pytest.mark.parametrize(
    "cursor",
    [
        pytest.param("", id="empty"),
        pytest.param("x", id="one-letter"),
        pytest.param("{}", id="json"),
        pytest.param("MQ==", id="offset-of-another-server"),
        pytest.param("é" * 8, id="not-ascii"),
        pytest.param(GENUINE[:-1], id="one-letter-short"),
        pytest.param(GENUINE[: len(GENUINE) // 2], id="half"),
        pytest.param(GENUINE + "A", id="one-letter-more"),
        pytest.param(GENUINE + "=", id="padded"),
        pytest.param(" " + GENUINE, id="space-before"),
        pytest.param(GENUINE + "\n", id="line-end-behind"),
        pytest.param(GENUINE.replace("_", "/"), id="the-other-alphabet") if "_" in GENUINE else "/w",
        pytest.param(raw(b'[1, "c", []]'), id="spaces-in-the-json"),
        pytest.param(raw(b'[1,"c",["\\u0061"]]'), id="escapes-in-the-json"),
        pytest.param(raw(b'[1,"c",["\xff"]]'), id="not-utf-8"),
        pytest.param(raw(b'[1,"c",["\\ud800"]]'), id="lone-surrogate"),
        pytest.param(raw(b'[1,"c",[1.0]]'), id="float"),
        pytest.param(raw(b'[1.0,"c",[]]'), id="version-as-float"),
        pytest.param(raw(b'[true,"c",[]]'), id="version-as-boolean"),
        pytest.param(forged([2, NAME, ["x"]]), id="another-version"),
        pytest.param(forged([1, NAME]), id="no-position"),
        pytest.param(forged([1, NAME, ["x"], 0]), id="more-than-a-position"),
        pytest.param(forged({"1": 1, "2": 2, "3": []}), id="object"),
        pytest.param(forged("abc"), id="text-of-three-letters"),
        pytest.param(forged(None), id="null"),
        pytest.param(forged([1, NAME, "x"]), id="position-as-text"),
        pytest.param(forged([1, NAME, {"N": "1"}]), id="position-as-number"),
        pytest.param(forged([1, NAME, [None]]), id="null-in-the-position"),
        pytest.param(forged([1, NAME, [True]]), id="boolean-in-the-position"),
        pytest.param(forged([1, NAME, [{}]]), id="number-without-digits"),
        pytest.param(forged([1, NAME, [{"N": 1}]]), id="number-as-number"),
        pytest.param(forged([1, NAME, [{"N": ["1"]}]]), id="number-as-list"),
        pytest.param(forged([1, NAME, [{"N": "1", "X": 1}]]), id="number-with-more"),
        pytest.param(forged([1, NAME, [{"N": "1.0"}]]), id="number-with-a-needless-zero"),
        pytest.param(forged([1, NAME, [{"N": "1_0"}]]), id="number-with-underscore"),
        pytest.param(forged([1, NAME, [{"N": "NaN"}]]), id="nan"),
        pytest.param(forged([1, NAME, [{"N": "1e999999999"}]]), id="exponent-that-would-fill-the-memory"),
        pytest.param(raw(b'[1,"c",' + b"[" * 900 + b"]" * 900 + b"]"), id="nested-deeper-than-python-goes"),
        pytest.param(raw(b"[" * 100_000), id="nested-deeper-than-json-goes"),
        pytest.param(raw(b"[1," + b"[" * 900 + b"]" * 900 + b",[]]"), id="nested-where-the-connection-stands"),
        pytest.param(raw(b'[1,"c",[' + b"9" * 5000 + b"]]"), id="5000-digits"),
        pytest.param("A" * 1_000_000, id="a-megabyte"),
        pytest.param(forged([1, "c", ["x" * 1_000_000]])[:-2], id="a-megabyte-cut-off"),
    ],
)
def test_what_we_never_wrote_is_refused(cursor: str) -> None:
    with pytest.raises(CursorError, match="`after` is not a cursor of this API: expected the `cursor`") as refused:
        read_cursor(cursor, CONNECTION, "after")

    assert len(str(refused.value)) < 250


@given(st.text() | st.binary().map(raw) | JSON_VALUES.map(forged) | JSON_VALUES.map(lambda v: forged([1, NAME, v])))
def test_any_text_is_a_cursor_error_or_the_cursor_of_what_it_reads_as(cursor: str) -> None:
    try:
        position = read_cursor(cursor, CONNECTION, "after")
    except CursorError:
        return

    assert write_cursor(position, CONNECTION) == cursor


@given(position=POSITIONS, place=st.integers(0, 1000), letter=st.sampled_from("Ab9_-=+/ é"))
def test_cursor_with_one_letter_changed_is_another_position_or_refused(
    position: Position, place: int, letter: str
) -> None:
    cursor = write_cursor(position, CONNECTION)
    place %= len(cursor)
    changed = cursor[:place] + letter + cursor[place + 1 :]

    try:
        back = read_cursor(changed, CONNECTION, "after")
    except CursorError:
        return

    assert (spelled(back) == spelled(position)) == (changed == cursor)


@pytest.mark.parametrize(
    ("position", "length", "is_one"),
    [
        pytest.param(("a", Decimal(1)), 2, True, id="text-and-number"),
        pytest.param((), 0, True, id="none"),
        pytest.param(("a",), 2, False, id="too-few"),
        pytest.param(("a", ""), 2, False, id="empty-text"),
        pytest.param(("a", 1), 2, False, id="int-is-no-key"),
        pytest.param((0, ("a",)), 2, False, id="nested"),
        pytest.param(["a"], 1, False, id="list"),
        pytest.param("a", 1, False, id="text"),
    ],
)
def test_key_position_is_key_values_and_nothing_else(position: Any, length: int, is_one: bool) -> None:
    assert is_key_position(position, length) is is_one


# --- the name of a connection -------------------------------------------------------------------------------------

MOMENT = "2022-07-19T17:59:58Z"
FILTER = Every(
    (
        Test(("a",), "eq", "x", STRING),
        Some((Test(("b", "c"), "between", (MOMENT, MOMENT), DATE_TIME), Never(Test(("d",), "in", ("OPEN",), STATUS)))),
        Test(("e",), "ge", Decimal("1.50"), DECIMAL),
    )
)


def test_connection_has_the_same_name_in_every_process() -> None:
    """Servers of a fleet, and the one started tomorrow, take each other's cursors."""
    code = "from tests.test_cursor import FILTER, fingerprint; print(fingerprint('Query', FILTER, True))"
    # The other process lays out its memory otherwise, and hashes text otherwise.
    command = [sys.executable, "-c", "import graph.reads; junk = [object() for _ in range(9999)]; " + code]

    found = subprocess.run(
        command, cwd=ROOT, env={"PYTHONHASHSEED": "7"}, capture_output=True, text=True, check=True
    ).stdout.strip()

    assert found == fingerprint("Query", FILTER, True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(("a", "b"), ("b", "a"), id="order"),
        pytest.param(("ab",), ("a", "b"), id="cut"),
        pytest.param(("a", "b"), ("a\x00b",), id="separator-inside"),
        pytest.param(("1",), (1,), id="type"),
        pytest.param((1,), (Decimal(1),), id="number-type"),
        pytest.param((FILTER, True), (FILTER, False), id="order-of-the-page"),
        pytest.param((Test(("a",), "eq", "x", STRING),), (Test(("a",), "ne", "x", STRING),), id="operator"),
        pytest.param((None,), ("None",), id="null"),
    ],
)
def test_whatever_decides_which_list_it_is_changes_the_name(one: tuple[object, ...], other: tuple[object, ...]) -> None:
    assert fingerprint(*one) != fingerprint(*other)


@given(st.lists(st.text() | st.integers() | st.none(), max_size=4))
def test_name_of_a_connection_is_short_and_plain(identity: list[object]) -> None:
    assert len(fingerprint(*identity)) == 12
    assert fingerprint(*identity).isascii()
