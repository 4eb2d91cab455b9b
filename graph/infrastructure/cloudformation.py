"""A template of CloudFormation, as YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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

REMARKS = (
    "A stack changes one index at a time, and fills none: `tablegraph table apply` backfills what templates make "
    "(or `tablegraph repair --only STALE_KEY`, for an index that a stack has made).",
    "The policy is for the role of the server: deploy with --capabilities CAPABILITY_IAM.",
)
RETAINED = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}


def cloudformation(resources: Resources) -> str:
    """Write the template: tables and buckets, which stay when the stack goes, and a policy for the server."""
    remarks = commented((*resources.remarks, *REMARKS))
    return "\n".join([remarks, *_block(template(resources), "")]) + "\n"


def template(resources: Resources) -> dict[str, Any]:
    """Give the template as it is before it is written."""
    tables = identifiers((one.request.table for one in resources.tables), "")
    buckets = identifiers(resources.buckets, "")
    ids = {(Kind.TABLE, name): f"{one}Table" for name, one in tables.items()}
    ids |= {(Kind.BUCKET, name): f"{one}Bucket" for name, one in buckets.items()}
    made = {ids[Kind.TABLE, one.request.table]: _table(one) for one in resources.tables}
    made |= {ids[Kind.BUCKET, name]: _bucket(name) for name in resources.buckets}
    statements = [_statement(right, ids) for right in resources.rights]
    made["ServerPolicy"] = {
        "Type": "AWS::IAM::ManagedPolicy",
        "Properties": {
            "Description": "What the tablegraph server of this model does, and nothing beyond",
            "PolicyDocument": {"Version": "2012-10-17", "Statement": statements},
        },
    }
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "The tables of a tablegraph model",
        "Resources": made,
        "Outputs": {f"{POLICY.title()}Policy": {"Value": {"Ref": "ServerPolicy"}}},
    }


def _table(table: TableResource) -> dict[str, Any]:
    definition = dict(table.request.definition)
    # The rest of the request's words are CloudFormation's as well.
    definition["StreamSpecification"] = {"StreamViewType": definition["StreamSpecification"]["StreamViewType"]}
    if table.expiry is not None:
        definition["TimeToLiveSpecification"] = {"AttributeName": table.expiry, "Enabled": True}
    definition["PointInTimeRecoverySpecification"] = {"PointInTimeRecoveryEnabled": True}
    return {"Type": "AWS::DynamoDB::Table", **RETAINED, "Properties": definition}


def _bucket(name: str) -> dict[str, Any]:
    closed = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    properties = {"BucketName": name, "PublicAccessBlockConfiguration": dict.fromkeys(closed, True)}
    return {"Type": "AWS::S3::Bucket", **RETAINED, "Properties": properties}


def _statement(right: Right, ids: Mapping[tuple[Kind, str], str]) -> dict[str, Any]:
    limited = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": list(right.keys)}}
    return {
        "Sid": right.name,
        "Effect": "Allow",
        "Action": list(right.actions),
        "Resource": [_arn(one, ids) for one in right.places],
        **({"Condition": limited} if right.keys else {}),
    }


def _arn(place: Place, ids: Mapping[tuple[Kind, str], str]) -> Any:
    made = ids.get((place.kind, place.name))
    if made is not None:
        return {"Fn::Sub": f"${{{made}.Arn}}{place.inside}"} if place.inside else {"Fn::GetAtt": [made, "Arn"]}
    if is_elsewhere(place.name):
        return place.name + place.inside
    where = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/"
    return {"Fn::Sub": f"{where}{place.name}{place.inside}"}


# --- YAML ---------------------------------------------------------------------------------------------------------


def _block(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    """Write a map, an entry a line; every text but the names is quoted, so that none is taken for anything else."""
    for name, entry in value.items():
        if isinstance(entry, Mapping):
            yield f"{indent}{name}:"
            yield from _block(entry, indent + "  ")
        elif isinstance(entry, list):
            yield f"{indent}{name}:"
            yield from _list(entry, indent + "  ")
        else:
            yield f"{indent}{name}: {_scalar(entry)}"


def _list(entries: Sequence[Any], indent: str) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, Mapping):
            first, *rest = _block(entry, indent + "  ")
            yield f"{indent}- {first.lstrip()}"
            yield from rest
        else:
            yield f"{indent}- {_scalar(entry)}"


def _scalar(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else quoted(value)
