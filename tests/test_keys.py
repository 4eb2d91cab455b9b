"""Key templates: read, formatted, cut to a prefix, parsed back, refused and told apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import KeyValueError
from graph.keys import (
    Hole,
    Literal,
    Path,
    Shard,
    Template,
    TemplateSyntaxError,
    Variable,
    overlap,
    read_template,
    shard_path,
)
from graph.scalars import SCALARS, TextOrder, date_time_text
from tests.strategies import DECIMALS, KEY_SCALARS, MOMENTS, PLAIN_TEXTS, STATUS, template_values, templates, values


def template(source: str, **scalars: str) -> Template:
    """Resolve a template's source; a variable is an ID where nothing else is said."""

    def resolve(part: Literal | Hole | Shard) -> Literal | Variable | Shard:
        if not isinstance(part, Hole):
            return part
        name = scalars.get("_".join(part.names), "ID")
        return Variable(part.names, STATUS if name == "Status" else SCALARS[name], part.format)

    return Template(source, tuple(map(resolve, read_template(source))))


def by_path(**named: Any) -> dict[Path, Any]:
    return {tuple(name.split("_")): value for name, value in named.items()}


# --- reading a template's source ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        pytest.param("metadata", (Literal("metadata"),), id="literal-alone"),
        pytest.param("{number}", (Hole(("number",)),), id="variable-alone"),
        pytest.param("CONTAINER_{number}", (Literal("CONTAINER_"), Hole(("number",))), id="literal-and-variable"),
        pytest.param("{user}#follower", (Hole(("user",)), Literal("#follower")), id="literal-behind"),
        pytest.param("{order.accountRep}", (Hole(("order", "accountRep")),), id="path"),
        pytest.param("{name:lower}", (Hole(("name",), "lower"),), id="format"),
        pytest.param("{total:012}", (Hole(("total",), "012"),), id="digits"),
        pytest.param("{ name : lower }", (Hole(("name",), "lower"),), id="spaces"),
        pytest.param("{shard(15)}", (Shard(15),), id="random-shard"),
        pytest.param("{shard( 15 , customer.id )}", (Shard(15, ("customer", "id")),), id="hashed-shard"),
        pytest.param("GSI1-PK#é {a}", (Literal("GSI1-PK#é "), Hole(("a",))), id="any-character-in-a-literal"),
    ],
)
def test_template_is_read_as(source: str, parts: tuple[object, ...]) -> None:
    assert read_template(source) == parts


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param("", "a template may not be empty: DynamoDB refuses empty keys", id="empty"),
        pytest.param("a}", "'a}' closes a brace that it never opened", id="closed-and-not-opened"),
        pytest.param(
            "a{b", "'a{b' has a variable that cannot be read at position 2: expected {field}", id="not-closed"
        ),
        pytest.param("{}", "'{}' has a variable that cannot be read at position 1", id="no-name"),
        pytest.param("{a b}", "'{a b}' has a variable that cannot be read", id="two-names"),
        pytest.param("{a.}", "'{a.}' has a variable that cannot be read", id="path-without-end"),
        pytest.param("{a:}", "'{a:}' has a variable that cannot be read", id="format-without-name"),
        pytest.param("{{a}}", "'{{a}}' has a variable that cannot be read", id="brace-in-brace"),
        pytest.param("{a:²}", "'{a:²}' has a variable that cannot be read", id="digit-of-another-script"),
        pytest.param("{shard()}", "'{shard()}' has a variable that cannot be read", id="shard-without-count"),
        pytest.param("{shard(0)}", "'{shard(0)}' has 0 shards: expected from 1 to 1000", id="no-shards"),
        pytest.param("{shard(1001)}", "'{shard(1001)}' has 1001 shards: expected from 1 to 1000", id="many-shards"),
        pytest.param("{a:00}", "'{a:00}' pads a to 00 digits: expected from 1 to 38", id="no-digits"),
        pytest.param("{a:39}", "'{a:39}' pads a to 39 digits: expected from 1 to 38", id="many-digits"),
    ],
)
def test_template_is_refused_with_its_place(source: str, message: str) -> None:
    with pytest.raises(TemplateSyntaxError, match=re.escape(message)):
        read_template(source)


@given(st.text("ab{}():.,0 15shard²é", max_size=30))
def test_any_text_is_a_template_or_a_syntax_error(source: str) -> None:
    try:
        parts = read_template(source)
    except TemplateSyntaxError:
        return

    assert "".join(part.text for part in parts if isinstance(part, Literal)) in re.sub(r"\{[^}]*\}", "", source)


