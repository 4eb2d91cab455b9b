"""Queries as trees: fields, fragments and operations, their text, and their places in a response."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import orjson

from graph.seals import SIGNATURE_BYTES
from tests.differential_values import Known, Variables

Place = tuple[str, ...]
"""The keys on the way to a value in a response, without the numbers of lists."""
LENIENT = "@experimental_disableErrorPropagation"


@dataclass
class Field:
    """A field, with the text of its arguments."""

    name: str
    alias: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    directives: str = ""
    children: list[Selection] | None = None
    goes_back: bool = False
    """Whether it is a connection that can be paged backward."""

    @property
    def key(self) -> str:
        """Give the field's name in the response."""
        return self.alias or self.name

    def text(self) -> str:
        """Write the field."""
        given = ", ".join(f"{name}: {text}" for name, text in self.arguments.items())
        return (
            (f"{self.alias}: " if self.alias else "")
            + self.name
            + (f"({given})" if given else "")
            + self.directives
            + ("" if self.children is None else f" {block(self.children)}")
        )


@dataclass
class Inline:
    """An inline fragment, with or without a type condition."""

    condition: str
    directives: str
    children: list[Selection]

    def text(self) -> str:
        """Write the fragment."""
        return f"...{f' on {self.condition}' if self.condition else ''}{self.directives} {block(self.children)}"


@dataclass
class Spread:
    """A named fragment where it is used."""

    name: str
    directives: str

    def text(self) -> str:
        """Write the spread."""
        return f"...{self.name}{self.directives}"


Selection = Field | Inline | Spread


def block(children: list[Selection]) -> str:
    """Write a selection set."""
    return "{ " + " ".join(child.text() for child in children) + " }"


@dataclass
class Query:
    """A document, what is given with it, and what is to be executed of it."""

    children: list[Selection]
    fragments: dict[str, tuple[str, list[Selection]]]
    variables: Variables
    name: str = ""
    more: str = ""
    """What stands behind: other operations."""
    asked: str | None = None
    """The operation's name in the request."""
    spoilt: str | None = None
    """The whole text, where it is not what the tree says."""

    def text(self, *, lenient: bool = False) -> str:
        """Write the document; a lenient one reports every error, and has all else at the same lines and columns."""
        if self.spoilt is not None:
            return self.spoilt
        head = f"query {self.name}{self.variables.head()}"
        lines = [head + (f" {LENIENT}" if lenient else ""), "{"]
        lines += [f"  {child.text()}" for child in self.children]
        lines.append("}")
        lines += [f"fragment {name} on {on} {block(children)}" for name, (on, children) in self.fragments.items()]
        return "\n".join(lines) + self.more

    def drop_unused(self) -> None:
        """Drop the fragments and variables that nothing leads to any more."""
        used: set[str] = set()
        self._use(self.children, used)
        self.fragments = {name: one for name, one in self.fragments.items() if name in used}
        names = set(re.findall(r"\$(v\d+)", self.text().partition("\n")[2]))
        declared, given = self.variables.declared, self.variables.given
        self.variables.declared = {name: one for name, one in declared.items() if name in names}
        self.variables.given = {name: one for name, one in given.items() if name in names}

    def _use(self, children: list[Selection], used: set[str]) -> None:
        for child in children:
            if isinstance(child, Spread):
                if child.name not in used:
                    used.add(child.name)
                    self._use(self.fragments[child.name][1], used)
            else:
                self._use(child.children or [], used)

    def fields(self) -> Iterator[tuple[Place, Field]]:
        """List every field with its place in the response."""
        yield from self._below(self.children, ())

    def _below(self, children: list[Selection], place: Place) -> Iterator[tuple[Place, Field]]:
        for child in children:
            if isinstance(child, Field):
                yield (*place, child.key), child
                yield from self._below(child.children or [], (*place, child.key))
            elif isinstance(child, Inline):
                yield from self._below(child.children, place)
            else:
                yield from self._below(self.fragments[child.name][1], place)


# --- what a response gives for the next query ---------------------------------------------------------------------


def texts(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """List the texts of a response with their places."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from texts(entry, (*place, key))
    elif isinstance(value, list):
        for entry in value:
            yield from texts(entry, place)
    elif isinstance(value, str):
        yield place, value


def _content(text: str) -> Any:
    if len(text) < 8 or not text.startswith("W"):
        return None
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    for plain in (content, content[:-SIGNATURE_BYTES]):
        with suppress(ValueError):
            return orjson.loads(plain)
    return None


def learn(known: Known, data: Any) -> dict[Place, list[str]]:
    """Remember the ids and cursors of a response, and give the cursors by the place of their connection."""
    found: dict[Place, list[str]] = {}
    for place, text in texts(data):
        content = _content(text)
        if isinstance(content, list) and len(content) == 3 and content[0] == 1:
            # connection.edges.cursor, connection.pageInfo.endCursor
            found.setdefault(place[:-2], []).append(text)
            if text not in known.cursors and len(known.cursors) < 200:
                known.cursors.append(text)
        elif isinstance(content, list) and content and text not in known.ids and len(known.ids) < 200:
            known.ids.append(text)
    return found


def next_page(query: Query, cursors: dict[Place, list[str]], dice: Random) -> Query | None:
    """Ask for what lies behind or before some of the cursors of a query's own response."""
    made = deepcopy(query)
    places: dict[Place, list[Field]] = {}
    for place, entry in made.fields():
        places.setdefault(place, []).append(entry)
    usable = sorted(place for place in cursors if place in places)
    if not usable:
        return None
    for place in dice.sample(usable, dice.randrange(1, min(len(usable), 3) + 1)):
        changes = _turned(cursors[place], dice, goes_back=all(one.goes_back for one in places[place]))
        for entry in places[place]:
            entry.arguments |= changes
            if "last" in changes or "first" in changes:
                entry.arguments.pop("first" if "last" in changes else "last", None)
    made.drop_unused()
    return made


def again(query: Query, dice: Random) -> Query:
    """Ask the same document with other variables."""
    made = replace(query, variables=Variables(query.variables.declared, dict(query.variables.given)))
    given = made.variables.given
    for name, (type_, default) in made.variables.declared.items():
        kind = dice.random()
        if type_ == "Boolean!":
            given[name] = kind < 0.5
        elif kind < 0.2 and (not type_.endswith("!") or default is not None):
            given.pop(name, None)
        elif kind < 0.35 and not type_.endswith("!"):
            given[name] = None
        elif kind < 0.6:
            same = [
                given[other]
                for other, (declared, _) in made.variables.declared.items()
                if declared == type_ and other in given
            ]
            given |= {name: dice.choice(same)} if same else {}
        elif type_.startswith("Int") and kind < 0.8:
            given[name] = dice.randrange(1, 5)
    return made


def _turned(cursors: list[str], dice: Random, *, goes_back: bool) -> dict[str, str]:
    """Draw arguments that go on from a cursor, forward or backward, or that lie between two."""
    cursor = json.dumps(dice.choice(cursors))
    kind = dice.random()
    if kind < 0.45 or not goes_back:
        return {"after": cursor} | ({"first": str(dice.randrange(1, 4))} if kind < 0.3 else {})
    if kind < 0.8:
        return {"before": cursor} | ({"last": str(dice.randrange(1, 4))} if kind < 0.7 else {})
    if kind < 0.95:
        return {"after": cursor, "before": json.dumps(dice.choice(cursors))}
    place = dice.randrange(1, len(cursor) - 1)
    return {"after": cursor[:place] + dice.choice("Aa0_") + cursor[place + 1 :]}
