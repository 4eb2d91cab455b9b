"""Example queries of any model, for a person who meets its API for the first time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from graphql import parse, print_ast

from graph.model import Field, FieldKind, Find, ItemType, Model
from graph.patterns import lookup_arguments, lookup_name, search_name
from resolvers.types import scalar_at

NODES_SHOWN = 10


def example_queries(model: Model) -> Iterator[dict[str, str]]:
    """Write a query for every access pattern and every node's lookup: title, query and variables to fill in."""
    for find in model.finds.values():
        yield _find(model, find)
    for item in model.nodes:
        if item.searched:
            yield _search(model, item)
    for item in model.nodes:
        yield _lookup(model, item)


def _search(model: Model, item: ItemType) -> dict[str, str]:
    name = search_name(item.name)
    edges = f"edges {{ score node {{ {_leaves(model, item.name)} }} }} pageInfo {{ hasNextPage endCursor }}"
    query = f"query Search($text: String!) {{ {name}(text: $text, first: {NODES_SHOWN}) {{ {edges} }} }}"
    return _example(name, query, {"text": ""})


def _find(model: Model, find: Find) -> dict[str, str]:
    declared = "".join(f"${entry.name}: {entry.type} " for entry in find.arguments).strip()
    given = [f"{entry.name}: ${entry.name}" for entry in find.arguments]
    name = find.name[:1].upper() + find.name[1:]
    fields = _leaves(model, find.targets[0]) if len(find.targets) == 1 else "__typename"
    if find.many:
        arguments = ", ".join([f"first: {NODES_SHOWN}", *given])
        body = f"{find.name}({arguments}) {{ nodes {{ {fields} }} pageInfo {{ hasNextPage endCursor }} }}"
    else:
        body = f"{find.name}({', '.join(given)}) {{ {fields} }}"
    variables = {entry.name: None for entry in find.arguments}
    return _example(find.name, f"query {name}{f'({declared})' if declared else ''} {{ {body} }}", variables)


def _lookup(model: Model, item: ItemType) -> dict[str, str]:
    known = lookup_arguments(model, item)
    types = {name: scalar_at(model, item, path) for name, (path, _) in known.items()}
    declared = ", ".join(f"${name}: {types[name]}{'!' if known[name][1] else ''}" for name in known)
    given = ", ".join(f"{name}: ${name}" for name in known)
    fields = " ".join([_leaves(model, item.name), *_relationships(model, item)])
    query = f"query {item.name}({declared}) {{ {lookup_name(item.name)}({given}) {{ {fields} }} }}"
    return _example(item.name, query, dict.fromkeys(known, ""))


def _leaves(model: Model, name: str) -> str:
    fields = model.items[name].fields.values()
    return " ".join(["__typename", *(field.name for field in fields if _is_leaf(field))])


def _is_leaf(field: Field) -> bool:
    return field.kind is FieldKind.ATTRIBUTE and field.scalar is not None


def _relationships(model: Model, item: ItemType) -> Iterator[str]:
    for field in item.fields.values():
        if field.kind is FieldKind.RELATIONSHIP:
            pattern = model.relationships[item.name, field.name]
            fields = _leaves(model, pattern.targets[0]) if len(pattern.targets) == 1 else "__typename"
            yield (
                f"{field.name}(first: {NODES_SHOWN}) {{ nodes {{ {fields} }} }}"
                if pattern.many
                else f"{field.name} {{ {fields} }}"
            )


def _example(title: str, query: str, variables: Mapping[str, object]) -> dict[str, str]:
    example = {"title": title, "query": print_ast(parse(query))}
    return example | {"variables": json.dumps(variables, indent=2)} if variables else example
