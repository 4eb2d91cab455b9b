"""What the three example models compile to, as tables of facts."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from graph.keys import Shard
from graph.model import FieldKind, Model
from resolvers.sdl import compile_model
from tests.test_model import indexes, keys, layouts, shape

ROOT = Path(__file__).parent.parent


@cache
def example(name: str) -> Model:
    """Compile one of the example models."""
    return compile_model((ROOT / "examples" / name / "schema.graphql").read_text())


LAYOUTS = [
    ("bananas", "Container", {"objectId": "CONTAINER_{number}", "relatedObjectId": "CONTAINER_{number}"}),
    ("bananas", "BoxLoading", {"objectId": "PALLET_{pallet.number}", "relatedObjectId": "BOX_{box.number}"}),
    ("order-entry", "Employee", {"PK": "HR-EMPLOYEE-{number}", "SK": "{name}", "Data": "{number}"}),
    ("order-entry", "JobHistory", {"PK": "HR-EMPLOYEE-{employee.number}", "SK": "JH-{startDate}"}),
    (
        "order-entry",
        "HireRecord",
        {"PK": "HR-EMPLOYEE-{employee.number}", "SK": "HR-CONFIDENTIAL", "Data": "{hireDate}"},
    ),
    (
        "order-entry",
        "SalesTotal",
        {"PK": "HR-EMPLOYEE-{employee.number}", "SK": "{period}", "Data": "{orderTotal:012}"},
    ),
    (
        "order-entry",
        "Order",
        {
            "PK": "OE-ORDER{number}",
            "SK": "CUSTOMER{customer.number}",
            "Data": "{status}-{date}",
            "Shard": "{shard(15)}",
        },
    ),
    (
        "order-entry",
        "RepOrder",
        {
            "PK": "OE-ORDER{order.number}",
            "SK": "EMPLOYEE-{accountRep.number}",
            "Data": "{order.status}-{order.date}",
        },
    ),
    (
        "b2b",
        "Customer",
        {
            "id": "{number}",
            "type": "customer.{firstName:lower}.{lastName:lower}",
            "businessId": "{business.number}",
        },
    ),
    (
        "b2b",
        "Order",
        {
            "id": "{number}",
            "type": "order.{createdTime:epoch}",
            "businessId": "{business.number}",
            "customerId": "{customer.number}",
        },
    ),
]


@pytest.mark.parametrize(("model", "type_name", "templates"), LAYOUTS, ids=lambda value: value if value else None)
def test_a_type_fills_these_key_attributes(model: str, type_name: str, templates: dict[str, str]) -> None:
    assert keys(example(model), type_name) == templates


RELATIONSHIPS = [
    # model, field, items read, from, to, ways, inverses
    ("bananas", "Container.pallets", "PalletLoading", "container", "pallet", ["table"], ("container",)),
    ("bananas", "Pallet.container", "PalletLoading", "pallet", "container", ["reverse-lookup-index"], ()),
    ("bananas", "Pallet.boxes", "BoxLoading", "pallet", "box", ["table"], ("pallet",)),
    ("bananas", "Box.pallet", "BoxLoading", "box", "pallet", ["reverse-lookup-index"], ()),
    ("order-entry", "Employee.jobs", "JobHistory", "employee", None, ["table"], ()),
    ("order-entry", "Employee.customers", "Customer", "accountRep", None, ["GSI-1"], ()),
    ("order-entry", "Employee.orders", "RepOrder", "accountRep", "order", ["GSI-1"], ()),
    ("order-entry", "Customer.orders", "Order", "customer", None, ["GSI-1"], ()),
    ("order-entry", "Order.items", "OrderItem", "order", None, ["table"], ()),
    ("order-entry", "Product.orderItems", "OrderItem", "product", None, ["GSI-1"], ()),
    ("order-entry", "Product.stock", "Stock", "product", None, ["table"], ()),
    ("order-entry", "Warehouse.staff", "WarehouseStaff", "warehouse", "employee", ["GSI-1"], ()),
    ("b2b", "Business.customers", "Customer", "business", None, ["businessIdGsi"], ()),
    ("b2b", "Customer.orders", "Order", "customer", None, ["customerIdGsi"], ()),
    ("b2b", "Customer.stores", "Management", "customer", "store", ["table", "typeGsi"], ()),
    ("b2b", "Store.customers", "Management", "store", "customer", ["table", "typeGsi"], ()),
    ("b2b", "Order.tags", "Tagging", "subject", "tag", ["typeGsi"], ()),
    ("b2b", "Tag.subjects", "Tagging", "tag", "subject", ["table"], ()),
]


@pytest.mark.parametrize(
    ("model", "field", "items", "start", "end", "ways", "inverses"),
    [pytest.param(*row, id=f"{row[0]} {row[1]}") for row in RELATIONSHIPS],
)
def test_a_relationship_reads_these_items_by_these_ways(
    model: str, field: str, items: str, start: str, end: str | None, ways: list[str], inverses: tuple[str, ...]
) -> None:
    source, name = field.split(".")

    made = example(model).relationships[source, name]

    assert (made.item_types, made.start, made.end) == ((items,), start, end)
    assert indexes(made) == ways
    assert made.inverses == inverses


def test_a_path_is_its_hops() -> None:
    made = example("bananas").relationships["Container", "boxes"]

    assert [(hop.source, hop.name) for hop in made.path] == [("Container", "pallets"), ("Pallet", "boxes")]
    assert made.targets == ("Box",)


FINDS = [
    ("bananas", "containers", "Container", [], {}),
    ("order-entry", "employeesByName", "Employee", ["GSI-1"], {"name": ("name",)}),
    ("order-entry", "orders", "Order", ["GSI-2"], {"status": ("status",), "date": ("date",)}),
    ("order-entry", "ranking", "SalesTotal", ["GSI-1"], {"period": ("period",)}),
    ("b2b", "tagged", "Tagging", ["table"], {"tag": ("tag", "name")}),
]


@pytest.mark.parametrize(("model", "name", "items", "ways", "paths"), FINDS, ids=lambda value: str(value)[:20])
def test_a_find_reads_these_items_by_these_ways(
    model: str, name: str, items: str, ways: list[str], paths: dict[str, tuple[str, ...]]
) -> None:
    find = example(model).finds[name]

    assert find.item_types == (items,)
    assert [access.index.name or "table" for access in find.accesses] == ways
    assert {argument.name: argument.path for argument in find.arguments} == paths


def test_the_finds_keep_their_order_and_their_ranges() -> None:
    finds = example("order-entry").finds

    assert finds["ranking"].descending
    assert [argument.range_fields for argument in finds["orders"].arguments] == [None, ("from", "to")]
    assert finds["orders"].accesses[0].layouts[0].templates["Shard"].parts == (Shard(15),)


RIVALS = [
    ("bananas", "PalletLoading", None, set()),
    ("order-entry", "JobHolder", None, {"Employee", "SalesTotal"}),
    ("order-entry", "Stock", None, {"Product"}),
    ("order-entry", "Order", None, set()),
    ("order-entry", "Order", "GSI-2", {"OrderItem"}),
    ("b2b", "Customer", None, set()),
]


@pytest.mark.parametrize(("model", "layout", "index", "others"), RIVALS, ids=str)
def test_only_these_types_may_look_the_same(model: str, layout: str, index: str | None, others: set[str]) -> None:
    compiled = example(model)

    rivals = compiled.rivals.get((layout, index), ())

    assert {rival.type_name for rival in rivals} == others


def test_a_mirror_is_a_layout_of_its_own_and_the_copy_decides_which_is_read() -> None:
    model = example("b2b")

    assert layouts(model, "Management") == {
        "Management": {"id": "customer#{customer.number}", "type": "store#{store.number}"},
        "Management(mirror 1)": {"id": "store#{store.number}", "type": "customer#{customer.number}"},
    }
    assert model.relationships["Customer", "stores"].accesses[0].layouts[0].copy == "store"
    assert model.relationships["Store", "customers"].accesses[0].layouts[0].copy == "customer"


def test_a_union_in_a_key_is_a_layout_for_each_member() -> None:
    model = example("b2b")

    assert {layout.ends["subject"]: shape(layout.templates["type"]) for layout in model.items["Tagging"].layouts} == {
        "Business": "business#{subject.number}",
        "Customer": "customer#{subject.number}",
        "Order": "order#{subject.number}",
        "Store": "store#{subject.number}",
    }
    (access,) = model.relationships["Store", "tags"].accesses
    assert [layout.name for layout in access.layouts] == ["Tagging(subject: Store)"]


def test_an_edges_own_reference_stands_for_the_same_field_of_its_end() -> None:
    variables = example("order-entry").items["RepOrder"].layouts[0].templates["SK"].variables

    assert [variable.path for variable in variables] == [("accountRep", "number")]


def test_a_field_knows_where_its_value_comes_from() -> None:
    fields = example("b2b").items["Order"].fields

    assert {name: field.kind for name, field in fields.items()} == {
        "number": FieldKind.ATTRIBUTE,
        "createdTime": FieldKind.ATTRIBUTE,
        "status": FieldKind.ATTRIBUTE,
        "business": FieldKind.REFERENCE,
        "customer": FieldKind.REFERENCE,
        "tags": FieldKind.RELATIONSHIP,
    }
