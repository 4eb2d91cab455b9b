"""One attempt at a mutation: what it reads, and the transaction that it becomes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from graph.entity import UNKNOWN, Entity
from graph.errors import AlreadyExists, ConditionFailed, InputPath, NotFound, Required, VersionConflict
from graph.expressions import Compare
from graph.filters import NO_FILTER, Filter, holds, paths, push_down
from graph.keys import Path
from graph.loaders import Operation
from graph.lookups import by_keys
from graph.model import Field, FieldKind, ItemType, Layout
from graph.requests import ItemKey
from graph.rules import Right
from graph.tasks import together
from graph.transaction import Guard, Rule, Transaction, shown
from graph.updates import plus
from graph.writes.counters import shares
from graph.writes.draft import Draft, Wanted, behind
from graph.writes.guards import LOCK, name_of, present, unchanged
from graph.writes.locks import Locks, send
from graph.writes.rights import Rights
from graph.writes.stored import is_stored


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the caller asks of the item that is written: its version, and a filter that it passes."""

    version: int | None = None
    where: Filter = NO_FILTER

    def looked_at(self, type_: ItemType) -> frozenset[str]:
        """List the fields that are looked at, and told of by whether the write is done."""
        version = () if self.version is None or type_.version is None else (type_.version,)
        return frozenset((*version, *(path[0] for path in paths(self.where))))


NO_CONDITIONS = Conditions()


