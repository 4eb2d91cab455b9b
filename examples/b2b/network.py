"""A larger network for the b2b example, always the same: 3 businesses, 60 customers, 30 stores, 400 orders."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

BUSINESSES, CUSTOMERS, STORES, ORDERS = 3, 60, 30, 400

Item = dict[str, dict[str, Any]]

FIRST = ("Amara", "Bruno", "Carla", "Diego", "Emeka", "Freya", "Goran", "Hana", "Ivan", "Jomo", "Kaja", "Lena")
LAST = ("Adler", "Banda", "Costa", "Duarte", "Evans")
TOWNS = (
    "Adelaide",
    "Ballarat",
    "Cairns",
    "Darwin",
    "Echuca",
    "Fremantle",
    "Geelong",
    "Hobart",
    "Ipswich",
    "Kalgoorlie",
)
TAGS = ("art", "book", "film", "garden", "music")
STATUSES = ("OPEN", "PAID", "FINISHED")


def items() -> Iterator[Item]:
    """Yield every item as DynamoDB's JSON: core items, links in both directions, tags."""
    random = Random(2020)
    core: dict[str, tuple[str, Item]] = {}
    for number in range(1, BUSINESSES + 1):
        core[f"b{number}"] = ("business", _item(f"b{number}", "business", businessName=f"Business {number}"))
    for number in range(1, CUSTOMERS + 1):
        first, last = FIRST[number % len(FIRST)], LAST[number % len(LAST)]
        sort = f"customer.{first.lower()}.{last.lower()}"
        core[f"c{number}"] = ("customer", _item(f"c{number}", sort, firstName=first, lastName=last, **_owner(random)))
    for number in range(1, STORES + 1):
        name = f"{TOWNS[number % len(TOWNS)]} {number}"
        core[f"s{number}"] = ("store", _item(f"s{number}", f"store.{name.lower()}", storeName=name, **_owner(random)))
    for number in range(1, ORDERS + 1):
        core[f"o{number}"] = ("order", _order(random, f"o{number}"))
    yield from (item for _, item in core.values())
    yield from _links(random, core)
    yield from _tags(random, core)


def _order(random: Random, number: str) -> Item:
    created = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=random.randrange(500_000))
    return _item(
        number,
        f"order.{int(created.timestamp())}",
        createdTime=created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        status=random.choice(STATUSES),
        customerId=f"c{random.randrange(1, CUSTOMERS + 1)}",
        **_owner(random),
    )


def _links(random: Random, core: dict[str, tuple[str, Item]]) -> Iterator[Item]:
    for customer in range(1, CUSTOMERS + 1):
        for store in random.sample(range(1, STORES + 1), 3):
            yield _copy(f"customer#c{customer}", f"store#s{store}", core[f"s{store}"][1])
            yield _copy(f"store#s{store}", f"customer#c{customer}", core[f"c{customer}"][1])


def _tags(random: Random, core: dict[str, tuple[str, Item]]) -> Iterator[Item]:
    for tag in TAGS:
        for number in random.sample(sorted(core), 60):
            kind, item = core[number]
            yield _copy(f"tag#{tag}", f"{kind}#{number}", item)


def _owner(random: Random) -> dict[str, str]:
    return {"businessId": f"b{random.randrange(1, BUSINESSES + 1)}"}


def _item(number: str, sort: str, **attributes: str) -> Item:
    return {name: {"S": value} for name, value in {"id": number, "type": sort, **attributes}.items()}


def _copy(one: str, other: str, item: Item) -> Item:
    """Make the item of a link: the two keys, and the attributes of the item that the sort key names."""
    return {**item, "id": {"S": one}, "type": {"S": other}}
