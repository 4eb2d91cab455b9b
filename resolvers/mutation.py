"""Mutations: create, update, upsert and delete for every type with items, alone or as one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import strawberry
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField

from graph import lookups
from graph.entity import Entity
from graph.loaders import Operation
from graph.model import ItemType, Model, TypeRef
from graph.patterns import lookup_name
from graph.rules import Right
from graph.writes import changing, creating, deleting
from graph.writes.commit import Mutation, write
from graph.writes.receipts import Receipt
from graph.writes.writing import Writing
from resolvers.fields import annotation, argument, resolver_field, value_field
from resolvers.inputs import InputBuilder
from resolvers.meanings import Writes
from resolvers.node import needs_of, write_id
from resolvers.selection import Selection
from resolvers.write_inputs import WriteInputBuilder
from resolvers.written import read_conditions, read_key, read_new, read_patch

NULLABLE = TypeRef(False)
KEY_ARGUMENT = "idempotencyKey"
KEY_TEXT = "Write once however often this is sent: a key of the client's own for this one write, kept for a day."

MakeObject = Callable[[str, list[StrawberryField], str | None], Any]
Prepare = Callable[[Writing, Mapping[str, Any]], Any]


class MutationBuilder:
    """Makes the root fields that write, and their payloads."""

    def __init__(self, model: Model, classes: Mapping[str, Any], inputs: InputBuilder, make: MakeObject) -> None:
        self._model = model
        self._classes = classes
        self._inputs = inputs
        self._writes = WriteInputBuilder(model, classes)
        self._make = make

    def fields(self) -> list[StrawberryField]:
        """Make every mutation."""
        return [field for item in self._model.items.values() if not item.virtual for field in self._of(item)]

    def _of(self, item: ItemType) -> Iterator[StrawberryField]:
        payload = self._payload(f"{item.name}Payload", item, [], "as it is now")
        deleted = self._payload(f"Delete{item.name}Payload", item, self._deleted_id(item), "as it was")
        create = argument("input", annotation(self._writes.create(item)), f"The new {item.name}.")
        key = argument("key", annotation(self._writes.key(item.name)), "Which one.")
        yield self._field(
            f"create{item.name}", item, payload, [create], _create(item), f"Create a {item.name}.", Right.CREATE
        )
        yield self._field(
            f"update{item.name}",
            item,
            payload,
            [key, *self._changes(item), *self._conditions(item)],
            _update(item),
            f"Change a {item.name}, and all that is made of it.",
            Right.UPDATE,
        )
        yield self._field(
            f"upsert{item.name}",
            item,
            payload,
            [create],
            _upsert(item),
            f"Create a {item.name}, or give the one that is there these values.",
            Right.CREATE,
            Right.UPDATE,
        )
        yield self._field(
            f"delete{item.name}",
            item,
            deleted,
            [key, *self._cascade(item), *self._conditions(item)],
            _delete(item),
            f"Delete a {item.name}.",
            Right.DELETE,
        )

    # --- arguments ---

    def _changes(self, item: ItemType) -> Iterator[StrawberryArgument]:
        parts = {
            "set": (self._writes.update(item), "New values."),
            "increment": (self._writes.increment(item), "What to add to numbers, whatever they are now."),
            "append": (self._writes.append(item), "What to put into lists and sets, whatever they hold."),
            "remove": (self._writes.remove(item), "What to take out of lists and sets."),
        }
        for name, (cls, description) in parts.items():
            if cls is not None:
                yield argument(name, annotation(cls, NULLABLE), description)

    def _conditions(self, item: ItemType) -> Iterator[StrawberryArgument]:
        where = annotation(self._inputs.where(item.name), NULLABLE)
        yield argument("where", where, "Only if the item passes this filter; else nothing is written.")
        if item.version is not None:
            yield argument("ifVersion", annotation(int, NULLABLE), "Only if the item has this version.")

    @staticmethod
    def _cascade(item: ItemType) -> Iterator[StrawberryArgument]:
        if item.is_node:
            yield argument("cascade", annotation(bool, NULLABLE), "Delete its edges along with it; refused otherwise.")

    # --- payloads ---

    def _payload(self, name: str, item: ItemType, more: list[StrawberryField], how: str) -> Any:
        async def resolve(source: Entity, operation: Operation, _: Mapping[str, Any], selection: Selection) -> Any:
            (whole,) = await lookups.load(operation, [source], needs_of(selection))
            return whole

        field = resolver_field(
            lookup_name(item.name),
            annotation(self._classes[item.name], NULLABLE),
            resolve,
            self._model.possible,
            description=f"The {item.name} {how}.",
        )
        return self._make(name, [*more, field], None)

    @staticmethod
    def _deleted_id(item: ItemType) -> list[StrawberryField]:
        if not item.is_node:
            return []
        return [value_field("deletedId", annotation(strawberry.ID), write_id, "The global id that is no more.")]

    def _field(
        self,
        name: str,
        item: ItemType,
        payload: Any,
        arguments: list[StrawberryArgument],
        prepare: Prepare,
        description: str,
        *rights: Right,
    ) -> StrawberryField:
        async def resolve(_: Any, operation: Operation, given: Mapping[str, Any], selection: Selection) -> Entity:
            async def build(writing: Writing) -> Any:
                return await prepare(writing, given)

            mutation = Mutation(build, _receipt(operation, item, name, given, selection.response_name))
            return await (operation.group.join(mutation) if operation.group else write(operation, mutation))

        key = argument(KEY_ARGUMENT, annotation(strawberry.ID, NULLABLE), KEY_TEXT)
        return resolver_field(
            name,
            annotation(payload, NULLABLE),
            resolve,
            self._model.possible,
            [*arguments, key],
            description,
            meaning=Writes(item, frozenset(rights)),
        )


def _receipt(
    operation: Operation, item: ItemType, name: str, given: Mapping[str, Any], response_name: str
) -> Receipt | None:
    """Say what a mutation's receipt is known by, if it has an idempotency key: its own, or the whole operation's."""
    own = given.get(KEY_ARGUMENT)
    key = f"own {own}" if own else f"shared {operation.idempotency_key} {response_name}"
    if not own and not operation.idempotency_key:
        return None
    asked = {argument: value for argument, value in given.items() if argument != KEY_ARGUMENT}
    return Receipt(item, key, f"{name} {_text(asked)}")


def _text(value: Any) -> str:
    """Write arguments so that equal ones are equal texts."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name!r}:{_text(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return repr(value)