# --- format, prefix and parse -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "named", "key"),
    [
        pytest.param(template("metadata"), {}, "metadata", id="literal-alone"),
        pytest.param(template("CONTAINER_{number}"), by_path(number="009998"), "CONTAINER_009998", id="id"),
        pytest.param(template("{n}-{s}", n="Int", s="Status"), by_path(n=-3, s="OPEN"), "-3-OPEN", id="int-and-enum"),
        pytest.param(template("JH-{d}", d="Date"), by_path(d="2022-07-19"), "JH-2022-07-19", id="date"),
        pytest.param(template("{total:012}", total="Int"), by_path(total=42), "000000000042", id="digits"),
        pytest.param(template("c.{a:lower}.{b:lower}"), by_path(a="Ada", b="LOVE"), "c.ada.love", id="lower"),
        pytest.param(
            template("order.{at:epoch}", at="DateTime"),
            by_path(at="2022-07-19T17:59:58.5Z"),
            "order.1658253598",
            id="epoch",
        ),
        pytest.param(
            template("{at:epoch}", at="DateTime"),
            by_path(at="2001-09-09T01:46:39Z"),
            "0999999999",
            id="early-epoch-is-padded",
        ),
        pytest.param(
            template("{b}.{p}", b="Boolean", p="Decimal"), by_path(b=True, p=Decimal("1.50")), "true.1.5", id="decimal"
        ),
        pytest.param(template("{order.number}"), by_path(order_number="1"), "1", id="path"),
        pytest.param(
            template("{name:lower}#{name}"), by_path(name="Ada"), "ada#Ada", id="the-same-field-in-two-formats"
        ),
        pytest.param(template("{n}", n="Int"), by_path(n=7), Decimal(7), id="one-number-alone-is-a-number"),
        pytest.param(template("{n:03}", n="Int"), by_path(n=7), "007", id="digits-make-text-of-it"),
    ],
)
def test_key_of_values_and_values_of_key(made: Template, named: dict[Path, Any], key: object) -> None:
    formatted = made.format(named)

    assert (formatted, type(formatted)) == (key, type(key))
    parsed = made.parse(formatted)
    assert parsed is not None
    assert {v.text(parsed[v.path]) for v in made.variables} == {v.text(named[v.path]) for v in made.variables}


@pytest.mark.parametrize(
    ("source", "named", "prefix"),
    [
        pytest.param("{a}#{b}", {}, "", id="nothing-known"),
        pytest.param("CONTAINER_{a}", {}, "CONTAINER_", id="up-to-the-first-variable"),
        pytest.param("x-{a}#{b}", by_path(a="1"), "x-1#", id="literal-behind-what-is-known"),
        pytest.param("x-{a}#{b}", by_path(b="2"), "x-", id="a-later-variable-does-not-count"),
        pytest.param("{shard(3)}#{a}", by_path(a="1"), "", id="up-to-a-shard"),
        pytest.param("{shard(3)}#{a}", {shard_path(Shard(3)): 2}, "2#", id="a-known-shard"),
        pytest.param("{a}#{b}", by_path(a="1", b="2"), "1#2", id="all-known"),
    ],
)
def test_prefix_is_the_key_up_to_what_is_not_known(source: str, named: dict[Path, Any], prefix: str) -> None:
    assert template(source).prefix(named) == prefix


@pytest.mark.parametrize(
    ("made", "key"),
    [
        pytest.param(template("CONTAINER_{number}"), "PALLET_1", id="another-literal"),
        pytest.param(template("CONTAINER_{number}"), "CONTAINER_", id="nothing-for-the-variable"),
        pytest.param(template("CONTAINER_{number}"), "XCONTAINER_1", id="text-before"),
        pytest.param(template("metadata"), "metadata2", id="text-behind"),
        pytest.param(template("JH-{d}", d="Date"), "JH-2022-02-30", id="a-day-that-does-not-exist"),
        pytest.param(template("{s}#x", s="Status"), "CLOSED#x", id="a-value-that-the-enum-lacks"),
        pytest.param(template("{n:03}", n="Int"), "42", id="too-few-digits"),
        pytest.param(template("#{n}", n="Int"), "#007", id="zeros-that-we-do-not-write"),
        pytest.param(template("#{n}", n="Int"), "#-0", id="minus-zero"),
        pytest.param(template("#{n}", n="Int"), "#٣", id="digit-of-another-script"),
        pytest.param(template("{at:epoch}", at="DateTime"), "١٦٥٨٢٥٣٥٩٨", id="epoch-in-digits-of-another-script"),
        pytest.param(template("#{p}", p="Decimal"), "#1.50", id="places-that-we-do-not-write"),
        pytest.param(template("{a}#{a}"), "1#2", id="one-field-with-two-values"),
        pytest.param(template("{n}.{n:01}", n="Int"), "-1.1", id="one-field-with-a-value-that-does-not-fit-twice"),
        pytest.param(template("CONTAINER_{number}"), Decimal(1), id="number-for-text"),
        pytest.param(template("{n}", n="Int"), "1", id="text-for-number"),
        pytest.param(template("{n}", n="Int"), Decimal("1.5"), id="fraction-for-int"),
        pytest.param(template("{p}", p="Decimal"), Decimal("1e999999999"), id="exponent-that-would-fill-the-memory"),
        pytest.param(template("{p}", p="Decimal"), Decimal("NaN"), id="nan"),
    ],
)
def test_key_of_another_shape_has_no_values(made: Template, key: Any) -> None:
    assert made.parse(key) is None


