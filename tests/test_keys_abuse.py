"""Keys under abuse: what may not become one, what it is told, and that no text takes long to read."""

from __future__ import annotations

import re
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import KeyValueError
from graph.keys import PARTITION_KEY_BYTES, SORT_KEY_BYTES, Literal, Path, Template, Variable
from graph.scalars import SCALARS
from tests.strategies import STATUS


def made_of(*parts: str | Variable) -> Template:
    """Make a template of literals and variables; its source is not that of the parser, but readable in messages."""
    source = "".join(part if isinstance(part, str) else f"{{{part.name}}}" for part in parts)
    return Template(source, tuple(Literal(part) if isinstance(part, str) else part for part in parts))


def variable(name: str, scalar: str = "ID", format_: str = "") -> Variable:
    return Variable((name,), STATUS if scalar == "Status" else SCALARS[scalar], format_)


A, B = variable("a"), variable("b")
TOTAL = variable("total", "Int", "012")
AT = variable("at", "DateTime", "epoch")
NUMBER = variable("number", "Decimal")
NAME = made_of("customer.", variable("first", "String", "lower"), ".", variable("last", "String", "lower"))


@pytest.mark.parametrize(
    ("template", "values", "message"),
    [
        pytest.param(made_of("C_", A), {}, "a is part of a key and must have a value", id="missing"),
        pytest.param(made_of("C_", A), {"a": None}, "a is part of a key and must have a value", id="null"),
        pytest.param(made_of("C_", A), {"a": ""}, "a is part of a key ('C_{a}') and may not be empty", id="empty"),
        pytest.param(
            made_of(A, "#", B),
            {"a": "x" * 2000, "b": "é" * 30},
            "the key '{a}#{b}' may hold 2048 bytes, the values given make 2061: shorten a, b",
            id="too-long-in-bytes",
        ),
        pytest.param(
            NAME,
            {"first": "J.o", "last": "Ada"},
            "first = 'J.o' cannot be kept in the key 'customer.{first}.{last}': it would read back as 'j'. Use a value "
            "that does not look like the text around it",
            id="a-separator-in-a-value",
        ),
        pytest.param(
            made_of(A, "#", variable("s", "Status")),
            {"a": "x", "s": "CLOSED"},
            "a = 'x' cannot be kept in the key '{a}#{s}': it would read back as None",
            id="no-value-of-the-enum",
        ),
        pytest.param(
            made_of(A),
            {"a": "x\ud800"},
            r"the key '{a}' must be valid Unicode text, got 'x\ud800'",
            id="lone-surrogate",
        ),
        pytest.param(
            made_of(TOTAL),
            {"total": 10**12},
            "total is kept in a key with 12 digits, so that text order is number order: expected a whole number from 0 "
            "to 999999999999, got 1000000000000",
            id="too-many-digits",
        ),
        pytest.param(made_of(TOTAL), {"total": -1}, "from 0 to 999999999999, got -1", id="negative"),
        pytest.param(
            made_of(AT),
            {"at": "1969-12-31T23:59:59Z"},
            "at is kept in a key with 10 digits, so that text order is number order: expected a time from "
            "1970-01-01T00:00:00Z to 2286-11-20T17:46:39Z, got 1969-12-31T23:59:59Z",
            id="before-1970",
        ),
        pytest.param(made_of(AT), {"at": "2286-11-20T17:46:40Z"}, "got 2286-11-20T17:46:40Z", id="after-10-digits"),
        pytest.param(
            made_of(NUMBER),
            {"number": Decimal("NaN")},
            "number is a key: expected a decimal number of at most 38 digits, best as a string, got Decimal('NaN')",
            id="nan-for-a-number-key",
        ),
        pytest.param(
            made_of(NUMBER), {"number": 10**39 + 1}, "number is a key: expected a decimal number", id="39-digits"
        ),
        pytest.param(made_of(NUMBER), {}, "number is part of a key and must have a value", id="missing-number"),
    ],
)
def test_key_is_refused_with_the_field_and_the_reason(template: Template, values: dict[str, Any], message: str) -> None:
    with pytest.raises(KeyValueError, match=re.escape(message)) as refused:
        template.format({(name,): value for name, value in values.items()})

    assert refused.value.extensions == {"code": "BAD_KEY_VALUE"}


@pytest.mark.parametrize("limit", [PARTITION_KEY_BYTES, SORT_KEY_BYTES])
def test_key_may_be_just_as_long_as_dynamodb_allows(limit: int) -> None:
    template = made_of("é", A)
    longest: dict[Path, str] = {("a",): "x" * (limit - 2)}

    key = template.format(longest, limit=limit)

    assert isinstance(key, str)
    assert len(key.encode()) == limit
    with pytest.raises(KeyValueError, match=f"may hold {limit} bytes, the values given make {limit + 1}"):
        template.format({("a",): longest["a",] + "x"}, limit=limit)


