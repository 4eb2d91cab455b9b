"""Abuse of arguments: numbers, keys, ids, cursors, pages, filters and writes."""

from __future__ import annotations

import base64
import itertools
from typing import Any, Final

import orjson

from tests.abuse.wire import Case, Target, graphql, said

LOOK = "query($n: ID!) { container(number: $n) { number } }"
NODE = "query($id: ID!) { node(id: $id) { id } }"
PAGE = """query($first: Int, $last: Int, $after: String, $before: String) { container(number: "000001") {
  pallets(first: $first, last: $last, after: $after, before: $before) { nodes { id } } } }"""
WHERE = """query($where: PalletLoadingWhere) { container(number: "000001") {
  pallets(first: 3, where: $where) { nodes { id } } } }"""
CREATE = """mutation($input: CreateContainerInput!, $key: ID) {
  createContainer(input: $input, idempotencyKey: $key) { container { number } } }"""
CREATE_BOX = "mutation($input: CreateBoxInput!) { createBox(input: $input) { box { number weightInKg } } }"
WHEN = "2026-01-01T00:00:00Z"


_numbers = itertools.count()


def global_id(*parts: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(list(parts))).rstrip(b"=").decode()


def looking(number: str) -> bytes:
    return graphql(LOOK, {"n": number})


def node(id_: str) -> bytes:
    return graphql(NODE, {"id": id_})


def page(**arguments: Any) -> bytes:
    return graphql(PAGE, arguments)


def where(condition: Any) -> bytes:
    return graphql(WHERE, {"where": condition})


def create(key: str | None = None, **given: Any) -> bytes:
    return graphql(CREATE, {"input": {"number": f"ABUSE-{next(_numbers)}", **given}, "key": key})


def nested(levels: int, name: str) -> Any:
    condition: Any = {"linkedBy": {"eq": "x"}}
    for _ in range(levels):
        condition = {name: condition if name == "not" else [condition]}
    return condition


def pallets(count: int, boxes: int = 0) -> list[Any]:
    return [
        {
            "linkedDatetime": WHEN,
            "pallet": {
                "create": {
                    "number": f"ABUSE{number}",
                    "boxes": [
                        {"linkedDatetime": WHEN, "box": {"create": {"number": f"ABUSE{number}-{box}"}}}
                        for box in range(boxes)
                    ],
                }
            },
        }
        for number in range(count)
    ]


def circle() -> Any:
    """A pallet that is created within itself, by its container."""
    inner = {"number": "ABUSE", "pallets": [{"linkedDatetime": WHEN, "pallet": {"number": "ABUSE"}}]}
    pallet = {"create": {"number": "ABUSE", "container": {"linkedDatetime": WHEN, "container": {"create": inner}}}}
    return [{"linkedDatetime": WHEN, "pallet": pallet}]


async def another_cursor(target: Target) -> str:
    return await said(target, page(first=3, after=target.another_cursor))


async def cut_cursor(target: Target) -> str:
    return await said(target, page(first=3, after=target.another_cursor[:-3]))


VALUES: Final[dict[str, Case]] = {
    "an Int of 10,000 digits": graphql(
        f'{{ container(number: "000001") {{ pallets(first: {"9" * 10_000}) {{ totalCount }} }} }}'
    ),
    "a Float of 1e400": graphql(
        CREATE_BOX.replace("$input: CreateBoxInput!", "")
        .replace("()", "")
        .replace("input: $input", 'input: { number: "ABUSE", weightInKg: 1e400 }')
    ),
    "a Float of 1e300, which DynamoDB cannot hold": graphql(
        CREATE_BOX, {"input": {"number": "ABUSE", "weightInKg": 1e300}}
    ),
    "an ID of 10,000 digits": graphql(f"{{ container(number: {'9' * 10_000}) {{ number }} }}"),
    "a moment that there never was": create(
        pallets=[{"linkedDatetime": "2026-99-99T99:99:99Z", "pallet": {"number": "1"}}]
    ),
    "an object for a String": create(operator={"a": 1}),
    "`__proto__` as a field of an input": graphql(CREATE, {"input": {"number": "ABUSE", "__proto__": {"a": 1}}}),
    "a variable that is missing": graphql(LOOK),
    "half a surrogate pair in a literal": graphql('{ container(number: "\\ud800") { number } }'),
}