@pytest.mark.parametrize(
    ("made", "key", "named"),
    [
        pytest.param(
            template("{at:epoch}", at="DateTime"), "999999999", by_path(at="2001-09-09T01:46:39Z"), id="unpadded-epoch"
        ),
        pytest.param(template("{name:lower}"), "Ada", by_path(name="Ada"), id="capitals-where-we-write-none"),
        pytest.param(template("{name:lower}#{name}"), "ada#Ada", by_path(name="Ada"), id="the-lossless-one-wins"),
        pytest.param(template("{shard(15)}-{a}"), "7-x", by_path(a="x"), id="shards-are-no-values"),
        pytest.param(template("{a}\n{b}"), "1\n\n2", by_path(a="1", b="\n2"), id="line-ends-are-text"),
        pytest.param(template("{a}-{b}"), "1-2-3", by_path(a="1", b="2-3"), id="the-first-place-that-fits"),
        pytest.param(template("{a}-{s}", s="Status"), "x-y-OPENED", by_path(a="x-y", s="OPENED"), id="the-only-place"),
        pytest.param(template("{n}", n="BigInt"), Decimal("1E+30"), by_path(n=10**30), id="number-with-exponent"),
    ],
)
def test_key_that_others_wrote_is_read(made: Template, key: Any, named: Mapping[Path, Any]) -> None:
    assert made.parse(key) == named


@given(data=st.data())
def test_values_are_read_back_or_refused(data: st.DataObject) -> None:
    made = data.draw(templates())
    named = data.draw(template_values(made))

    try:
        key = made.format(named)
    except KeyValueError:
        return

    parsed = made.parse(key)
    assert parsed is not None
    for variable in made.variables:
        assert variable.text(parsed[variable.path]) == variable.text(named[variable.path])
        assert variable.lossy or parsed[variable.path] == named[variable.path]


@pytest.mark.parametrize("scalar", KEY_SCALARS, ids=lambda scalar: scalar.name)
@given(data=st.data())
def test_values_without_separators_are_never_refused(scalar: Any, data: st.DataObject) -> None:
    made = Template("t", (Literal("a#"), Variable(("one",), scalar), Literal("#"), Variable(("two",), SCALARS["ID"])))
    one = data.draw(PLAIN_TEXTS if scalar.name in ("ID", "String") else values(scalar))
    named = by_path(one=one, two=data.draw(PLAIN_TEXTS))

    assert made.parse(made.format(named)) == named


@given(data=st.data())
def test_distinct_values_have_distinct_keys(data: st.DataObject) -> None:
    made = data.draw(templates(lossy=False))
    one, other = data.draw(template_values(made)), data.draw(template_values(made))

    try:
        keys = made.format(one), made.format(other)
    except KeyValueError:
        return

    assert (keys[0] == keys[1]) == (one == other)


# --- order --------------------------------------------------------------------------------------------------------


@given(one=st.integers(0, 10**12 - 1), other=st.integers(0, 10**12 - 1))
def test_order_of_padded_numbers_survives(one: int, other: int) -> None:
    variable = Variable(("n",), SCALARS["Int"], "012")

    assert variable.order is TextOrder.FIXED
    assert (variable.text(one) < variable.text(other)) == (one < other)


@given(one=MOMENTS, other=MOMENTS)
def test_order_of_epochs_survives(one: Any, other: Any) -> None:
    variable = Variable(("at",), SCALARS["DateTime"], "epoch")

    try:
        texts = [variable.text(date_time_text(moment)) for moment in (one, other)]
    except KeyValueError:
        return

    assert variable.order is TextOrder.FIXED
    assert (texts[0] < texts[1]) == (one.replace(microsecond=0) < other.replace(microsecond=0))


