"""Relationships: the ways from one node to another, with names of their own, and the patterns that indexes serve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from resolvers.infer.draft import DraftField, DraftFind, DraftTable, DraftType, Hole
from resolvers.infer.names import camel, pascal, plural


@dataclass(frozen=True, slots=True)
class Link:
    """A way from one node to another: by items of a type, from the field that names the one."""

    source: DraftType
    target: DraftType
    via: DraftType
    start: DraftField
    name: str
    many: bool
    note: str = ""


def references(types: Sequence[DraftType], links: Sequence[Link]) -> Iterator[Link]:
    """List the links by references that attributes and keys hold, and that no other link says already."""
    for type_ in types:
        held = held_by(type_)
        for one in type_.fields:
            is_key_of_node = one in held and not any(key.is_edge for key in type_.keys)
            is_told = any(link.via is type_ and link.start is one for link in links)
            if one.target is not None and not is_told and (one.attribute is not None or is_key_of_node):
                name = plural(camel(type_.name))
                yield Link(one.target, type_, type_, one, name, many=True)


def relate(links: Sequence[Link]) -> None:
    """Make the relationships of all links."""
    for link in links:
        rivals = [
            other
            for other in links
            if other.source is link.source and (other.target is link.target or other.via is link.target)
        ]
        arguments = []
        if len({other.via for other in rivals}) > 1:
            arguments.append('through: "{}"')
        if sum(1 for other in rivals if other.via is link.via) > 1 or _ends(link) > 1:
            arguments.append(f'from: "{link.start.name}"')
        # A name that is taken says by which field the others name it.
        made = DraftField(link.name, "[{}!]!" if link.many else "{}", target=link.target)
        made.relationship, made.through = ", ".join(arguments), link.via
        made.notes += [link.note] if link.note else []
        if any(one.name == made.name for one in link.source.fields):
            made.name = f"{made.name}By{pascal(link.start.name)}"
        link.source.add(made)


def finds(types: Sequence[DraftType], tables: Sequence[DraftTable]) -> Iterator[DraftFind]:
    """Make a pattern for each index that is searched by a value."""
    taken: set[str] = set()
    for table in tables:
        for index in table.indexes:
            for type_ in types:
                fields = [type_.of(name) for name in index.partition_keys]
                values = [one for one in fields if one is not None and one.target is None]
                is_own = index.partition_keys[0] in table.sample.keys
                if type_.table == table.sample.name and len(values) == len(fields) and not is_own:
                    name = f"{plural(camel(type_.name))}By{''.join(pascal(one.name) for one in values)}"
                    if name not in taken:
                        taken.add(name)
                        arguments = ", ".join(f"{one.name}: {one.type.rstrip('!')}!" for one in values)
                        yield DraftFind(f"{name}({arguments}): [{{}}!]! @find", type_)


def held_by(type_: DraftType) -> set[DraftField]:
    """List the fields that the keys of a type hold."""
    holes = [hole for key in type_.keys for hole in (*key.partition, *(key.sort or ()))]
    return {hole.field for hole in holes if isinstance(hole, Hole)}


def _ends(link: Link) -> int:
    """Count the fields of the items that name a node of the source's type."""
    return sum(1 for one in link.via.fields if one.target is link.source and one.relationship is None)