KEYS: Final[dict[str, Case]] = {
    "an empty key": looking(""),
    "a key of 3,000 bytes": looking("x" * 3_000),
    "a key of 500,000 bytes": looking("x" * 500_000),
    "1,100 bytes in 550 letters of a sort key": looking("é" * 550),
    "a NUL": looking("009998\0"),
    "the prefix of another type": looking("1_PALLET_1"),
    "the separators of other tables": looking("1#2|3/4:5"),
    "what would be an expression": looking("1 OR attribute_exists(#n0) --"),
    "what would be a placeholder": looking(":v0 #n0 {number} ${number} %s"),
    "an emoji, and letters that go right to left": looking("🍌\u202e\u200b"),
    "the last character that there is": looking("\U0010ffff"),
    "a number with the same digits in another script": looking("٠٠٩٩٩٨"),
}

IDS: Final[dict[str, Case]] = {
    "an empty id": node(""),
    "an id that is not base64": node("!!!"),
    "base64 that is not JSON": node(base64.urlsafe_b64encode(b"\xff\xfe junk").decode()),
    "JSON that is no id": node(global_id({"a": 1}, None)),
    "an id with other characters at its end": node(global_id("Container", "CONTAINER_000001") + "=="),
    "the id of a type that there is not": node(global_id("Secret", "SECRET_1")),
    "an id whose key is that of another type": node(global_id("Container", "PALLET_C001001")),
    "an id with more keys than it has": node(global_id("Container", "CONTAINER_1", "PALLET_1", "x")),
    "an id with a number for a key": node(global_id("Container", 1)),
    "an id of 500 kB": node(base64.urlsafe_b64encode(b"x" * 400_000).decode()),
    "10,000 arrays in an id": node(base64.urlsafe_b64encode(b"[" * 10_000).decode()),
    "a pallet's id for a container": graphql(
        "mutation($id: ID!) { deleteContainer(key: { id: $id }) { deletedId } }",
        {"id": global_id("Pallet", "PALLET_C001001")},
    ),
    "10,000 ids at once": graphql(
        "query($ids: [ID!]!) { nodes(ids: $ids) { id } }",
        {"ids": [global_id("Container", f"CONTAINER_{number}") for number in range(10_000)]},
    ),
    "one id 10,000 times": graphql(
        "query($ids: [ID!]!) { nodes(ids: $ids) { id } }",
        {"ids": [global_id("Container", "CONTAINER_000001")] * 10_000},
    ),
}

PAGES: Final[dict[str, Case]] = {
    "first: -1": page(first=-1),
    "first: 0": page(first=0),
    "first: 1,000,000,000": page(first=10**9),
    "first: 2^31": page(first=2**31),
    "first and last": page(first=3, last=3),
    "after and before the same place": page(first=3, after="x", before="x"),
    "last with after": page(last=3, after="x"),
    "a cursor that is not base64": page(first=3, after="!!!"),
    "a cursor of 500 kB": page(first=3, after=base64.urlsafe_b64encode(b"x" * 400_000).decode()),
    "a cursor of 10,000 arrays": page(first=3, after=base64.urlsafe_b64encode(b"[" * 10_000).decode()),
    "a cursor of a version that there is not": page(first=3, after=global_id(99, "x", ["x"])),
    "a forged cursor": page(first=3, after=global_id(1, "XXXXXXXX", ["CONTAINER_000001"])),
    "a cursor of another connection": another_cursor,
    "a cursor that was cut": cut_cursor,
    "1,000 by 1,000 by 1,000 nodes": graphql(
        "{ containers(first: 1000) { nodes { pallets(first: 1000) { nodes { "
        "boxes(first: 1000) { nodes { id } } } } } } }"
    ),
    "the same list 50 times": graphql(
        "{" + "".join(f"a{n}: containers(first: 1000) {{ totalCount nodes {{ id }} }} " for n in range(50)) + "}"
    ),
}