@given(one=DECIMALS, other=DECIMALS)
def test_order_of_number_keys_is_the_order_of_numbers(one: Decimal, other: Decimal) -> None:
    made = template("{p}", p="Decimal")
    keys = made.format(by_path(p=one)), made.format(by_path(p=other))

    assert all(isinstance(key, Decimal) for key in keys)
    assert (keys[0] < keys[1]) == (one < other)  # type: ignore[operator]


def test_lower_has_no_order_of_its_own() -> None:
    assert Variable(("name",), SCALARS["String"], "lower").order is TextOrder.NONE
    assert Variable(("name",), SCALARS["String"]).order is TextOrder.FREE
    assert Variable(("at",), SCALARS["DateTime"]).order is TextOrder.SECONDS


# --- telling templates apart --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(template("CONTAINER_{a}"), template("PALLET_{a}"), id="other-literals"),
        pytest.param(template("{a}#x"), template("{a}#y"), id="other-literals-behind"),
        pytest.param(template("store"), template("store#{a}"), id="literal-and-its-continuation"),
        pytest.param(template("JH-{d}", d="Date"), template("JH-{n:04}", n="Int"), id="date-and-digits"),
        pytest.param(template("{s}", s="Status"), template("CLOSED"), id="enum-without-the-literal"),
        pytest.param(template("{s}-{d}", s="Status", d="Date"), template("TITLE-{a}"), id="enum-before-a-date"),
        pytest.param(template("{n:03}", n="Int"), template("{n:04}", n="Int"), id="other-numbers-of-digits"),
        pytest.param(template("#{n}", n="Int"), template("#x{a}"), id="number-and-letter"),
        pytest.param(template("{shard(15)}"), template("x"), id="shard-and-letter"),
        pytest.param(template("{n}", n="Int"), template("{a}"), id="number-key-and-text-key"),
    ],
)
def test_templates_that_share_no_key(one: Template, other: Template) -> None:
    assert not overlap(one, other)
    assert not overlap(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(template("{a}"), template("CONTAINER_{a}"), id="any-text-and-literal"),
        pytest.param(template("a{x}"), template("{x}b"), id="one-begins-and-the-other-ends"),
        pytest.param(template("{s}", s="Status"), template("OPENED"), id="enum-with-the-literal"),
        pytest.param(template("{s}_{a}", s="Status"), template("OPEN_AGAIN_x"), id="enum-in-two-ways"),
        pytest.param(template("JH-{d}", d="Date"), template("JH-{a}"), id="date-and-text"),
        pytest.param(template("{at}", at="DateTime"), template("{a}"), id="moment-and-text"),
        pytest.param(template("{n}", n="Int"), template("{p}", p="Decimal"), id="two-number-keys"),
        pytest.param(template("{n:03}", n="Int"), template("{shard(15)}"), id="digits-and-shard"),
        pytest.param(template("#{n}", n="Int"), template("#-1"), id="negative-number"),
    ],
)
def test_templates_that_share_a_key(one: Template, other: Template) -> None:
    assert overlap(one, other)
    assert overlap(other, one)


@given(data=st.data())
def test_templates_that_read_the_same_key_overlap(data: st.DataObject) -> None:
    made, other = data.draw(templates()), data.draw(templates())
    try:
        key = made.format(data.draw(template_values(made)))
    except KeyValueError:
        return

    assert overlap(made, other) or other.parse(key) is None


@given(one=templates(), other=templates())
def test_overlap_is_mutual_and_with_oneself(one: Template, other: Template) -> None:
    assert overlap(one, one)
    assert overlap(one, other) == overlap(other, one)


@cache
def keys_of(source: str) -> frozenset[str]:
    """List every key of up to six letters that a template has, by trying all texts."""
    made = template(source, n="Int", m="Int", p="Decimal")
    texts = ("".join(text) for size in range(1, 7) for text in product("-x1.", repeat=size))
    return frozenset(text for text in texts if made.parse(text) is not None)


SHAPES = ("{a}", "{a}-{b}", "-{a}", "{a}-", "x{a}x", "x-{n}", "{n}-x", "x", "-x-", "{a}--{b}", "x{p}", "{n}.{m:01}x")


@pytest.mark.parametrize(("one", "other"), list(combinations(SHAPES, 2)))
def test_overlap_is_what_trying_all_short_texts_finds(one: str, other: str) -> None:
    scalars = {"n": "Int", "m": "Int", "p": "Decimal"}

    assert overlap(template(one, **scalars), template(other, **scalars)) == bool(keys_of(one) & keys_of(other))
