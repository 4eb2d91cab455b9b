"""Drafts: items as they are to be, with every key that is made of their fields."""

from __future__ import annotations

from typing import Any

import pytest

from graph.errors import KeyValueError
from graph.model import ItemType
from graph.writes.draft import Draft
from tests.test_transaction import BOX, LID, MODEL, key
from tests.written import n, s


def draft(type_: ItemType = BOX, **values: Any) -> Draft:
    return Draft(MODEL, type_, values)


def test_a_draft_is_written_with_its_keys_and_fields() -> None:
    box = draft(number="1", state="x", weight=7, label="Aé", colours=["r"])

    assert box.key() == key(1)
    assert box.item(BOX.layouts[0]) == {
        "pk": s("BOX#1"), "sk": s("box"), "state": s("x"), "data": s("0007-aé"), "weight": n(7), "label": s("Aé"),
        "colours": {"SS": ["r"]},
    }  # fmt: skip


def test_a_draft_that_lacks_a_value_is_not_in_the_index_made_of_it() -> None:
    item = draft(number="1", state="x", weight=7, label=None, colours=[]).item(BOX.layouts[0])

    assert item == {"pk": s("BOX#1"), "sk": s("box"), "state": s("x"), "weight": n(7)}


def test_only_what_is_made_of_changed_fields_is_rewritten() -> None:
    box = draft(number="1", state="x", weight=7, label="A")

    assert box.rewritten(BOX.layouts[0], ["label"]) == {"label": s("A"), "data": s("0007-a")}
    assert box.changed({"weight": None}).rewritten(BOX.layouts[0], ["weight"]) == {"weight": None, "data": None}


def test_what_nobody_declared_is_kept() -> None:
    box = Draft(MODEL, BOX, {"number": "1"}, {"pk": s("BOX#1"), "theirs": s("x"), "label": s("old")})

    assert box.item(BOX.layouts[0]) == {"pk": s("BOX#1"), "sk": s("box"), "theirs": s("x")}


def test_a_random_shard_is_drawn_once() -> None:
    lid = draft(LID, number="1", box=draft(number="1", label="x"))
    item = lid.item(LID.layouts[0])
    again = Draft(MODEL, LID, lid.values, item)

    assert item["state"]["S"] in "012"
    assert item["data"] == s("LID-x")
    assert {again.item(LID.layouts[0])["state"]["S"] for _ in range(50)} == {item["state"]["S"]}


@pytest.mark.parametrize(
    ("field", "value"), [("number", ""), ("number", "x" * 2048), ("weight", -1), ("weight", 10**5)]
)
def test_a_value_that_its_key_cannot_hold_is_refused(field: str, value: Any) -> None:
    box = draft(**{"number": "1", "state": "x", "weight": 7, "label": "a", field: value})

    with pytest.raises(KeyValueError, match=field):
        box.item(BOX.layouts[0])
