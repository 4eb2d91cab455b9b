"""Requests as JSON: what is large or frequent is joined from bytes, Queries of one shape from what they share."""

from __future__ import annotations

from functools import lru_cache

import orjson

from graph.expressions import Placeholders, Value, with_values
from graph.requests import BatchGetItem, Prepared, Query, Request, key_of, key_pair


def body_of(request: Request) -> bytes:
    """Write the parameters of a request as JSON. Raises orjson.JSONEncodeError when they hold text that is none."""
    if isinstance(request, Query):
        return _query(request)
    return _batch(request) if isinstance(request, BatchGetItem) else orjson.dumps(request.parameters())


# --- Query --------------------------------------------------------------------------------------------------------


def _query(query: Query) -> bytes:
    values = [key_pair(value) for _, value in query.partition] + query.sort_values
    # Equal values share a placeholder: which are equal is part of the form.
    form = tuple(map(values.index, values))
    prepared = query.prepared.get(form) or _prepare(query, form)
    if prepared.values and not prepared.values.isdisjoint(values):
        return orjson.dumps(query.parameters())
    own = {f":v{number}": {letter: text} for number, (letter, text) in enumerate(dict.fromkeys(values))}
    if query.start is None:
        return b"%b%b}" % (prepared.head, orjson.dumps(own)[1:])
    start = orjson.dumps(key_of(query.start))
    return b'%b%b,"ExclusiveStartKey":%b}' % (prepared.head, orjson.dumps(own)[1:], start)


def _prepare(query: Query, form: tuple[int, ...]) -> Prepared:
    holders = Placeholders()
    # No value has such a type: each has a placeholder to itself, and they are the first ones.
    unknown: list[Value] = [("", str(number)) for number in form]
    size = len(query.partition)
    sort = None if query.sort is None else with_values(query.sort, iter(unknown[size:]))
    parameters = query.written(unknown[:size], sort, holders)
    parameters.pop("ExclusiveStartKey", None)
    values = parameters.pop("ExpressionAttributeValues")
    for number, _ in enumerate(dict.fromkeys(form)):
        del values[f":v{number}"]
    # What is left open at its end are the values' object and the whole one.
    head = orjson.dumps({**parameters, "ExpressionAttributeValues": values})[:-2] + b"," * bool(values)
    prepared = query.prepared[form] = Prepared(frozenset(holders.values) - {*unknown}, head)
    return prepared


# --- BatchGetItem -------------------------------------------------------------------------------------------------

_CONSISTENT = {True: b',"ConsistentRead":true', False: b""}


def _batch(request: BatchGetItem) -> bytes:
    values = [value for key in request.keys for _, value in key]
    try:
        # A line for each: a line break within a text would be escaped.
        written = orjson.dumps(values, option=orjson.OPT_INDENT_2)[len("[\n  ") : -len("\n]")].split(b",\n  ")
    except orjson.JSONEncodeError:
        # Numbers are among them.
        return orjson.dumps(request.parameters())
    key = _key_template(tuple([name for name, _ in request.keys[0]]))
    keys = b",".join([key] * len(request.keys)) % tuple(written)
    consistent = _CONSISTENT[request.consistent]
    return b'{"RequestItems":{%b:{"Keys":[%b]%b}}}' % (orjson.dumps(request.table), keys, consistent)


@lru_cache(maxsize=1000)
def _key_template(names: tuple[str, ...]) -> bytes:
    """Write a key whose values are missing: b'{"pk":{"S":%b},"sk":{"S":%b}}'."""
    attributes = [orjson.dumps(name).replace(b"%", b"%%") + b':{"S":%b}' for name in names]
    return b"{" + b",".join(attributes) + b"}"
