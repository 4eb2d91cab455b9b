"""What Hypothesis draws from: canonical values of every scalar, as `check` gives them, templates, conditions."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from graph.expressions import AllOf, AnyOf, Compare, Condition, Exists, Not
from graph.keys import Literal, Part, Path, Template, Variable
from graph.scalars import SCALARS, Scalar, date_time_text, enum_scalar

# Values that begin with another one, and that hold a separator: what is easily mistaken in a key.
STATUS = enum_scalar("Status", ("OPEN", "OPENED", "OPEN_AGAIN", "SHIPPED"))

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
PLAIN_TEXTS = st.text("abzAZ019é", min_size=1, max_size=6)
INTEGERS = st.integers(1 - 10**38, 10**38 - 1)
DECIMALS = st.builds(
    lambda digits, exponent: Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), exponent)),
    INTEGERS,
    st.integers(-130, 87),
).map(lambda number: number or Decimal(0))
FLOATS = st.floats(-1e125, 1e125).filter(lambda number: number == 0 or abs(number) >= 1e-129)
# Beyond 2**53 a float is written by fewer digits than its value has, and comes back as an integer near it.
SAFE_FLOATS = st.floats(-(2**53), 2**53).filter(lambda number: number == 0 or abs(number) >= 1e-129)
MOMENTS = st.datetimes(timezones=st.just(UTC))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | SAFE_FLOATS | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)

_VALUES: Mapping[str, SearchStrategy[Any]] = {
    "ID": TEXTS,
    "String": TEXTS,
    "Int": st.integers(-(2**31), 2**31 - 1),
    "BigInt": INTEGERS,
    "Float": FLOATS,
    "Decimal": DECIMALS,
    "Boolean": st.booleans(),
    "Date": st.dates().map(lambda day: day.isoformat()),
    "DateTime": MOMENTS.map(date_time_text),
    "JSON": JSON_VALUES,
    "Base64": st.binary(max_size=12).map(lambda raw: base64.b64encode(raw).decode()),
    "Status": st.sampled_from(STATUS.values),
}
ALL_SCALARS = (*SCALARS.values(), STATUS)
KEY_SCALARS = tuple(scalar for scalar in ALL_SCALARS if scalar.in_key)


def values(scalar: Scalar) -> SearchStrategy[Any]:
    """Draw canonical values of a scalar."""
    return _VALUES[scalar.name]


_FORMATS = {"ID": ("", "lower"), "String": ("", "lower"), "DateTime": ("", "epoch"), "Int": ("", "03", "012")}
_LITERALS = st.sampled_from(["-", "#", "--", "_", "a", "1", ".", "-a-"])


@st.composite
def templates(draw: st.DrawFn, *, lossy: bool = True) -> Template:
    """Draw templates of up to four variables with a literal between each two, as the compiler lets them be."""
    parts: list[Part] = [Literal(draw(_LITERALS))] if draw(st.booleans()) else []
    for number in range(draw(st.integers(1, 4))):
        scalar = draw(st.sampled_from(KEY_SCALARS))
        formats = _FORMATS.get(scalar.name, ("",)) if lossy else ("",)
        name = draw(st.sampled_from("ab")) if draw(st.integers(0, 9)) == 0 else str(number)
        parts += [Variable((scalar.name + name,), scalar, draw(st.sampled_from(formats))), Literal(draw(_LITERALS))]
    if draw(st.booleans()):
        parts.pop()
    return Template("drawn", tuple(parts))


def template_values(template: Template) -> SearchStrategy[dict[Path, Any]]:
    """Draw values for the variables of a template, often such as hold its separators."""
    texts = st.text("a-#1._", min_size=1, max_size=5)
    return st.fixed_dictionaries(
        {
            variable.path: values(variable.scalar) | texts if variable.scalar.name == "ID" else values(variable.scalar)
            for variable in template.variables
        }
    )


_LEAVES = st.sampled_from("abcd").map(lambda name: Compare(name, "=", ("S", name))) | st.sampled_from("abcd").map(
    Exists
)
CONDITIONS: SearchStrategy[Condition] = st.recursive(
    _LEAVES,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(AllOf, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple))
    ),
    max_leaves=8,
)

# A machine that is busy with something else is no reason to fail.
settings.register_profile("tablegraph", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tablegraph")
