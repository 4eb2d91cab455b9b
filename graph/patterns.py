"""The access patterns of a model, described: what each field of the API asks of DynamoDB."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from graph.keys import Literal, Part, Path, Shard, Variable
from graph.model import Access, Find, Index, ItemType, Layout, Model, Projection, Relationship
from graph.planner import partition_parts


@dataclass(frozen=True, slots=True)
class AccessPattern:
    """One field of the API and the requests that it causes.

    `fan_out` is how many ranges are read side by side; `then` is what follows for the nodes, if they are asked for.
    """

    field: str
    requests: str
    index: str
    key_condition: str
    fan_out: int = 1
    then: str = ""
    types: tuple[str, ...] = ()
    """The types that it leads from and to."""


def access_patterns(model: Model) -> Iterator[AccessPattern]:
    """Describe every lookup, every access pattern that the model names, and every relationship."""
    for item in model.items.values():
        if not item.virtual and has_lookup(model, item):
            yield _lookup(model, item)
    for item in model.nodes:
        if item.searched:
            yield _search(item)
    for find in model.finds.values():
        yield _find(model, find)
    for relationship in model.relationships.values():
        yield _path(model, relationship) if relationship.path else _relationship(model, relationship)


def lookup_arguments(model: Model, item: ItemType) -> dict[str, tuple[Path, bool]]:
    """List the arguments of an item type's lookup: the path that each gives, and whether it is required.

    The fields that name the item are required. Those that only its sort key holds are not, unless the partition
    is shared: it belongs to another node, whose child is then one among many, or it is a constant. The tenant is known
    of who asks.
    """
    layout = item.layouts[0]
    table = model.tables[layout.table]
    naming = item.ref.variables if item.ref else ()
    partition = [variable for template in layout.partition(table.primary) for variable in template.variables]
    sort = [variable for template in layout.sort(table.primary) for variable in template.variables]
    # Where the partition alone does not say whose item it is, the sort key has to.
    is_child = not item.is_node or not partition or any(len(variable.path) > 1 for variable in partition)
    arguments: dict[str, tuple[Path, bool]] = {}
    for variables, required in ((naming, True), (partition, True), (sort, is_child)):
        for variable in variables:
            is_required = required and variable.path not in item.tenants
            arguments.setdefault(_argument_name(item, variable.path), (variable.path, is_required))
    return arguments


def has_lookup(model: Model, item: ItemType) -> bool:
    """Say whether the fields of an item's key name it: an edge to a union also needs the type at its end."""
    keys = {
        tuple(layout.templates[name].parts for name in model.tables[layout.table].key_attributes)
        for layout in item.layouts
        if layout.mirror == 0
    }
    return len(keys) < 2


def _argument_name(item: ItemType, path: Path) -> str:
    """Name an argument by its field; behind a reference by the reference, where one value names the node."""
    field = item.fields[path[0]]
    if len(path) == 1 or (len(field.refs) == 1 and len(next(iter(field.refs.values())).variables) == 1):
        return path[0]
    return path[0] + "".join(name[:1].upper() + name[1:] for name in path[1:])


def lookup_name(type_name: str) -> str:
    """Name the root field that looks up an item of a type."""
    return type_name[:1].lower() + type_name[1:]


def search_name(type_name: str) -> str:
    """Name the root field that searches the nodes of a type: `searchStores`, by the rules of English plurals."""
    if type_name.endswith("y") and type_name[-2:-1].lower() not in "aeiou":
        return f"search{type_name[:-1]}ies"
    return f"search{type_name}{'es' if type_name.endswith(('s', 'x', 'z', 'ch', 'sh')) else 's'}"


def _search(item: ItemType) -> AccessPattern:
    field = f"Query.{search_name(item.name)}(text)"
    condition = f"words of {', '.join(item.searched)}"
    return AccessPattern(
        field, "1 search", "search index", condition, then="1 BatchGetItem for each 100 nodes", types=(item.name,)
    )


def _lookup(model: Model, item: ItemType) -> AccessPattern:
    layout = item.layouts[0]
    index = model.tables[layout.table].primary
    arguments = lookup_arguments(model, item)
    required = {path for path, is_required in arguments.values() if is_required}
    field = f"{lookup_name(item.name)}({', '.join(name for name in arguments if arguments[name][1])})"
    if _paths(layout, index) <= required:
        return AccessPattern(field, "1 GetItem", "table", _condition(layout, index, required), types=(item.name,))
    access = model.lookups[item.name][0]
    condition = _condition(layout, access.index, required)
    return AccessPattern(field, "1 Query", _name(access.index), condition, types=(item.name,))


def _find(model: Model, find: Find) -> AccessPattern:
    arguments = ", ".join(argument.name for argument in find.arguments)
    field = f"Query.{find.name}({arguments})" if arguments else f"Query.{find.name}"
    if find.scan:
        return AccessPattern(
            field,
            "1 Scan for each MB of the table",
            "table",
            "none: filtered by the shape of the key",
            types=find.targets,
        )
    known = {argument.path for argument in find.arguments}
    access = max(find.accesses, key=lambda way: _reach(way, known))
    ranged = {argument.path for argument in find.arguments if argument.range_fields is not None}
    several = len(access.layouts) > 1
    condition = _condition(access.layouts[0], access.index, known, ranged=ranged, several=several)
    fan_out = fan_out_of(access, known)
    requests = _queries(fan_out, access.index)
    for argument in find.arguments:
        if argument.type.of is not None and argument.path in _paths(access.layouts[0], access.index):
            requests += f" for each of `{argument.name}`"
    then = _hydration(model, access, find.end)
    return AccessPattern(field, requests, _name(access.index), condition, fan_out, then, find.targets)


