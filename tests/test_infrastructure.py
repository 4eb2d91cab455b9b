"""CloudFormation and Terraform: what is printed is what `table apply` makes, and what a server of the model may do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import hcl2
import pytest
import yaml
from cfnlint.api import lint  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from graph.apply.plan import plan
from graph.apply.run import apply
from graph.apply.state import State, Target, targets
from graph.client import Client
from graph.infrastructure.cloudformation import cloudformation
from graph.infrastructure.resources import identifiers, quoted, resources_of
from graph.infrastructure.rights import rights_of
from graph.infrastructure.terraform import terraform
from graph.loaders import Graph
from graph.requests import CreateTable, DescribeTable, DescribeTimeToLive
from resolvers.sdl import compile_model
from server.cli import main
from tests.conftest import BANANAS, ROOT, Serve, Served, way_to
from tests.test_apply import Told
from tests.test_readme import EXAMPLES

SHOP = """extend schema
  @table(name: "shop.{made:yyyyMM}", partitionKey: "PK", sortKey: "SK")
  @table(name: "arn:aws:dynamodb:eu-west-1:123456789012:table/afar", partitionKey: "PK")
  @table(name: "tenants_of-all", partitionKey: "number", sortKey: "x${y}", copies: STREAM)
  @index(name: "byTenant", table: "tenants_of-all", partitionKey: ["tenant", "region"], sortKey: ["status", "date"])