def _create(item: ItemType) -> Prepare:
    async def create(writing: Writing, given: Mapping[str, Any]) -> Any:
        return await creating.create(writing, read_new(writing.operation, item, given["input"], ("input",)))

    return create


def _upsert(item: ItemType) -> Prepare:
    async def upsert(writing: Writing, given: Mapping[str, Any]) -> Any:
        return await creating.upsert(writing, read_new(writing.operation, item, given["input"], ("input",)))

    return upsert


def _update(item: ItemType) -> Prepare:
    async def update(writing: Writing, given: Mapping[str, Any]) -> Any:
        named = read_key(writing.operation, item.name, given["key"], ("key",))
        patch = read_patch(writing.operation, item, given)
        asked = read_conditions(writing.model, item, given)
        creating.refuse_update(writing, item, patch, asked)
        patch = replace(patch, put=await creating.with_nodes(writing, patch.put))
        return await changing.update(writing, named, patch, asked, ())

    return update


def _delete(item: ItemType) -> Prepare:
    async def delete(writing: Writing, given: Mapping[str, Any]) -> Any:
        named = read_key(writing.operation, item.name, given["key"], ("key",))
        asked = read_conditions(writing.model, item, given)
        return await deleting.delete(writing, named, asked, (), cascade=bool(given.get("cascade")))

    return delete
