"""Signatures of cursors and ids: what we have not signed, or not for this, is refused, and keys can be changed."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.cursor import Issuer, issuer, read_cursor, write_cursor, write_cursors
from graph.errors import CursorError
from graph.seals import SIGNATURE_BYTES, Seal, Seals
from tests.conftest import BANANAS, Serve, Served

OLD, NEW, OTHER = b"o" * 32, b"n" * 32, b"x" * 32
CONTENTS = st.binary(max_size=300)


@given(CONTENTS)
def test_what_was_sealed_comes_back(content: bytes) -> None:
    for keys in ([], [NEW], [NEW, OLD]):
        seal = Seal(b"cursor", keys)

        assert seal.read(seal.write(content)) == content


@given(CONTENTS, st.integers(0), st.integers(1, 255))
def test_no_bit_can_be_changed(content: bytes, place: int, change: int) -> None:
    seal = Seal(b"cursor", [NEW])
    raw = bytearray(base64.urlsafe_b64decode(seal.write(content) + "=="))
    raw[place % len(raw)] ^= change

    with pytest.raises(ValueError, match="not signed by us"):
        seal.read(base64.urlsafe_b64encode(raw).decode().rstrip("="))


@given(CONTENTS, st.integers(1))
def test_nothing_can_be_cut_off(content: bytes, length: int) -> None:
    seal = Seal(b"cursor", [NEW])
    text = seal.write(content)

    with pytest.raises(ValueError, match=r".+"):
        seal.read(text[: -(length % len(text)) or -1])


def test_each_of_the_keys_verifies_and_the_first_signs() -> None:
    before, between, after = (Seal(b"id", keys) for keys in ([OLD], [NEW, OLD], [NEW]))

    assert between.read(before.write(b"x")) == b"x"
    assert between.write(b"x") == after.write(b"x")
    with pytest.raises(ValueError, match="not signed"):
        after.read(before.write(b"x"))


def test_an_id_is_no_cursor() -> None:
    seals = Seals([NEW])

    with pytest.raises(ValueError, match="not signed"):
        seals.cursor.read(seals.id.write(b"x"))


@given(st.text(max_size=60))
def test_any_text_is_refused_by_a_key_it_has_not_seen(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Seal(b"cursor", [NEW]).read(text)


def test_a_signed_text_is_nothing_without_keys_nor_the_other_way_round() -> None:
    signed, plain = issuer(Seals([NEW]), "a"), issuer(Seals(), "a")

    for one, other in ((signed, plain), (plain, signed)):
        with pytest.raises(CursorError) as refused:
            read_cursor(write_cursor(("x",), one), other, "after")
        assert refused.value.code == "BAD_CURSOR"


def test_a_signed_cursor_of_another_connection_is_refused() -> None:
    seals = Seals([NEW])

    with pytest.raises(CursorError, match="belongs to another connection"):
        read_cursor(write_cursor(("x",), issuer(seals, "a")), issuer(seals, "b"), "after")


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=40)))
def test_signed_cursors_written_together_are_those_written_one_by_one(texts: list[str]) -> None:
    connection = Issuer("name", Seal(b"cursor", [NEW]))

    assert write_cursors(texts, connection) == [write_cursor((text,), connection) for text in texts]


# --- in the API ---------------------------------------------------------------------------------------------------

PAGE = """
query ($after: String) {
  container(number: "009998") { id pallets(first: 1, after: $after) { edges { cursor node { id } } } }
}
"""


@pytest.fixture
async def signed(serve: Serve, banana_table: str) -> Served:
    """The banana graph, with keys."""
    return await serve(BANANAS.read_text(), table=banana_table, keys=[NEW, OLD])


async def test_ids_and_cursors_of_a_page_lead_back(signed: Served) -> None:
    container = (await signed.data(PAGE))["container"]
    (edge,) = container["pallets"]["edges"]

    again = await signed.data("query ($id: ID!) { node(id: $id) { id } }", {"id": edge["node"]["id"]})
    following = await signed.data(PAGE, {"after": edge["cursor"]})

    assert again == {"node": {"id": edge["node"]["id"]}}
    assert following["container"]["pallets"]["edges"][0]["node"]["id"] != edge["node"]["id"]


async def test_ids_and_cursors_that_are_made_up_are_refused(
    signed: Served, bananas: Served, serve: Serve, banana_table: str
) -> None:
    strangers = await serve(BANANAS.read_text(), table=banana_table, keys=[OTHER])
    for source in (bananas, strangers):
        container = (await source.data(PAGE))["container"]
        (edge,) = container["pallets"]["edges"]

        bad_id = await signed.error("query ($id: ID!) { node(id: $id) { id } }", {"id": container["id"]})
        bad_cursor = await signed.error(PAGE, {"after": edge["cursor"]})

        assert (bad_id["extensions"]["code"], bad_cursor["extensions"]["code"]) == ("BAD_ID", "BAD_CURSOR")


async def test_ids_and_cursors_of_the_key_before_still_work(signed: Served, serve: Serve, banana_table: str) -> None:
    before = await serve(BANANAS.read_text(), table=banana_table, keys=[OLD])
    container = (await before.data(PAGE))["container"]

    found = await signed.data("query ($id: ID!) { node(id: $id) { id } }", {"id": container["id"]})
    page = await signed.data(PAGE, {"after": container["pallets"]["edges"][0]["cursor"]})

    assert found["node"]["id"] != container["id"], "it is signed anew"
    assert page["container"]["pallets"]["edges"]


async def test_signatures_are_sixteen_bytes(signed: Served, bananas: Served) -> None:
    ids = [(await served.data(PAGE))["container"]["id"] for served in (signed, bananas)]

    lengths = [len(base64.urlsafe_b64decode(text + "==")) for text in ids]

    assert lengths[0] - lengths[1] == SIGNATURE_BYTES
