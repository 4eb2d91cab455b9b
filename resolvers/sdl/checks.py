"""What only shows when all types are known: edges of one node, key attributes of two types, misplaced directives."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from graph.keys import overlap
from graph.model import ItemType
from resolvers.sdl.declarations import Declarations
from resolvers.sdl.layouts import is_whole
from resolvers.sdl.report import Report, listed
from resolvers.sdl.tables import Tables


class Checks:
    """Looks at item types together, and reports."""

    def __init__(self, declared: Declarations, tables: Tables, items: Mapping[str, ItemType], report: Report) -> None:
        self._declared = declared
        self._tables = tables
        self._items = items
        self._report = report

    def all(self) -> None:
        """Report everything."""
        for item in self._items.values():
            if not item.is_node:
                self._check_edge(item)
            if item.virtual:
                self._check_virtual(item)
            self._check_references(item)
            self._check_period(item)
        self._check_key_types()
        self._check_expiry()
        self._check_unions()
        self._check_indexed()

    # --- one type at a time ---

    def _check_edge(self, item: ItemType) -> None:
        """Report an edge whose keys do not mention two nodes."""
        type_ = self._declared.items[item.name]
        references = {field.name for field in item.references}
        mentioned = {
            variable.path[0]
            for layout in item.layouts
            for template in layout.templates.values()
            for variable in template.variables
            if variable.path[0] in references
        }
        if len(mentioned) < 2 and is_whole(type_, item.layouts):
            self._report.add(
                type_.keys[0].node,
                f"the keys of the edge `{item.name}` mention {listed(sorted(mentioned))}, and an edge stands between "
                f"two nodes: expected two references in them, and it has {listed(sorted(references))}. Write them like "
                'partition: "{a}", sort: "{b}", or make it a @node',
            )

    def _check_virtual(self, item: ItemType) -> None:
        """Report fields of a virtual node that no item can hold."""
        held = {variable.path[0] for variable in item.ref.variables} if item.ref else set()
        for field in self._declared.items[item.name].fields.values():
            is_held = field.is_relationship or field.name in held or self._report.blames(field.node)
            if item.ref is not None and not is_held:
                self._report.add(
                    field.node,
                    f"`{item.name}.{field.name}` has no item to lie in, for `{item.name}` is virtual: expected fields "
                    f"of its key {item.ref.source!r} and relationships only. Remove the field, or `virtual`",
                )

    def _check_period(self, item: ItemType) -> None:
        """Report a type of a time series whose key does not say in which of its tables an item lies."""
        for layout in item.layouts:
            table = self._tables.stored(layout.table)
            if table.period is None:
                continue
            held = {variable.path for name in table.key_attributes for variable in layout.templates[name].variables}
            field = item.fields.get(table.period.field)
            fits = field is not None and field.scalar is not None and field.scalar.name in ("Date", "DateTime")
            if not fits or (table.period.field,) not in held:
                self._report.add(
                    self._declared.items[item.name].keys[layout.mirror].node,
                    f"`{item.name}` lies in {table.name!r}, a table for each {table.period.format}, and its key does "
                    f"not say in which: expected a field `{table.period.field}` of type Date! or DateTime! in the key. "
                    "Add it",
                )

    def _check_references(self, item: ItemType) -> None:
        """Report references that could mean a node of one type or of another."""
        for field in item.references:
            for (one, left), (other, right) in combinations(field.refs.items(), 2):
                if overlap(left, right):
                    self._report.add(
                        self._declared.items[item.name].fields[field.name].node,
                        f"`{item.name}.{field.name}` names a {one} by {left.source!r} and a {other} by "
                        f"{right.source!r}, which may look alike: expected names that tell the type. Begin them with "
                        "literals of their own: "
                        '@node(ref: "…")',
                    )

    # --- all types together ---

    def _check_key_types(self) -> None:
        """Report key attributes that are a number in one type and text in another."""
        first: dict[tuple[str, str], tuple[str, bool]] = {}
        layouts = [layout for item in self._items.values() for layout in item.layouts]
        for layout in layouts:
            for attribute, template in layout.templates.items():
                name, is_number = first.setdefault((layout.table, attribute), (layout.type_name, template.is_number))
                if is_number != template.is_number:
                    self._report.add(
                        self._declared.items[layout.type_name].keys[layout.mirror].node,
                        f"the key attribute `{attribute}` is {'a number' if is_number else 'text'} in `{name}` and "
                        f"{'text' if is_number else 'a number'} in `{layout.type_name}`: DynamoDB expects one type for "
                        "both. One number field alone makes a number: add a literal, or digits like {n:012}, to make "
                        "text",
                    )

    def _check_expiry(self) -> None:
        """Report a table whose items would expire by more than one attribute."""
        first: dict[str, tuple[str, str]] = {}
        for name, type_ in self._declared.items.items():
            table = type_.keys[0].get("table") or ""
            for field in type_.fields.values():
                attribute = self._items[name].fields[field.name].attribute
                if "ttl" not in field.directives:
                    continue
                owner, known = first.setdefault(table, (f"{name}.{field.name}", attribute))
                if attribute != known:
                    self._report.add(
                        field.directives["ttl"].node,
                        f"`{name}.{field.name}` expires by the attribute `{attribute}`, and `{owner}` by `{known}`: "
                        "DynamoDB expects one attribute for the whole table. Remove this @ttl, or write "
                        f'@attribute(name: "{known}")',
                    )

    def _check_unions(self) -> None:
        """Report unions of types with items and types without."""
        for union in self._declared.unions.values():
            without = [name for name in union.members if name in self._declared.objects]
            if len(without) < len(union.members) and not self._report.blames(
                self._declared.nodes[union.name], *(self._declared.nodes[name] for name in without)
            ):
                for name in without:
                    self._report.add(
                        self._declared.nodes[union.name],
                        f"the union `{union.name}` holds `{name}`, which has no items, beside types that have: "
                        f"expected types with @node only. Give `{name}` @node, or take it out",
                    )

    def _check_indexed(self) -> None:
        """Report directives of items on types that have none."""
        roots = [self._declared.query] if self._declared.query else []
        for type_ in [*self._declared.objects.values(), *roots]:
            for use in type_.uses("indexed", "node", "edge", "history"):
                if not self._report.blames(*(type_.node.directives or ())):
                    self._report.add(
                        use.node,
                        f"`{type_.name}` has @{use.node.name.value} and no items: expected it on a type with @node or "
                        "@edge. " + ("Rename the type" if type_ in roots else "Add one of them, or remove it"),
                    )
