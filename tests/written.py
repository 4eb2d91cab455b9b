"""What tests of mutations share: the table as it lies there, and errors in short."""

from __future__ import annotations

from typing import Any

from graph.ours import is_ours
from graph.requests import Item, Scan, key_value
from tests.conftest import Served

Stored = dict[tuple[str, ...], Item]
"""The items of a table by their key, as text."""


def s(text: str) -> dict[str, str]:
    """Write text as DynamoDB JSON."""
    return {"S": text}


def n(number: object) -> dict[str, str]:
    """Write a number as DynamoDB JSON."""
    return {"N": str(number)}


def item(pk: str, sk: str, **attributes: Any) -> Item:
    """Write an item with the keys pk and sk: text and numbers as they are, all else as DynamoDB JSON."""
    return {"pk": s(pk), "sk": s(sk)} | {name: _attribute(value) for name, value in attributes.items()}


def _attribute(value: Any) -> Any:
    if isinstance(value, str):
        return s(value)
    return n(value) if isinstance(value, (int, float)) else value


async def stored(served: Served, table: str | None = None) -> Stored:
    """Read every item of the user's that lies in a table, by default the model's first."""
    name = table or served.table
    table_ = served.graph.model.tables[name]
    keys = table_.key_attributes
    found: Stored = {}
    start = None
    sent = list(served.sent)
    while True:
        response = await served.graph.send(Scan(name, 0, 1, start=start))
        for one in (item for item in response["Items"] if not is_ours(item, table_)):
            found[tuple(str(next(iter(one[key].values()))) for key in keys)] = _in_order(one)
        if "LastEvaluatedKey" not in response:
            served.sent[:] = sent
            return found
        start = tuple((key, key_value(response["LastEvaluatedKey"][key])) for key in keys)


def _in_order(one: Item) -> Item:
    """Put the entries of sets into an order: they have none."""
    sets = ("SS", "NS", "BS")
    return {
        name: {letter: sorted(content)} if letter in sets else value
        for name, value in one.items()
        for letter, content in value.items()
    }


def code(error: Any) -> tuple[str, str | None]:
    """Give an error's code, and the argument that is at fault."""
    return error["extensions"]["code"], error["extensions"].get("argument")


def codes(body: Any) -> dict[str, tuple[str, str | None]]:
    """Give the code and argument of each error of a response, by the field that failed."""
    return {error["path"][0]: code(error) for error in body.get("errors", ())}


def actions(served: Served) -> list[str]:
    """Name what each transaction that was sent does: "Put", "Update", "Delete" and "ConditionCheck"."""
    return [
        next(iter(action))
        for operation, parameters in served.sent
        if operation == "TransactWriteItems"
        for action in parameters["TransactItems"]
    ]


# --- boxes: a node with fields of every kind -------------------------------------------------------------------------

BOXES = """extend schema
  @table(name: "boxes", partitionKey: "pk", sortKey: "sk", type: "type")
  @index(name: "by-state", partitionKey: "state", sortKey: "data")
enum State { OPEN SENT }
type Size { width: Int!  unit: String }
type Box @node(partition: "BOX#{number}", sort: "box") @indexed(by: "by-state", sort: "{weight:06}#{label:lower}") {
  number: ID!
  state: State
  weight: Int
  label: String
  amount: Float
  names: [String!]
  colours: [String!] @attribute(set: true)
  numbers: [Int!] @attribute(set: true)
  size: Size
  anything: JSON
  raw: Base64
  when: DateTime
}
input Weights { from: Int  to: Int }
type Query { ofState(state: State!, weight: Weights): [Box!]! @find }
"""


async def create(served: Served, fields: str) -> Any:
    data = await served.data(f"mutation {{ createBox(input: {{ {fields} }}) {{ box {{ number }} }} }}")
    return data["createBox"]["box"]


async def update(served: Served, arguments: str, ask: str = "number") -> Any:
    data = await served.data(f'mutation {{ updateBox(key: {{ number: "1" }}, {arguments}) {{ box {{ {ask} }} }} }}')
    return data["updateBox"]["box"]
