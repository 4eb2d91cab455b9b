"""A larger order book for the order-entry example, always the same: 40 customers, 600 orders, 6 sales reps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random
from typing import Any

CUSTOMERS, ORDERS, PRODUCTS, WAREHOUSES = 40, 600, 30, 4
SHARDS = 15

Item = dict[str, dict[str, Any]]

REPS = ("Ana Souza", "Ben Okafor", "Chloe Martin", "Dario Rossi", "Elif Kaya", "Finn Larsen")
TITLES = ("Clerk", "Packer", "Account Manager")
FIRMS = ("Anchor", "Beacon", "Copper", "Delta", "Ember", "Forge", "Granite", "Harbour", "Indigo", "Juniper")
KINDS = ("Books", "Foods", "Tools", "Travel")
GOODS = ("Chair", "Desk", "Lamp", "Monitor", "Paper", "Shelf")


def items() -> Iterator[Item]:
    """Yield every item as DynamoDB's JSON: people, goods, then orders."""
    random = Random(2018)
    reps = [str(number) for number in range(101, 101 + len(REPS))]
    yield from _people(random, reps)
    yield from _goods(random)
    customers = [(str(number), random.choice(reps)) for number in range(101, 101 + CUSTOMERS)]
    for number, (customer, rep) in enumerate(customers):
        name = f"{FIRMS[number % len(FIRMS)]} {KINDS[number // len(FIRMS)]}"
        yield _item(f"OE-CUSTOMER{customer}", f"EMPLOYEE-{rep}", "Customer", Data=_text(f"CUSTOMER-{name}"))
    for number in range(101, 101 + ORDERS):
        customer, rep = random.choice(customers)
        yield from _order(random, str(number), customer, rep)


def _people(random: Random, reps: list[str]) -> Iterator[Item]:
    for number, name in zip(reps, REPS, strict=True):
        partition = f"HR-EMPLOYEE-{number}"
        hired = date(2014, 1, 1) + timedelta(days=random.randrange(1200))
        title = random.choice(TITLES)
        yield _item(partition, name, "Employee", Data=_text(number))
        yield _item(partition, "HR-CONFIDENTIAL", "HireRecord", Data=_text(hired.isoformat()))
        yield _item(partition, f"JH-{hired.isoformat()}", "JobHistory", title=_text(title))
        yield _item(partition, f"TITLE-{title}", "JobHolder", Data=_text(hired.isoformat()))
        yield _item(
            partition, f"WAREHOUSE{random.randrange(3, 3 + WAREHOUSES)}", "WarehouseStaff",
            Data=_text(f"STAFF-{hired.isoformat()}"),
        )  # fmt: skip
        for quarter in range(1, 5):
            total = random.randrange(1_000, 250_000)
            yield _item(partition, f"2018-Q{quarter}", "SalesTotal", Data=_text(f"{total:012}"))


def _goods(random: Random) -> Iterator[Item]:
    for warehouse in range(3, 3 + WAREHOUSES):
        yield _item(f"OE-WAREHOUSE{warehouse}", f"REGION{1 + warehouse % 2}", "Warehouse")
    for product in range(101, 101 + PRODUCTS):
        partition = f"OE-PRODUCT{product}"
        stock = {warehouse: random.randrange(200) for warehouse in range(3, 3 + WAREHOUSES)}
        name = f"{GOODS[product % len(GOODS)]} {product}"
        yield _item(partition, name, "Product", totalInventory=_number(sum(stock.values())))
        for warehouse, quantity in stock.items():
            yield _item(
                partition, f"WAREHOUSE{warehouse}", "Stock", Data=_text(f"STOCK-{product}"), quantity=_number(quantity)
            )


def _order(random: Random, number: str, customer: str, rep: str) -> Iterator[Item]:
    placed = date(2018, 1, 1) + timedelta(days=random.randrange(365))
    status = random.choices(("OPEN", "SHIPPED", "CLOSED"), (2, 3, 5))[0]
    data, shard = _text(f"{status}-{placed.isoformat()}"), _text(str(random.randrange(SHARDS)))
    partition, account_rep = f"OE-ORDER{number}", _text(f"EMPLOYEE-{rep}")
    yield _item(partition, f"CUSTOMER{customer}", "Order", Data=data, Shard=shard, accountRep=account_rep)
    yield _item(partition, f"EMPLOYEE-{rep}", "RepOrder", Data=data, customer=_text(f"CUSTOMER{customer}"))
    for product in sorted(random.sample(range(101, 101 + PRODUCTS), 3)):
        quantity = _number(random.randrange(1, 20))
        yield _item(partition, f"PRODUCT{product}", "OrderItem", Data=data, Shard=shard, quantity=quantity)


def _item(partition: str, sort: str, type_name: str, **attributes: dict[str, Any]) -> Item:
    return {"PK": _text(partition), "SK": _text(sort), "Type": _text(type_name), **attributes}


def _text(value: str) -> dict[str, str]:
    return {"S": value}


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}