type Line @node(partition: "{made}", sort: "{text}", table: "shop.{made:yyyyMM}") { made: Date! text: String! }
type Far @node(partition: "{code}", table: "arn:aws:dynamodb:eu-west-1:123456789012:table/afar") { code: ID! }
type Order @node(partition: "{number}", sort: "{text}", table: "tenants_of-all") {
  number: Int!
  text: String!
  tenant: ID
  region: String
  status: String
  date: Date
  gone: Int @ttl
  picture: Base64 @blob(s3: "pictures-of-orders")
}
type Query { orders(tenant: ID!, region: String!): [Order!]! @find }
"""
MODELS = {name: (ROOT / "examples" / name / "schema.graphql").read_text() for name in EXAMPLES} | {"shop": SHOP}


def period_of(sdl: str) -> str | None:
    return "202601" if "yyyyMM" in sdl else None


def made_by_stack(sdl: str) -> dict[str, dict[str, Any]]:
    """The tables of the printed template as CreateTable takes them, with their TTL attributes beside."""
    stack = yaml.safe_load(cloudformation(resources_of(compile_model(sdl), period_of(sdl))))
    tables = [one for one in stack["Resources"].values() if one["Type"] == "AWS::DynamoDB::Table"]
    return {one["Properties"]["TableName"]: _as_request(one["Properties"]) for one in tables}


def _as_request(properties: dict[str, Any]) -> dict[str, Any]:
    definition = dict(properties)
    assert definition.pop("PointInTimeRecoverySpecification") == {"PointInTimeRecoveryEnabled": True}
    definition["StreamSpecification"] = {"StreamEnabled": True, **definition["StreamSpecification"]}
    return definition


# --- the same tables ----------------------------------------------------------------------------------------------

OF_ONE_ALONE = re.compile(r"Arn$|Status$|^(TableId|TableName|CreationDateTime|LatestStreamLabel)$")


def alike(described: Any) -> Any:
    """A description without what no two tables have in common."""
    if isinstance(described, Mapping):
        return {key: alike(value) for key, value in described.items() if not OF_ONE_ALONE.search(key)}
    if isinstance(described, list):
        # DynamoDB names indexes and attributes in any order; those of a key it keeps.
        entries = [alike(entry) for entry in described]
        is_key = any("KeyType" in entry for entry in described if isinstance(entry, Mapping))
        return entries if is_key else sorted(entries, key=json.dumps)
    return described


@pytest.mark.parametrize("name", MODELS)
async def test_a_stack_makes_the_tables_that_apply_makes(engine: str, name: str) -> None:
    sdl = MODELS[name]
    printed, transport = made_by_stack(sdl), way_to(engine)
    try:
        model = compile_model(sdl)
        graph = Graph(model, Client(transport))
        made = {one.name: one for one in targets(model, period_of(sdl)) if not one.name.startswith("arn:")}
        assert printed.keys() == made.keys()
        for table, target in made.items():
            elsewhere = f"{name}-by-stack-{table}"
            definition = dict(printed[table])
            expiry = definition.pop("TimeToLiveSpecification", None)
            await graph.send(CreateTable(elsewhere, {**definition, "TableName": elsewhere}))
            here = Target(target.model, target.table, f"{name}-by-apply-{table}")

            await apply(graph, here, Told())

            one, other = [(await graph.send(DescribeTable(each)))["Table"] for each in (elsewhere, here.name)]
            assert alike(one) == alike(other)
            assert one["DeletionProtectionEnabled"] is True
            ttl = (await graph.send(DescribeTimeToLive(here.name)))["TimeToLiveDescription"]
            wanted = {"AttributeName": ttl["AttributeName"], "Enabled": True} if "AttributeName" in ttl else None
            assert expiry == wanted
            # And apply finds nothing to do to what the stack has made.
            steps = plan(Target(target.model, target.table, elsewhere), State(one, ttl))
            assert steps == ()
    finally:
        transport.close()


@pytest.mark.parametrize("name", MODELS)
def test_terraform_says_the_same_as_the_stack(name: str) -> None:
    sdl = MODELS[name]
    parsed = hcl2.loads(terraform(resources_of(compile_model(sdl), period_of(sdl))))
    found = {}
    for one in blocks(parsed, "resource", "aws_dynamodb_table"):
        assert one["lifecycle"] == [{"prevent_destroy": True}]
        assert one["point_in_time_recovery"] == [{"enabled": True}]
        found[one["name"]] = _request_of(one)

    assert found == made_by_stack(sdl)


def blocks(parsed: Any, kind: str, type_: str) -> list[Any]:
    """The blocks of a type, with texts as they are meant."""
    found = [clean(one) for one in parsed.get(kind, ())]
    return [body for one in found for label, named in one.items() if label == type_ for body in named.values()]


def clean(value: Any) -> Any:
    """What the parser gives: texts keep their quotes, and blocks have a mark."""
    if isinstance(value, dict):
        return {clean(name): clean(entry) for name, entry in value.items() if name != "__is_block__"}
    if isinstance(value, list):
        return [clean(entry) for entry in value]
    if isinstance(value, str) and value.startswith('"'):
        return json.loads(value).replace("$${", "${")
    return value


def _request_of(one: dict[str, Any]) -> dict[str, Any]:
    keys = [("hash_key", "HASH"), ("range_key", "RANGE")]
    made: dict[str, Any] = {
        "TableName": one["name"],
        "BillingMode": one["billing_mode"],
        "AttributeDefinitions": [{"AttributeName": a["name"], "AttributeType": a["type"]} for a in one["attribute"]],
        "KeySchema": [{"AttributeName": one[key], "KeyType": kind} for key, kind in keys if key in one],
        "StreamSpecification": {"StreamEnabled": one["stream_enabled"], "StreamViewType": one["stream_view_type"]},
        "DeletionProtectionEnabled": one["deletion_protection_enabled"],
    }
    for index in one.get("global_secondary_index", ()):
        schema = [{"AttributeName": k["attribute_name"], "KeyType": k["key_type"]} for k in index["key_schema"]]
        made.setdefault("GlobalSecondaryIndexes", []).append(_index_of(index, schema))
    for index in one.get("local_secondary_index", ()):
        schema = [
            {"AttributeName": one["hash_key"], "KeyType": "HASH"},
            {"AttributeName": index["range_key"], "KeyType": "RANGE"},
        ]
        made.setdefault("LocalSecondaryIndexes", []).append(_index_of(index, schema))
    for ttl in one.get("ttl", ()):
        made["TimeToLiveSpecification"] = {"AttributeName": ttl["attribute_name"], "Enabled": ttl["enabled"]}
    return made


def _index_of(index: dict[str, Any], schema: list[dict[str, str]]) -> dict[str, Any]:
    held = {"NonKeyAttributes": index["non_key_attributes"]} if "non_key_attributes" in index else {}
    projection = {"ProjectionType": index["projection_type"], **held}
    return {"IndexName": index["name"], "KeySchema": schema, "Projection": projection}


@pytest.mark.parametrize("name", MODELS)
def test_cfn_lint_has_nothing_to_say(name: str) -> None:
    sdl = MODELS[name]
    text = cloudformation(resources_of(compile_model(sdl), period_of(sdl)))

    assert lint(text, regions=["eu-central-1"]) == []


def test_cfn_lint_would_say_something() -> None:
    text = cloudformation(resources_of(compile_model(SHOP))).replace("KeySchema", "KeySchemas")

    assert lint(text, regions=["eu-central-1"]) != []


# --- rights -------------------------------------------------------------------------------------------------------


def allowed(model: Any, **settings: bool) -> dict[str, set[str]]:
    """By action what it is allowed on."""
    found: dict[str, set[str]] = {}
    for right in rights_of(model, **settings):
        for action in right.actions:
            found.setdefault(action.split(":")[1], set()).update(place.name + place.inside for place in right.places)
    return found


def needed(served: Served) -> set[tuple[str, str]]:
    """The actions that requests are made of, each on what it is done to."""
    found = set()
    for operation, parameters in served.sent:
        if operation == "TransactWriteItems":
            verbs = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem"}
            for action in parameters["TransactItems"]:
                ((verb, body),) = action.items()
                found.add((verbs.get(verb, "ConditionCheckItem"), body["TableName"]))
        elif "RequestItems" in parameters:
            found |= {(operation, table) for table in parameters["RequestItems"]}
        else:
            inside = "/index/*" if "IndexName" in parameters else ""
            found.add((operation, parameters["TableName"] + inside))
    return found


async def test_all_that_a_server_sends_is_allowed(serve: Serve) -> None:
    served = await serve(BANANAS.read_text())
    rights, sent = allowed(served.graph.model), set()
    for query in (
        'mutation { createContainer(input: { number: "1", pallets: [{ linkedDatetime: "2022-07-19T17:59:58Z",'
        ' pallet: { create: { number: "2" } } }] }) { container { id } } }',
        'mutation { createBox(input: { number: "3", pallet: { linkedDatetime: "2022-07-19T17:59:58Z",'
        ' pallet: { number: "2" } } }) { box { id } } }',
        'mutation { updateContainer(key: { number: "1" }, set: { operator: "x" }) { container { operator } } }',
        '{ pallet(number: "2") { container { operator pallets { nodes { origin } } } } }',
        "{ containers { nodes { number } } }",
        '{ one: box(number: "3") { weightInKg } other: box(number: "4") { weightInKg } }',
        '{ box(number: "3") { weightInKg } }',
        'mutation { deleteContainer(key: { number: "1" }, cascade: true) { deletedId } }',
    ):
        await served(query)
        sent |= needed(served)

    reading = {"Query", "Scan", "GetItem", "BatchGetItem"}
    assert {action for action, _ in sent} == reading | {"PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"}
    assert [one for one in sent if one[1] not in rights[one[0]]] == []
    # And nothing beyond it, but for what serving and following take besides.
    unsent = rights.keys() - {action for action, _ in sent}
    assert unsent == {"DescribeTable", "DescribeStream", "GetShardIterator", "GetRecords"}


def test_a_server_without_mutations_may_not_write() -> None:
    model = compile_model(BANANAS.read_text())

    (lease,) = [right for right in rights_of(model, mutations=False) if "dynamodb:PutItem" in right.actions]
    assert (lease.name, lease.actions, lease.keys) == (
        "HoldLease",
        ("dynamodb:PutItem",),
        ("tablegraph-stream",),
    )
    names = [right.name for right in rights_of(model, mutations=False, stream=False)]
    assert names == ["ReadItems", "Query", "Scan"]


def test_copies_that_follow_are_written_without_mutations_too() -> None:
    rights = allowed(compile_model(SHOP), mutations=False)

    assert rights["UpdateItem"] == rights["DeleteItem"] == {"tenants_of-all"}
    assert rights["GetObject"] == {"pictures-of-orders/*"}
    assert "PutObject" not in rights


@pytest.mark.parametrize("mutations", [True, False])
def test_both_print_the_same_policy(mutations: bool) -> None:
    needs = resources_of(compile_model(SHOP), mutations=mutations)
    stack = yaml.safe_load(cloudformation(needs))
    policy = stack["Resources"]["ServerPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    (document,) = blocks(hcl2.loads(terraform(needs)), "data", "aws_iam_policy_document")

    assert [(one["Sid"], one["Action"]) for one in policy] == [
        (one["sid"], one["actions"]) for one in document["statement"]
    ]
    assert [len(one["Resource"]) for one in policy] == [len(one["resources"]) for one in document["statement"]]
    # A series' tables by their pattern, and a table of another account by its name.
    items = json.dumps([one["Resource"] for one in policy if one["Sid"] == "ReadItems"])
    assert "table/shop.*" in items
    assert "arn:aws:dynamodb:eu-west-1:123456789012:table/afar" in items


# --- the text -----------------------------------------------------------------------------------------------------


@given(st.text())
def test_every_text_reads_back_from_yaml(text: str) -> None:
    assert yaml.safe_load(quoted(text)) == text


@given(st.lists(st.text("aZ0-_./é", min_size=1), unique=True), st.sampled_from(["", "_"]))
def test_identifiers_are_of_letters_and_digits_and_all_different(names: list[str], separator: str) -> None:
    found = identifiers(names, separator)

    assert list(found) == names
    assert len({*found.values()}) == len(names)
    assert all(
        re.fullmatch(r"[a-z][a-z0-9_]*" if separator else r"[A-Za-z][A-Za-z0-9]*", one) for one in found.values()
    )


def test_the_command_prints_what_there_is_to_deploy(capsys: pytest.CaptureFixture[str]) -> None:
    step5 = str(ROOT / "examples/step5/schema.graphql")

    assert main(["table", "cloudformation", "--schema", step5]) == 0
    without = capsys.readouterr().out
    assert main(["table", "terraform", "--schema", step5, "--period", "202601", "--mutations", "false"]) == 0
    assert main(["table", "terraform", "--schema", step5, "--period", "2026"]) == 2

    out, err = capsys.readouterr()
    assert "none of its tables is here" in without.replace("\n#  ", "")
    assert "readings_202601" not in without
    assert 'name                        = "readings_202601"' in out
    assert "PutObject" not in out
    assert "--period: expected yyyyMM" in err