class Writing:
    """What one attempt at a mutation has read and wants to change.

    It may turn out to rest on what is no more: then another one begins, with the same locks.
    """

    def __init__(self, operation: Operation, locks: Locks, *, is_alone: bool = True) -> None:
        self.operation = operation
        self.is_alone = is_alone
        """No other mutation is in the transaction."""
        self.model = operation.model
        self.rights = Rights(operation.model, operation.permissions)
        self.locks = locks
        self.transaction = Transaction()
        self.now = datetime.now(UTC).replace(microsecond=0)
        self.seen: set[ItemKey] = set()
        """The items that are deleted or rewritten already: two ways may lead to one."""
        self.created: list[Draft] = []
        """The items that the transaction creates: what comes after may name the nodes among them."""
        self.gone: set[ItemKey] = set()
        """The items that the mutation deletes, in this transaction or in parts before it."""
        self.dropped: dict[ItemKey, int] = {}
        """Of items whose versions went in parts: the first version that is left."""
        self._names: set[tuple[str, tuple[tuple[Path, Any], ...]]] = set()
        self._met: set[tuple[ItemKey, str]] = set()
        self._unmet: list[tuple[ItemKey, str, str, InputPath, int]] = []

    async def part(self, build: Callable[[Writing], Awaitable[None]]) -> None:
        """Send a part of a mutation that is too large for one transaction. Raises Refused, StoreError."""
        part = Writing(self.operation, self.locks)
        await build(part)
        await send(self.operation, part.transaction)

    # --- reading ---

    async def read(self, named: Entity, at: InputPath) -> Entity:
        """Read an item whole, as it is now. Raises NotFound."""
        (found,) = await by_keys(self.operation, [named])
        if found is None:
            raise missing(named, at)
        return found

    async def take(
        self, named: Entity, right: Right, at: InputPath, fields: Iterable[str] = (), asked: Conditions = NO_CONDITIONS
    ) -> tuple[Entity, list[Guard]]:
        """Read an item to which the caller wants a right, and what keeps it.

        Raises: NotFound, of one that they may not read as of one that is not there; Forbidden.
        """
        if not self.rights.may_see(named):
            raise missing(named, at)
        found = await self.read(named, at)
        if not (self.rights.sees(found) or self.rights.has(found, right)):
            raise missing(named, at)
        return found, self.rights.rest(found, self.key(found), right, at, fields, asked.looked_at(named.type))

    def known(self, node: Entity) -> Draft | Entity:
        """Give the node that the transaction itself creates, where it is the one that is named."""
        for draft in self.created if node.type.is_node else ():
            if draft.type is node.type and all(draft.at(path) == value for path, value in node.paths.items()):
                return draft
        return node

    def claim(self, named: Entity, at: InputPath) -> None:
        """Give a node a name that no other one has. Raises AlreadyExists when the transaction has given it already."""
        name = named.type.name, tuple(named.paths.items())
        if name in self._names:
            raise AlreadyExists(f"the transaction has a {describe(named)} already: leave out one of the two", at)
        self._names.add(name)

    async def complete(self, draft: Draft, wanted: Wanted, at: InputPath) -> None:
        """Read what is wanted of the nodes that an item names, where it is not known yet."""
        for name, below in wanted.items():
            node = draft.values.get(name)
            if isinstance(node, Entity) and not node.type.virtual:
                draft.values[name] = await self._deepened(node, below, (*at, name))

    async def _deepened(self, node: Entity, wanted: Iterable[Path], at: InputPath) -> Entity:
        """Read a node, and on behind its own references, as far as the paths lead."""
        unknown = [path for path in wanted if node.at(path) is UNKNOWN]
        if not unknown:
            return node
        found = node if node.holds is None else await self.read(node, at)
        for path in unknown:
            further = found.reference(found.type.fields[path[0]]) if len(path) > 1 else None
            if isinstance(further, Entity):
                found.nodes[path[0]] = await self._deepened(further, [path[1:]], (*at, path[0]))
        return found

    @staticmethod
    def key(read: Entity) -> ItemKey:
        """Give the key of an item that was read."""
        assert read.key is not None, "what was read has a key"
        return read.key

    async def key_of(self, node: Draft | Entity, at: InputPath) -> ItemKey:
        """Give the key of a node, which some can only be found by."""
        if isinstance(node, Draft):
            return node.key()
        return node.key or (await self.read(node, at)).key  # type: ignore[return-value]  # what was read has one

    # --- what is checked ---

    async def refuse_unseen(self, draft: Draft, names: Iterable[str], at: InputPath) -> None:
        """Refuse to name nodes that the caller may not read, as if they were not there. Raises NotFound."""
        named = [(name, draft.values.get(name)) for name in names]
        await together([self._refuse_unseen(node, (*at, name)) for name, node in named if isinstance(node, Entity)])

    async def _refuse_unseen(self, node: Entity, at: InputPath) -> None:
        if self.rights.may_name(node):
            return
        if node.type.virtual or not self.rights.may_see(node):
            raise missing(node, at)
        found = await self.read(node, at)
        if not self.rights.sees(found):
            raise missing(node, at)
        key = self.key(found)
        self.rights.resting[key] = self.rights.rest(found, key, Right.READ, at)

    async def check_node(
        self, draft: Draft, entry: Field, at: InputPath, layouts: Collection[Layout] | None = None
    ) -> None:
        """Ask that a node that an item names is there, free to be linked, and what was copied of it unchanged.

        Copied are the fields that a mutation writes into items, unless other layouts are given.
        """
        node = draft.values.get(entry.name)
        if not isinstance(node, (Draft, Entity)) or node.type.virtual:
            return
        at = (*at, entry.name)
        key = await self.key_of(node, at)
        guards = [present(node.type, key, self.operation.now, at), self.locks.free(node.type, key, at)]
        guards += self.rights.resting.get(key, ())
        # A node that the transaction itself writes is named as it will be.
        rests_on = frozenset() if isinstance(node, Draft) else frozenset((LOCK,))
        if isinstance(node, Entity) and node.holds is None:
            used = {path[0] for path in behind(self.model, draft, draft.type.fields, layouts).get(entry.name, ())}
            fields = [node.type.fields[name] for name in used]
            stored = {entry.attribute for entry in fields if is_stored(self.model, node.type, entry)}
            guards += unchanged(node, key, stored, at)
            rests_on |= stored
        self.transaction.check(key, guards, rests_on)

    def conditions(self, type_: ItemType, key: ItemKey, asked: Conditions, at: InputPath) -> list[Guard]:
        """Make the guards of the caller's conditions, as far as DynamoDB decides them."""
        name, guards = name_of(type_, key), []
        if asked.version is not None and type_.version is not None:
            condition = Compare(type_.fields[type_.version].attribute, "=", ("N", str(asked.version)))
            guards.append(Guard(Rule.VERSION, condition, name, (*at, "ifVersion")))
        pushed, _ = push_down(asked.where, type_)
        if pushed is not None:
            guards.append(Guard(Rule.WHERE, pushed, name, (*at, "where")))
        return guards

    def must_decide(self, type_: ItemType, asked: Conditions) -> bool:
        """Say whether the caller's filter looks at what DynamoDB does not decide."""
        return any(True for _ in paths(push_down(asked.where, type_)[1]))

    def decide(self, read: Entity, key: ItemKey, asked: Conditions, at: InputPath) -> list[Guard]:
        """Decide here what can be, and ask that what DynamoDB does not decide stays so.

        Raises: ConditionFailed, VersionConflict.
        """
        known = read.at((read.type.version,)) if read.type.version else None
        if asked.version is not None and asked.version != known:
            raise other_version(name_of(read.type, key), (*at, "ifVersion"))
        _, rest = push_down(asked.where, read.type)
        if not holds(rest, read):
            raise ConditionFailed(f"{name_of(read.type, key)} does not pass `where`", (*at, "where"))
        return unchanged(read, key, {read.type.fields[path[0]].attribute for path in paths(rest)}, at)

    # --- counters ---

    async def count(self, before: Draft | None, after: Draft | None, at: InputPath) -> None:
        """Change the counters of the nodes that an item was counted by, and of those that count it now.

        A node that is gone counts nothing.
        """
        deltas: dict[tuple[ItemKey, str], Decimal] = {}
        nodes: dict[ItemKey, tuple[ItemType, Rule]] = {}
        now = list(shares(self.model, after)) if after else []
        for share in now:
            key = await self.key_of(share.node, at)
            nodes[key] = share.node.type, Rule.PRESENT
            deltas[key, share.field.attribute] = share.amount
        for share in shares(self.model, before) if before else ():
            if any(share.node is one.node for one in now) or await self._is_there(share.node):
                key = await self.key_of(share.node, at)
                nodes.setdefault(key, (share.node.type, Rule.UNCHANGED))
                place = key, share.field.attribute
                deltas[place] = plus(deltas.get(place, Decimal(0)), share.amount.copy_negate())
        for (key, attribute), delta in deltas.items():
            if delta:
                type_, rule = nodes[key]
                self.transaction.count(key, attribute, delta, [present(type_, key, self.operation.now, at, rule)])

    async def _is_there(self, node: Draft | Entity) -> bool:
        return isinstance(node, Draft) or (await by_keys(self.operation, [node]))[0] is not None

    # --- required relationships ---

    def require(self, draft: Draft, at: InputPath) -> None:
        """Remember that a new node needs something behind each required relationship."""
        for entry in draft.type.fields.values():
            if entry.kind is FieldKind.RELATIONSHIP and entry.type.required and entry.type.of is None:
                text = f"a {draft.type.name} needs a {entry.type.named} as its `{entry.name}`: give one along with it"
                self._unmet.append((draft.key(), entry.name, text, (*at, entry.name), self.transaction.mutation))

    async def meet(self, draft: Draft, at: InputPath) -> None:
        """Remember which required relationships an item serves."""
        for node, name, _ in self._serves(draft):
            self._met.add((await self.key_of(node, at), name))

    async def release(self, draft: Draft, at: InputPath) -> None:
        """Remember which required relationships an item serves that goes."""
        for node, name, target in self._serves(draft):
            text = (
                f"the {node.type.name} would be left without the {target} that it needs as its `{name}`: give it "
                "another one in the same transaction, or delete it as well"
            )
            self._unmet.append((await self.key_of(node, at), name, text, at, self.transaction.mutation))

    def _serves(self, draft: Draft) -> Iterator[tuple[Draft | Entity, str, str]]:
        """List the required relationships that an item serves: the node, the name, and what it leads to."""
        for (source, name), relationship in self.model.relationships.items():
            type_ = self.model.items[source].fields[name].type
            if not relationship.many and type_.required and draft.type.name in relationship.item_types:
                node = draft.values.get(relationship.start)
                if isinstance(node, (Draft, Entity)) and node.type.name == source:
                    yield node, name, type_.named

    def unmet(self) -> tuple[Required, int] | None:
        """Find a node that would be left without what it needs, and which mutation is at fault."""
        for key, name, text, at, mutation in self._unmet:
            if (key, name) not in self._met and key not in self.gone:
                return Required(f"{text} ({shown(key)})", at), mutation
        return None

    def refuse_unmet(self) -> None:
        """Refuse to leave a node without what it needs. Raises Required."""
        if (unmet := self.unmet()) is not None:
            raise unmet[0]


def other_version(name: str, at: InputPath) -> VersionConflict:
    """Refuse a write of an item that has been written since the caller read it."""
    return VersionConflict(f"{name} has another version than `ifVersion`: read it again, and decide anew", at)


def missing(named: Entity, at: InputPath) -> NotFound:
    """Say that there is no such item."""
    return NotFound(f"there is no {describe(named)}: expected one that exists", at)


def taken(name: str, at: InputPath) -> AlreadyExists:
    """Say that an item is there already."""
    return AlreadyExists(f"{name} is there already: change it by update or upsert", at)


def describe(named: Entity) -> str:
    """Describe an item by what names it."""
    values = ", ".join(f"{'.'.join(path)}: {value}" for path, value in named.paths.items())
    return f"{named.type.name} of {values}" if values else named.type.name
