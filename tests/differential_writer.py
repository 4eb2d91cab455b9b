"""Random queries of a schema: what a client may write, and now and then what it should not."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

from graphql import (
    GraphQLField,
    GraphQLInputType,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    get_named_type,
    is_composite_type,
    is_non_null_type,
    is_object_type,
    is_union_type,
)
from graphql.type import GraphQLBoolean

from graph.model import Model
from graph.patterns import lookup_arguments, lookup_name
from tests.differential_data import at
from tests.differential_queries import Field, Inline, Query, Selection, Spread
from tests.differential_scope import Scope, cursor_scope, is_composite, kind_of_type, merged, shape
from tests.differential_values import Arguments, Known

MOST_DEPTH = 5
MOST_FIELDS = 60
SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 10, 50, 1000)
BAD_SIZES = (-1, 1001, 2**31 - 1)
INTROSPECTION: tuple[tuple[str, dict[str, str], str], ...] = (
    ("__schema", {}, "{ queryType { name } types { kind name } }"),
    ("__schema", {}, "{ directives { name args { name defaultValue } } }"),
    ("__type", {"name": '"Query"'}, "{ name fields { name type { kind ofType { name } } args { name } } }"),
    ("__type", {"name": '"Node"'}, "{ __typename possibleTypes { name } }"),
    ("__type", {"name": '"Nothing"'}, "{ name }"),
)

FRAGMENTS = {"root": (0.03, 0.04), "object": (0.07, 0.08), "interface": (0.35, 0.2), "union": (0.5, 0.4)}
"""How many selections of a type are inline fragments, and how many named ones."""


class Writer:
    """Writes one query."""

    def __init__(self, model: Model, schema: GraphQLSchema, known: Known, dice: Random, tally: Counter[str]) -> None:
        self._model = model
        self._schema = schema
        self._known = known
        self._dice = dice
        self._tally = tally
        self._arguments = Arguments(known, dice, tally)
        self._fragments: dict[str, tuple[str, list[Selection], Scope]] = {}
        self._weights: dict[str, list[str]] = {}
        self._left = dice.choice([10, 25, MOST_FIELDS])
        self._bold = dice.random() < 0.12
        """Write what is to fail: arguments out of range, foreign cursors, damaged ids."""
        self._lookups = {lookup_name(item.name): item for item in model.items.values()}

    def write(self) -> Query:
        """Write a query."""
        root = self._schema.query_type
        assert root is not None
        children = self._selections(root, {}, 0)
        fragments = {name: (on, below) for name, (on, below, _) in self._fragments.items()}
        query = Query(children, fragments, self._arguments.variables)
        query.drop_unused()
        if self._chance(0.15):
            query.name = query.asked = "Asked"
        if self._chance(0.03):
            self._tally["several operations"] += 1
            query.more = "\nquery Other { __typename }"
            query.name = query.name or "Asked"
            query.asked = self._dice.choice(["Asked", "Asked", "Other", "Nobody", None])
        if self._chance(0.02):
            self._tally["spoilt documents"] += 1
            query.spoilt = self._spoilt(query.text())
        return query

    def _chance(self, share: float) -> bool:
        return self._dice.random() < share

    def _spoilt(self, text: str) -> str:
        place = self._dice.randrange(len(text))
        kind = self._dice.randrange(4)
        if kind == 0:
            return text[:place] + text[place + 1 :]
        if kind == 1:
            return text[:place] + self._dice.choice("{}()$:\"'!é ") + text[place:]
        if kind == 2:
            return text.replace("{", "{ nothingSuch ", 1)
        return text.replace(")", ", noSuch: 1)", 1)

    # --- selections ---

    def _selections(self, type_: Any, scope: Scope, depth: int) -> list[Selection]:
        found: list[Selection] = []
        count = self._dice.choice([1, 1, 2, 2, 3] if depth == 0 else [1, 2, 2, 3, 4])
        for _ in range(count):
            made = self._selection(type_, scope, depth)
            if made is not None:
                found.append(made)
        return found or [self._typename({}) or Field("__typename")]

    def _selection(self, type_: Any, scope: Scope, depth: int) -> Selection | None:
        inline, spread = FRAGMENTS["root" if depth == 0 else kind_of_type(type_)]
        kind = self._dice.random()
        if kind < 0.07:
            return self._typename(scope)
        if kind < 0.07 + inline:
            return self._inline(type_, scope, depth)
        if kind < 0.07 + inline + spread:
            return self._spread(type_, scope, depth)
        if depth == 0 and kind > 0.98:
            return self._introspection(scope)
        return self._field(type_, scope, depth)

    def _typename(self, scope: Scope) -> Field | None:
        alias = f"t{self._dice.randrange(3)}" if self._chance(0.1) else ""
        if scope.setdefault(alias or "__typename", ("__typename", {}, "String!", {}))[0] != "__typename":
            return None
        self._tally["__typename"] += 1
        return Field("__typename", alias, directives=self._directives())

    def _introspection(self, scope: Scope) -> Field | None:
        name, arguments, text = self._dice.choice(INTROSPECTION)
        if name in scope:
            return None
        scope[name] = (name, arguments, text, {})
        self._tally["introspection"] += 1
        return Field(name, arguments=dict(arguments), directives=f" {text}")

    def _directives(self) -> str:
        text = ""
        for name in ("skip", "include"):
            if self._chance(0.03):
                value = self._chance(0.7 if name == "include" else 0.3)
                self._tally[f"@{name}"] += 1
                text += f" @{name}(if: {self._arguments.text(GraphQLNonNull(GraphQLBoolean), value)})"
        return text

    # --- fragments ---

    def _conditions(self, type_: Any) -> list[Any]:
        """List the types that a fragment on a type may be on."""
        if is_object_type(type_):
            unions = [
                one
                for one in self._schema.type_map.values()
                if isinstance(one, GraphQLUnionType) and type_ in one.types
            ]
            return [type_, type_, *type_.interfaces, *unions]
        possible = list(self._schema.get_possible_types(type_))
        interfaces = {other.name: other for one in possible for other in one.interfaces}
        return [type_, *possible, *possible, *interfaces.values()]

    def _inline(self, type_: Any, scope: Scope, depth: int) -> Inline:
        self._left -= 1
        is_bare = self._chance(0.2)
        on = type_ if is_bare else self._dice.choice(self._conditions(type_))
        self._tally["inline fragment without type" if is_bare else f"inline fragment on {kind_of_type(on)}"] += 1
        directives = self._directives()
        return Inline("" if is_bare else on.name, directives, self._selections(on, scope, max(depth, 1)))

    def _spread(self, type_: Any, scope: Scope, depth: int) -> Spread | None:
        self._left -= 1
        conditions = {one.name for one in self._conditions(type_)}
        known = [name for name, (on, _, _) in self._fragments.items() if on in conditions]
        if known and self._chance(0.5):
            name = self._dice.choice(sorted(known))
            self._tally["named fragment again"] += 1
        else:
            on = self._dice.choice(self._conditions(type_))
            below: Scope = {}
            children = self._selections(on, below, max(depth, 1))
            name = f"F{len(self._fragments)}"
            self._fragments[name] = on.name, children, below
            self._tally[f"named fragment on {kind_of_type(on)}"] += 1
        if not merged(scope, self._fragments[name][2]):
            if name == f"F{len(self._fragments) - 1}" and name not in known:
                del self._fragments[name]
            return None
        return Spread(name, self._directives())

    # --- fields ---

    def _field(self, type_: Any, scope: Scope, depth: int) -> Field | None:
        if is_union_type(type_):
            return self._typename(scope)
        self._left -= 1
        again = self._again(type_, scope, depth)
        if again is not None:
            return again
        can_go_down = depth < MOST_DEPTH and self._left > 0
        names = [name for name in self._weighted(type_) if can_go_down or not is_composite(type_.fields[name])]
        if not names:
            return self._typename(scope)
        name = self._dice.choice(names)
        definition: GraphQLField = type_.fields[name]
        self._tally[self._sort_of(type_, name, definition)] += 1
        arguments = self._given(type_, name, definition)
        entry: tuple[str, dict[str, str], str, Scope] = (name, arguments, shape(definition), {})
        key = self._key(type_, scope, entry)
        below = scope.setdefault(key, entry)[3]
        made = Field(name, "" if key == name else key, arguments, self._directives())
        made.goes_back = "last" in definition.args
        made.children = self._children(definition, below, depth)
        return made

    def _sort_of(self, type_: Any, name: str, definition: GraphQLField) -> str:
        if name in SPECIAL:
            return f"field {name}"
        if type_ is self._schema.query_type:
            return "lookup" if name in self._lookups else "find"
        if (type_.name, name) in self._model.relationships:
            return f"relationship to {'many' if 'after' in definition.args else 'one'}"
        if not is_composite(definition):
            return "leaf"
        named = get_named_type(definition.type).name
        return "object inside an item" if named in self._model.objects else "reference to one"

    def _weighted(self, type_: Any) -> list[str]:
        """List the fields of a type, those that are more worth a question more often."""
        if type_.name not in self._weights:
            self._weights[type_.name] = [name for name in type_.fields for _ in range(self._weight(type_, name))]
        return self._weights[type_.name]

    def _weight(self, type_: Any, name: str) -> int:
        if type_ is self._schema.query_type:
            item = self._lookups.get(name)
            return 1 if name in ("node", "nodes") or (item and not self._known.records.get(item.name)) else 3
        return 6 if is_composite(type_.fields[name]) and name != "pageInfo" else 2

    def _children(self, definition: GraphQLField, scope: Scope, depth: int) -> list[Selection] | None:
        target = get_named_type(definition.type)
        if not is_composite_type(target):
            return None
        is_around = target.name.endswith(("Connection", "Edge")) or target.name == "PageInfo"
        self._tally[f"{kind_of_type(target)} below"] += 1
        below = self._selections(target, scope, depth if is_around and depth else depth + 1)
        if target.name.endswith("Connection") and self._chance(0.5):
            more = self._dice.choice([("edges", "cursor"), ("pageInfo", "endCursor"), ("pageInfo", "startCursor")])
            if merged(scope, cursor_scope(target, *more)):
                below.append(Field(more[0], children=[Field(more[1])]))
        return below

    def _again(self, type_: Any, scope: Scope, depth: int) -> Field | None:
        """Write a field that is there already once more, to be merged."""
        if not self._chance(0.12):
            return None
        there = [
            key
            for key, (name, *_) in scope.items()
            if name in type_.fields and shape(type_.fields[name]) == scope[key][2]
        ]
        if not there:
            return None
        key = self._dice.choice(sorted(there))
        name, arguments, _, below = scope[key]
        self._tally["same field twice"] += 1
        made = Field(name, "" if key == name else key, dict(arguments), self._directives())
        made.goes_back = "last" in type_.fields[name].args
        made.children = self._children(type_.fields[name], below, depth)
        return made

    def _key(self, type_: Any, scope: Scope, entry: tuple[str, dict[str, str], str, Scope]) -> str:
        """Choose the response key: an alias where the name is taken, and sometimes where it is not."""
        name = entry[0]
        key: str
        if self._chance(0.12):
            key = self._dice.choice([f"a{self._dice.randrange(5)}", self._dice.choice(sorted(type_.fields))])
        else:
            key = name
        while key in scope and scope[key][:3] != entry[:3]:
            key = f"b{self._dice.randrange(1000)}"
        if key != name:
            self._tally["alias"] += 1
        return key

    # --- arguments ---

    def _given(self, type_: GraphQLObjectType, name: str, definition: GraphQLField) -> dict[str, str]:
        values = self._values(type_, name, definition)
        arguments: dict[str, str] = {}
        for key, argument in definition.args.items():
            if key not in values and is_non_null_type(argument.type):
                values[key] = self._arguments.value(argument.type, key)
            if key in values:
                text = self._arguments.text(argument.type, values[key])
                if text is not None:
                    arguments[key] = text
        if "after" in definition.args:
            self._count_connection(arguments)
        return arguments

    def _count_connection(self, arguments: dict[str, str]) -> None:
        self._tally["connection"] += 1
        for name in arguments:
            self._tally[f"connection({name}:)"] += 1

    def _values(self, type_: GraphQLObjectType, name: str, definition: GraphQLField) -> dict[str, Any]:
        is_root = type_ is self._schema.query_type
        if is_root and name in ("node", "nodes"):
            return (
                {"id": self._id()} if name == "node" else {"ids": [self._id() for _ in range(self._dice.randrange(5))]}
            )
        if is_root and name in self._lookups:
            return self._lookup(name)
        values: dict[str, Any] = {}
        if "version" in definition.args:
            values["version"] = self._dice.choice([0, 1, 1, 2, 3, 7])
        if "after" in definition.args:
            values |= self._page(definition)
        for key, argument in definition.args.items():
            if key not in values and key not in PAGING and self._chance(0.6 if is_root else 0.3):
                values[key] = self._argument(argument.type, key)
        if "where" in definition.args and self._chance(0.3):
            values["where"] = self._arguments.value(definition.args["where"].type, "where")
        return values

    def _argument(self, type_: GraphQLInputType, name: str) -> Any:
        return None if self._chance(0.05) and not is_non_null_type(type_) else self._arguments.value(type_, name)

    def _id(self) -> str:
        ids = self._known.ids
        if not ids or (self._bold and self._chance(0.3)):
            return self._dice.choice(["", "nonsense", "WyJOb3RoaW5nIiwiMSJd", "é", "W10"])
        found: str = self._dice.choice(ids)
        return found[:-1] if self._bold and self._chance(0.2) else found

    def _lookup(self, name: str) -> dict[str, Any]:
        item = self._lookups[name]
        records = self._known.records.get(item.name)
        if not records or self._chance(0.08):
            return {}
        record, values = self._dice.choice(records), {}
        for argument, (path, required) in lookup_arguments(self._model, item).items():
            value = at(record, path)
            if value is not None and (required or self._chance(0.5)):
                values[argument] = value
        return values

    def _page(self, definition: GraphQLField) -> dict[str, Any]:
        values: dict[str, Any] = {}
        sizes = (*SIZES, *BAD_SIZES) if self._bold else SIZES
        names = [name for name in ("first", "last") if name in definition.args]
        if self._chance(0.55):
            values[self._dice.choice(["first", *names])] = self._dice.choice(sizes)
        if self._bold and self._chance(0.2):
            values |= {name: self._dice.choice(sizes) for name in names}
        if self._bold and self._known.cursors and self._chance(0.3):
            cursor = self._dice.choice([*self._known.cursors, json.dumps("nonsense")])
            values[self._dice.choice([name for name in ("after", "before") if name in definition.args])] = cursor
        if "order" in definition.args and self._chance(0.25):
            values["order"] = self._argument(definition.args["order"].type, "order")
        return values


SPECIAL = ("node", "nodes", "edges", "pageInfo", "totalCount", "versions", "at", "id", "cursor")
PAGING = ("first", "last", "after", "before", "order", "where")