def _reach(access: Access, known: set[Path]) -> int:
    """Count the parts of the sort key that the arguments bind: the planner takes the way that binds most."""
    parts = [part for template in access.layouts[0].sort(access.index) for part in template.parts]
    return len(_bound(parts, known))


def _bound(parts: Iterable[Part], known: set[Path]) -> list[Part]:
    return list(takewhile(lambda part: not isinstance(part, Variable) or part.path in known, parts))


def _relationship(model: Model, relationship: Relationship) -> AccessPattern:
    access = relationship.accesses[0]
    known = {(relationship.start, *path) for path in relationship.needs} | {*relationship.asks}
    fan_out = fan_out_of(access, known)
    return AccessPattern(
        f"{relationship.source}.{relationship.name}{_asked(relationship)}",
        _queries(fan_out, access.index),
        _name(access.index),
        _condition(access.layouts[0], access.index, known, start=relationship.start, several=len(access.layouts) > 1),
        fan_out,
        _hydration(model, access, relationship.end),
        _ends(relationship),
    )


def _path(model: Model, relationship: Relationship) -> AccessPattern:
    hops = " → ".join(hop.name for hop in relationship.path)
    return AccessPattern(
        f"{relationship.source}.{relationship.name}{_asked(relationship)}",
        "1 Query, and 1 for each item on the way",
        ", ".join(dict.fromkeys(_name(hop.accesses[0].index) for hop in relationship.path)),
        f"those of {hops}",
        then=_hydration(model, relationship.path[-1].accesses[0], relationship.path[-1].end),
        types=_ends(relationship),
    )


def _ends(relationship: Relationship) -> tuple[str, ...]:
    return tuple(dict.fromkeys((relationship.source, *relationship.targets)))


def _asked(relationship: Relationship) -> str:
    """Write what a filter must bind, as the argument that gives it."""
    asked = ", ".join(".".join(path) for path in relationship.asks)
    return f"(where: {asked})" if asked else ""


def _hydration(model: Model, access: Access, end: str | None) -> str:
    """Say what follows for the nodes: nothing where the items are they or a tag is its name, else as keys allow."""
    batches, layout = "1 BatchGetItem for each 100 nodes", access.layouts[0]
    if end is None:
        return "" if access.index.projection is Projection.ALL else f"{batches}, for what the index does not hold"
    field = model.items[layout.type_name].fields[end]
    targets = [model.items[layout.ends[end]] for layout in access.layouts if end in layout.ends]
    targets = targets or [model.items[name] for name in field.refs]
    if all(target.virtual for target in targets):
        return ""
    keyed = all(_is_keyed(model, target) for target in targets if not target.virtual)
    requests = batches if keyed else "1 Query for each node"
    return f"{requests}, for what the copy does not hold" if layout.copy == end else requests


def _is_keyed(model: Model, target: ItemType) -> bool:
    """Say whether a node's name gives its whole key, as a BatchGetItem wants it."""
    layout = target.layouts[0]
    naming = {variable.path for variable in target.ref.variables} if target.ref else set()
    return _paths(layout, model.tables[layout.table].primary) <= naming


def _queries(fan_out: int, index: Index) -> str:
    queries = "1 Query" if fan_out == 1 else f"{fan_out} Queries side by side"
    return queries if index.period is None else f"{queries} for each {index.period.format} of the range"


def _name(index: Index) -> str:
    return index.name or "table"


def _paths(layout: Layout, index: Index) -> set[Path]:
    return {variable.path for name in index.key_attributes for variable in layout.templates[name].variables}


def fan_out_of(access: Access, known: set[Path]) -> int:
    """Multiply the values that are fanned out over: in the partition always, in the sort key to reach a known one."""
    layout, count = access.layouts[0], 1
    for part in partition_parts(layout, access.index):
        if isinstance(part, Shard):
            count *= part.count if part.path is None or part.path not in known else 1
        elif isinstance(part, Variable) and part.path not in known:
            count *= max(1, len(part.scalar.values))
    return count


def _condition(
    layout: Layout,
    index: Index,
    known: set[Path],
    *,
    start: str = "",
    several: bool = False,
    ranged: Collection[Path] = (),
) -> str:
    """Write the key condition, with the values that the request brings in braces."""
    tests = [f"{name} = {_text(layout.templates[name].parts, start)}" for name in index.partition_keys]
    for name in () if several else index.sort_keys:
        parts = layout.templates[name].parts
        bound = _bound(parts, known)
        text, is_whole = _text(bound, start), len(bound) == len(parts)
        if any(isinstance(part, Variable) and part.path in ranged for part in bound):
            tests.append(f"{name} between {text} and {text}")
            break
        if text:
            tests.append(f"{name} {'=' if is_whole else 'begins with'} {text}")
        if not is_whole:
            break
    return " and ".join(tests)


def _text(parts: Iterable[Part], start: str) -> str:
    return "".join(_part(part, start) for part in parts)


def _part(part: Part, start: str) -> str:
    if isinstance(part, Literal):
        return part.text
    if isinstance(part, Shard):
        return f"{{0…{part.count - 1}}}"
    path = part.path[1:] if start and part.path[0] == start else part.path
    return f"{{{'.'.join(path)}{':' + part.format if part.format else ''}}}"
