"""A configuration of Terraform, as HCL that is laid out as `terraform fmt` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from graph.infrastructure.resources import (
    POLICY,
    Resources,
    TableResource,
    commented,
    identifiers,
    is_elsewhere,
    quoted,
)
from graph.infrastructure.rights import Kind, Place, Right

PROVIDER = ">= 6.29"
"""Indexes take `key_schema` from here on, which keys of several attributes need.

Source: AWS provider for Terraform, pull request 45357.
"""
REMARKS = (
    "Terraform adds an index and fills none: `tablegraph table apply` backfills what templates make (or `tablegraph "
    "repair --only STALE_KEY`, for an index that Terraform has made).",
)
TYPES = {Kind.TABLE: "aws_dynamodb_table", Kind.BUCKET: "aws_s3_bucket"}


@dataclass(frozen=True, slots=True)
class Raw:
    """An expression, written as it is."""

    text: str


Value = str | bool | Raw | list["str | Raw"]


@dataclass(frozen=True, slots=True)
class Block:
    """A block: its type, its labels, and its arguments and inner blocks in their order."""

    type: str
    labels: tuple[str, ...]
    body: tuple[tuple[str, Value] | Block, ...]


def terraform(resources: Resources) -> str:
    """Write the configuration: tables and buckets, which `destroy` spares, and a policy for the server."""
    tables = identifiers((one.request.table for one in resources.tables), "_")
    buckets = identifiers(resources.buckets, "_")
    ids = {(Kind.TABLE, name): one for name, one in tables.items()}
    ids |= {(Kind.BUCKET, name): one for name, one in buckets.items()}
    blocks = [_provider(), *(_table(one, tables[one.request.table]) for one in resources.tables)]
    for bucket in resources.buckets:
        blocks += _bucket(bucket, buckets[bucket])
    blocks += _policy(resources, ids)
    remarks = commented((*resources.remarks, *REMARKS))
    return "\n\n".join([remarks, *("\n".join(_written(block, "")) for block in blocks)]) + "\n"


def _provider() -> Block:
    aws = Raw(f'{{\n      source  = "hashicorp/aws"\n      version = "{PROVIDER}"\n    }}')
    return Block("terraform", (), (Block("required_providers", (), (("aws", aws),)),))


def _table(table: TableResource, label: str) -> Block:
    made = table.request.definition
    hash_key, *range_key = [key["AttributeName"] for key in made["KeySchema"]]
    body: list[tuple[str, Value] | Block] = [
        ("name", table.request.table),
        ("billing_mode", made["BillingMode"]),
        ("hash_key", hash_key),
        *(("range_key", name) for name in range_key),
        ("stream_enabled", True),
        ("stream_view_type", made["StreamSpecification"]["StreamViewType"]),
        ("deletion_protection_enabled", made["DeletionProtectionEnabled"]),
    ]
    for one in made["AttributeDefinitions"]:
        body.append(Block("attribute", (), (("name", one["AttributeName"]), ("type", one["AttributeType"]))))
    for one in made.get("GlobalSecondaryIndexes", ()):
        keys = [
            Block("key_schema", (), (("attribute_name", key["AttributeName"]), ("key_type", key["KeyType"])))
            for key in one["KeySchema"]
        ]
        body.append(Block("global_secondary_index", (), (("name", one["IndexName"]), *_projection(one), *keys)))
    for one in made.get("LocalSecondaryIndexes", ()):
        sort = next(key["AttributeName"] for key in one["KeySchema"] if key["KeyType"] == "RANGE")
        named = (("name", one["IndexName"]), ("range_key", sort), *_projection(one))
        body.append(Block("local_secondary_index", (), named))
    if table.expiry is not None:
        body.append(Block("ttl", (), (("attribute_name", table.expiry), ("enabled", True))))
    body.append(Block("point_in_time_recovery", (), (("enabled", True),)))
    return Block("resource", (TYPES[Kind.TABLE], label), (*body, _lasting()))


def _projection(index: Mapping[str, Mapping[str, list[str]]]) -> Iterator[tuple[str, Value]]:
    yield "projection_type", str(index["Projection"]["ProjectionType"])
    if names := index["Projection"].get("NonKeyAttributes"):
        yield "non_key_attributes", list(names)


def _lasting() -> Block:
    return Block("lifecycle", (), (("prevent_destroy", True),))


def _bucket(name: str, label: str) -> Iterator[Block]:
    yield Block("resource", (TYPES[Kind.BUCKET], label), (("bucket", name), _lasting()))
    closed = ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets")
    of: tuple[str, Value] = ("bucket", Raw(f"{TYPES[Kind.BUCKET]}.{label}.id"))
    yield Block("resource", ("aws_s3_bucket_public_access_block", label), (of, *((word, True) for word in closed)))


def _policy(resources: Resources, ids: Mapping[tuple[Kind, str], str]) -> Iterator[Block]:
    places = [place for right in resources.rights for place in right.places]
    if any((one.kind, one.name) not in ids and not is_elsewhere(one.name) for one in places):
        yield from (
            Block("data", (f"aws_{what}", "current"), ()) for what in ("partition", "region", "caller_identity")
        )
    statements = tuple(_statement(right, ids) for right in resources.rights)
    yield Block("data", ("aws_iam_policy_document", POLICY), statements)
    made: tuple[tuple[str, Value], ...] = (
        ("name_prefix", "tablegraph-"),
        ("description", "What the tablegraph server of this model does, and nothing beyond"),
        ("policy", Raw(f"data.aws_iam_policy_document.{POLICY}.json")),
    )
    yield Block("resource", ("aws_iam_policy", POLICY), made)
    yield Block("output", ("server_policy",), (("value", Raw(f"aws_iam_policy.{POLICY}.arn")),))


def _statement(right: Right, ids: Mapping[tuple[Kind, str], str]) -> Block:
    limited: tuple[tuple[str, Value], ...] = (
        ("test", "ForAllValues:StringEquals"),
        ("variable", "dynamodb:LeadingKeys"),
        ("values", list(right.keys)),
    )
    condition = (Block("condition", (), limited),) if right.keys else ()
    arns: list[str | Raw] = [_arn(place, ids) for place in right.places]
    return Block(
        "statement",
        (),
        (("sid", right.name), ("actions", list(right.actions)), ("resources", arns), *condition),
    )


def _arn(place: Place, ids: Mapping[tuple[Kind, str], str]) -> str | Raw:
    made = ids.get((place.kind, place.name))
    if made is not None:
        arn = f"{TYPES[place.kind]}.{made}.arn"
        return Raw(f'"${{{arn}}}{place.inside}"' if place.inside else arn)
    if is_elsewhere(place.name):
        return place.name + place.inside
    where = (
        "arn:${data.aws_partition.current.partition}:dynamodb:${data.aws_region.current.region}:"
        "${data.aws_caller_identity.current.account_id}:table/"
    )
    return Raw(f'"{where}{place.name}{place.inside}"')


# --- HCL ----------------------------------------------------------------------------------------------------------


def _written(block: Block, indent: str) -> Iterator[str]:
    head = " ".join((block.type, *(f'"{label}"' for label in block.labels)))
    if not block.body:
        yield f"{indent}{head} {{}}"
        return
    yield f"{indent}{head} {{"
    is_first = True
    for is_block, group in groupby(block.body, key=lambda one: isinstance(one, Block)):
        if is_block:
            for one in group:
                assert isinstance(one, Block)
                yield from ([] if is_first else [""])
                yield from _written(one, indent + "  ")
                is_first = False
        else:
            yield from _arguments([one for one in group if not isinstance(one, Block)], indent + "  ")
            is_first = False
    yield f"{indent}}}"


def _arguments(arguments: Sequence[tuple[str, Value]], indent: str) -> Iterator[str]:
    """Write arguments with their signs below each other, as far as each takes one line."""
    for is_long, group in groupby(arguments, key=lambda one: isinstance(one[1], list) and len(one[1]) > 1):
        entries = list(group)
        width = 0 if is_long else max(len(name) for name, _ in entries)
        for name, value in entries:
            if isinstance(value, list) and is_long:
                yield f"{indent}{name} = ["
                yield from (f"{indent}  {_scalar(one)}," for one in value)
                yield f"{indent}]"
            else:
                yield f"{indent}{name:{width}} = {_scalar(value)}"


def _scalar(value: Value) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_scalar, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Raw):
        return value.text
    return quoted(value).replace("${", "$${").replace("%{", "%%{")