@given(st.text(min_size=1))
def test_any_text_makes_a_key_or_is_refused(text: str) -> None:
    for template in (made_of(A), made_of("x-", A), made_of(variable("a", "String", "lower"), "#", A)):
        try:
            key = template.format({("a",): text})
        except KeyValueError:
            continue
        assert template.parse(key) == {("a",): text}


# --- time ---------------------------------------------------------------------------------------------------------

FREE = [variable(f"v{number}") for number in range(12)]


def seconds_to_read(template: Template, text: str) -> float:
    began = time.perf_counter()
    template.parse(text)
    return time.perf_counter() - began


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        # Four variables on 400 letters took 6 s when `re` was let to try every place, and 12 would outlast us all.
        pytest.param([part for v in FREE for part in (v, "-")] + ["end"], "-" * 2048, id="separators-alone"),
        pytest.param([part for v in FREE for part in (v, "-")] + ["end"], "-a" * 1024, id="a-separator-every-other"),
        pytest.param([part for v in FREE for part in (v, "aa")] + ["end"], "a" * 2048, id="separators-that-overlap"),
        pytest.param([FREE[0], "-", FREE[1], "-", FREE[0], "-", FREE[1], "#"], "-" * 2048, id="repeated-variables"),
        pytest.param(
            [part for v in FREE[:6] for part in (v, "-", variable("n" + v.name, "Int"), "-")] + ["end"],
            "-1" * 1024,
            id="numbers-between",
        ),
        pytest.param(
            [part for v in FREE[:6] for part in (v, "_", variable("s" + v.name, "Status"), "_")] + ["end"],
            "_OPEN" * 400,
            id="enums-between",
        ),
        pytest.param([FREE[0], "1", variable("n", "Int"), "x"], "1" * 2048, id="digits-around-a-number"),
    ],
)
def test_no_text_takes_long_to_read(parts: list[str | Variable], text: str) -> None:
    assert seconds_to_read(made_of(*parts), text) < 0.5


def test_a_megabyte_is_refused_before_it_is_read() -> None:
    template = made_of(A, "-", B, "-end")
    began = time.perf_counter()

    with pytest.raises(KeyValueError, match="may hold 2048 bytes, the values given make 1048582"):
        template.format({("a",): "-" * 2**20, ("b",): "x"})

    assert time.perf_counter() - began < 0.5


def first_split(texts: list[str], text: str) -> list[str] | None:
    """Split a text at literals by trying every place in order: what a template of free variables must find, slowly."""
    if len(texts) == 1:
        return (
            [text[: -len(texts[0])]]
            if texts[0] and text.endswith(texts[0]) and text != texts[0]
            else ([text] if not texts[0] and text else None)
        )
    for place in range(1, len(text)):
        if text.startswith(texts[0], place):
            rest = first_split(texts[1:], text[place + len(texts[0]) :])
            if rest is not None:
                return [text[:place], *rest]
    return None


@given(
    st.lists(st.sampled_from(["-", "--", "a", "-a", "a-a"]), min_size=1, max_size=3),
    st.sampled_from(["", "-", "a-"]),
    st.text("-ab", max_size=12),
)
def test_text_is_split_at_the_first_places_that_fit(separators: list[str], end: str, text: str) -> None:
    texts = [*separators, end]
    parts = [part for v, literal in zip(FREE, texts, strict=False) for part in (v, literal) if part]

    parsed = made_of(*parts).parse(text)

    assert (None if parsed is None else [parsed[v.path] for v in FREE[: len(texts)]]) == first_split(texts, text)


def reads(one: Variable, text: str) -> bool:
    """Say whether a text is how a variable's value is written."""
    try:
        return one.text(one.value(text)) == text
    except ValueError:
        return False


@given(
    st.lists(st.sampled_from(["Int", "Date", "Status", "ID"]), min_size=2, max_size=4), st.text("-1aOPEN", max_size=14)
)
def test_text_between_other_scalars_is_split_as_if_every_place_was_tried(scalars: list[str], text: str) -> None:
    variables = [variable(f"v{number}", scalar) for number, scalar in enumerate(scalars)]
    every_place = re.compile("-".join(f"({v.pattern})" for v in variables) + "-x", re.DOTALL | re.ASCII)
    match = every_place.fullmatch(text + "-x")
    found = match is not None and all(map(reads, variables, match.groups()))

    parsed = made_of(*(part for v in variables for part in (v, "-")), "x").parse(text + "-x")

    assert [v.text(parsed[v.path]) for v in variables] == list(match.groups()) if match and parsed else not found
