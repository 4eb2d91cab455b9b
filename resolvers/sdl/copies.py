"""Tables of copies by stream: what their stream could not keep right is refused."""

from __future__ import annotations

from collections.abc import Iterator

from graph.keys import Path
from graph.model import Inward, ItemType, Layout, Model
from graph.writes.dependents import beyond_names, dependents
from resolvers.sdl.declarations import Declarations
from resolvers.sdl.report import Report


def check_copies(declared: Declarations, model: Model, report: Report) -> None:
    """Report what cannot follow by the stream: what no index finds, and mirrors that nobody would find again."""
    for item in model.items.values():
        if model.is_followed(item) and not report.blames(*declared.directives(item.name)):
            for layout, name, path in _moving(model, item):
                report.add(
                    declared.items[item.name].keys[layout.mirror].node,
                    f"the mirror of `{item.name}` has `{'.'.join(path)}` in its key `{name}`, and follows by the "
                    "stream, which would leave it behind when that changes: expected its own fields in there, and the "
                    f"names of nodes. Fill an index with it by @indexed, or leave {_word(model, item)} out",
                )
            if item.is_node:
                _check_ways(declared, model, report, item)


def _check_ways(declared: Declarations, model: Model, report: Report, node: ItemType) -> None:
    for one in model.inward.get(node.name, ()):
        item = model.items[one.item_type]
        if not one.accesses and not report.blames(*declared.directives(item.name)):
            kept = "copies" if _holds_anything(model, node, one) else "mirrors" if _has_mirrors(model, item) else None
            if kept is not None:
                report.add(
                    declared.items[item.name].keys[0].node,
                    f"nothing finds every `{item.name}` whose `{one.field}` is a given `{node.name}`, so that its "
                    f"{kept} could not follow by the stream: expected an index, not of mirrors, whose partition key "
                    f"holds `{one.field}` and no more of `{node.name}` than its name, and whose key every "
                    f"`{item.name}` fills. Add it by @index, or leave {_word(model, node)} out",
                )


def _word(model: Model, item: ItemType) -> str:
    return f"`copies: STREAM` of the table `{item.layouts[0].table}`" if len(model.tables) > 1 else "`copies: STREAM`"


def _moving(model: Model, item: ItemType) -> Iterator[tuple[Layout, str, Path]]:
    """List what the primary keys of mirrors hold of nodes beyond their names."""
    for layout in item.layouts:
        for name in model.tables[layout.table].key_attributes if layout.mirror else ():
            yield from ((layout, name, path) for path in beyond_names(model, layout, name))


def _holds_anything(model: Model, node: ItemType, one: Inward) -> bool:
    """Say whether items hold something of a node that they name, beyond its name."""
    ref = model.items[one.item_type].fields[one.field].refs[node.name]
    named_by = node.named_by | {variable.path for variable in ref.variables}
    others = [name for name in node.fields if (name,) not in named_by]
    return any(found is one for found in dependents(model, node, others))


def _has_mirrors(model: Model, item: ItemType) -> bool:
    return model.is_followed(item) and any(layout.mirror for layout in item.layouts)