FILTERS: Final[dict[str, Case]] = {
    "10,000 values of `in`": where({"linkedBy": {"in": [f"x{number}" for number in range(10_000)]}}),
    "10,000 values of `in` for a key": where(
        {"pallet": {"number": {"in": [f"x{number}" for number in range(10_000)]}}}
    ),
    "no values of `in`": where({"linkedBy": {"in": []}}),
    "`between` with three ends": where({"linkedDatetime": {"between": [WHEN, WHEN, WHEN]}}),
    "`between` the wrong way round": where({"linkedDatetime": {"between": ["2027-01-01T00:00:00Z", WHEN]}}),
    "`and` 100 times in each other": where(nested(100, "and")),
    "`or` 100 times in each other": where(nested(100, "or")),
    "`not` 100 times in each other": where(nested(100, "not")),
    "1,000 conditions side by side": where({"or": [{"linkedBy": {"eq": f"x{number}"}} for number in range(1_000)]}),
    "an empty filter": where({}),
    "`and` of nothing": where({"and": []}),
    "what would be a regular expression": where({"linkedBy": {"contains": "(a+)+$.*"}}),
    "`contains` with 500 kB": where({"linkedBy": {"contains": "x" * 500_000}}),
    "a field that there is not": where({"secret": {"eq": "x"}}),
    "null for a condition": where({"linkedBy": None}),
}

WRITES: Final[dict[str, Case]] = {
    "a string of 900 kB": create(operator="x" * 900_000),
    "a string of 5 MB": create(operator="x" * 5_000_000),
    "an empty key to be created": create(number=""),
    "a key of 3,000 bytes to be created": create(number="x" * 3_000),
    "a NUL and an emoji to be created": create(number="ABUSE\0🍌"),
    "60 pallets with their edges, 121 actions": create(pallets=pallets(60)),
    "10 nodes, and 20 in each of them": create(pallets=pallets(10, 20)),
    "nodes that create each other in a circle": create(pallets=circle()),
    "the same pallet twice in one write": create(pallets=pallets(1) * 2),
    "a pallet that is not there": create(pallets=[{"linkedDatetime": WHEN, "pallet": {"number": "NOWHERE"}}]),
    "a pallet by number and by creation": create(
        pallets=[{"linkedDatetime": WHEN, "pallet": {"number": "ABUSE", "create": {"number": "ABUSE"}}}]
    ),
    "an idempotency key of 10 kB": create(key="x" * 10_000),
    "an idempotency key of 10 kB as a header": graphql(
        CREATE, {"input": {"number": "ABUSE-header"}}, "Idempotency-Key: " + "x" * 10_000
    ),
    "an empty idempotency key": create(key=""),
    "infinitely much more": graphql(
        'mutation { updateBox(key: { number: "C00100101" }, increment: { weightInKg: 1e308 }) { box { weightInKg } } }'
    ),
    "an update of nothing": graphql('mutation { updateBox(key: { number: "C00100101" }, set: {}) { box { number } } }'),
    "a write of what is not there": graphql(
        'mutation { updateBox(key: { number: "NOWHERE" }, set: { isDangerous: true }) { box { number } } }'
    ),
    "an item twice in one transaction": graphql(
        "mutation @transaction { "
        'a: updateBox(key: { number: "C00100101" }, set: { isDangerous: true }) { box { number } } '
        'b: updateBox(key: { number: "C00100101" }, set: { isDangerous: false }) { box { number } } }'
    ),
    "50 writes of one item": graphql(
        "mutation {"
        + "".join(
            f'a{n}: updateBox(key: {{ number: "C00100101" }}, increment: {{ weightInKg: 1 }}) {{ box {{ number }} }} '
            for n in range(50)
        )
        + "}"
    ),
}
