"""From groups of items to a draft: nodes, edges and children, their keys, fields and relationships."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from graph.infer.groups import Group, text_of
from graph.infer.sample import Sample
from graph.infer.texts import Slot, words
from resolvers.infer.draft import Draft, DraftField, DraftKey, DraftTable, DraftType, Hole, Written
from resolvers.infer.fields import Fields
from resolvers.infer.links import Link, finds, held_by, references, relate
from resolvers.infer.names import attribute_case, camel, pascal, plural, type_name, unique
from resolvers.infer.nodes import Entity, Naming, entity_of, families, named_by, naming, owner, shares, tail, wish

FEW = 5
"""So many nodes must be named once only, before that is taken for a rule."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A table with one way to group its items."""

    sample: Sample
    type_attribute: str | None
    groups: tuple[Group, ...]
    note: str = ""


@dataclass(eq=False)
class _Item:
    """A group on its way to a type."""

    plan: Plan
    group: Group
    entity: Entity | None = None
    """Whose partition it lies in; it may be its own."""
    literal: str | None = None
    """What stands before that node's variable, where it is not as in its own key."""
    tail: str = ""
    """What stands behind it."""
    sorted_by: Naming | None = None
    """The node that the sort key names."""
    type: DraftType = field(default_factory=lambda: DraftType(""))

    def partition(self, own: DraftField) -> Written:
        """Write the partition key of an item of another node."""
        assert self.entity is not None
        written = self.entity.written(own, self.entity.literal if self.literal is None else self.literal)
        return (*written, self.tail) if self.tail else written

    @property
    def is_own(self) -> bool:
        return self.entity is None or self.entity.group is self.group

    @property
    def is_edge(self) -> bool:
        return not self.is_own and self.sorted_by is not None


class Drafting:
    """Makes a draft of all tables together."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._plans = plans
        self._entities: list[Entity] = []
        self._items: list[_Item] = []
        self._virtual: list[Entity] = []
        self._types: list[DraftType] = []
        self._links: list[Link] = []
        self._cases = {
            plan.sample.name: attribute_case(
                {name for item in plan.sample.items for name in item} - set(plan.sample.keys)
            )
            for plan in plans
        }

    def make(self) -> Draft:
        """Make the draft."""
        tables = [self._table(plan) for plan in self._plans]
        self._find_nodes()
        self._fields = Fields(self._types, self._entities, tables, self._cases)
        for entity in self._virtual:
            self._fields.virtual(entity)
        for one in sorted(self._items, key=lambda one: one.entity is None or not one.is_own):
            if one.is_own:
                self._node(one)
        for one in self._items:
            if not one.is_own and not one.is_edge:
                self._child(one)
        self._edges()
        for one in self._items:
            self._fields.index_keys(one.type, one.group)
        self._links += references(self._types, self._links)
        for type_ in self._types:
            held = held_by(type_)
            type_.fields.sort(key=lambda one: one not in held)
        relate(self._links)
        return Draft(tables, self._types, list(finds(self._types, tables)))

    def _find_nodes(self) -> None:
        """Find whose partition each item lies in, what its sort key names, and make the types."""
        left = [items for plan in self._plans for items in self._add_items(plan)]
        for items in left:
            if not tail(items[0].group):
                self._add_ownerless(items)
        self._add_tailed([items for items in left if tail(items[0].group)])
        self._across_tables()
        for one in self._items:
            self._sort(one)
        self._drop_idle_virtuals()
        for one in sorted(self._items, key=lambda one: (not one.is_own, one.is_edge)):
            if one.type not in self._types:
                self._typed(one, wish(one.group, one.plan.sample, one.entity, one.tail))

    def _table(self, plan: Plan) -> DraftTable:
        sample = plan.sample
        made = DraftTable(sample, self._cases[sample.name], plan.type_attribute)
        made.notes += [plan.note] if plan.note else []
        for index in sample.indexes:
            binary = [name for name in index.key_attributes if sample.key_types.get(name) == "B"]
            if binary:
                made.notes.append(f"the index {index.name} is left out: its key {binary[0]} is binary")
            else:
                made.indexes.append(index)
        return made

    # --- whose partition it is ---

    def _add_items(self, plan: Plan) -> list[list[_Item]]:
        """Find the nodes that partitions belong to; give the families that have none."""
        left = []
        for family in families(plan.groups):
            own = owner(family)
            items = [_Item(plan, group) for group in family]
            self._items += items
            if own is None:
                left.append(items)
                continue
            (first,) = [one for one in items if one.group is own]
            entity = entity_of(self._typed(first, wish(own, plan.sample, None)), own)
            self._entities.append(entity)
            for one in items:
                one.entity = entity
        return left

    def _add_ownerless(self, items: list[_Item]) -> None:
        """Find the node that partitions name in another way, else make one that is virtual."""
        plan, family = items[0].plan, [one.group for one in items]
        entity = entity_of(DraftType(""), family[0])
        values = [text.removeprefix(entity.literal) for group in family for text in group.texts(group.keys[0])]
        if entity.literal and entity.slot is not None:
            known = [one for one in self._entities if one.type.table == plan.sample.name]
            named = naming(entity.literal, values, known)
            if named is not None and not named.lead:
                named.entity.ref = named.literal
                for one in items:
                    one.entity, one.literal = named.entity, named.literal
            else:
                entity.type = self._new(entity.literal, plan, is_virtual=True)
                entity.values = frozenset(values)
                entity.group = replace(family[0])
                entity.children = family if shares(family) else []
                self._virtual.append(entity)
                self._entities.append(entity)
                for one in items:
                    one.entity = entity

    def _add_tailed(self, families_: Sequence[list[_Item]]) -> None:
        """Find the node whose name stands at the beginning of partition keys, or make it: `USER#7#follower`."""
        literals = Counter(items[0].group.heads[0] for items in families_)
        for items in families_:
            plan, group = items[0].plan, items[0].group
            texts = [text for one in items for text in _slot_texts(one.group, 0)]
            known = [one for one in self._entities if one.type.table == plan.sample.name]
            literal = str(group.pieces[group.keys[0]][0])
            named = naming(literal, texts, known)
            if named is None and literals[group.heads[0]] > 1:
                slot = Slot(tuple(texts))
                shape = replace(group, pieces={group.keys[0]: (literal, slot)})
                entity = entity_of(self._new(literal, plan, is_virtual=True), shape)
                entity.children = [one.group for one in items]
                self._virtual.append(entity)
                self._entities.append(entity)
                named = Naming(entity, "", literal)
            if named is None or named.lead:
                continue
            for one in items:
                one.entity, one.literal, one.tail = named.entity, named.literal, tail(one.group)
            if named.literal != named.entity.literal:
                named.entity.ref = named.literal

    def _typed(self, one: _Item, name: str) -> DraftType:
        made = self._new(name, one.plan, one.type)
        assert made is one.type
        one.type.tag = one.group.tag if one.plan.type_attribute else None
        one.type.groups.append(one.group)
        return one.type

    def _new(self, name: str, plan: Plan, made: DraftType | None = None, *, is_virtual: bool = False) -> DraftType:
        table = plan.sample.name
        made = made or DraftType("")
        made.name, made.table = type_name(name, (one.name for one in self._types)), table
        made.is_virtual, made.case = is_virtual, self._cases[table]
        made.table_is_told = plan is not self._plans[0]
        self._types.append(made)
        return made

    def _across_tables(self) -> None:
        """Find items whose partition key names a node of another table: `sensor` a Sensor."""
        for one in self._items:
            attribute = one.group.keys[0]
            found = one.group.pieces[attribute]
            if one.entity is not None and (not one.is_own or len(one.group.keys) == 1):
                continue
            if len(found) != 1 or not isinstance(found[0], Slot):
                continue
            others = [e for e in self._entities if e.type.table != one.type.table and not e.literal]
            is_number = "N" in one.group.items[0][attribute]
            entity = named_by(attribute, found[0].texts, others, is_number=is_number)
            if entity is not None:
                self._entities = [e for e in self._entities if e is not one.entity]
                one.entity = entity

    def _sort(self, one: _Item) -> None:
        """Find the node that a sort key names."""
        keys = one.group.keys
        if len(keys) < 2 or one.group.is_self_keyed:
            return
        found = one.group.pieces[keys[1]]
        last = found[-1]
        if len(found) != 2 or not isinstance(found[0], str) or not isinstance(last, Slot):
            return
        named = naming(found[0], last.texts, self._entities)
        if named is not None and named.entity.type is not one.type:
            one.sorted_by = named
            if named.literal != named.entity.literal:
                named.entity.ref = named.literal

    def _drop_idle_virtuals(self) -> None:
        """Leave out virtual nodes that link nothing: the partition key of one type alone is that type's own."""
        for entity in [*self._virtual]:
            items = [one for one in self._items if one.entity is entity]
            is_named = any(one.sorted_by is not None and one.sorted_by.entity is entity for one in self._items)
            if entity.children or is_named or any(one.sorted_by is not None for one in items):
                continue
            self._virtual.remove(entity)
            self._entities.remove(entity)
            self._types.remove(entity.type)
            for one in items:
                one.entity = None

    # --- nodes and children ---

    def _node(self, one: _Item) -> None:
        """Make a node whose partition key is its own."""
        group, type_ = one.group, one.type
        self._fields.attributes(type_, group)
        partition = self._fields.key(type_, group, group.keys[0])
        if one.entity is not None and one.entity.slot is not None:
            hole = partition[-1]
            assert isinstance(hole, Hole)
            one.entity.field = hole.field
            if one.entity.ref is not None:
                type_.ref = (one.entity.ref, hole)
        sort = None
        if len(group.keys) > 1 and not group.is_self_keyed:
            sort = self._sort_key(one)
        type_.keys.append(DraftKey(partition, sort, is_self_keyed=group.is_self_keyed))

    def _child(self, one: _Item) -> None:
        """Make a node that lies in the partition of another."""
        assert one.entity is not None
        group, type_ = one.group, one.type
        self._fields.attributes(type_, group)
        parent = type_.add(DraftField(camel(one.entity.type.name), "{}!", target=one.entity.type))
        self._fields.names(group, parent, one.entity, _slot_texts(group, 0))
        sort = self._sort_key(one) if len(group.keys) > 1 else None
        type_.keys.append(DraftKey(one.partition(parent), sort))
        is_one = len(group.keys) < 2 or group.whole[1]
        name = camel(type_.name)
        if is_one and name.startswith(camel(one.entity.type.name)) and len(name) > len(one.entity.type.name):
            name = camel(name[len(one.entity.type.name) :])
        self._links.append(Link(one.entity.type, type_, type_, parent, name if is_one else plural(name), not is_one))

    def _sort_key(self, one: _Item) -> Written:
        group, attribute = one.group, one.group.keys[1]
        if one.sorted_by is None:
            return self._fields.key(one.type, group, attribute)
        named = one.sorted_by
        name = camel(words(named.lead)) or camel(named.entity.type.name)
        made = one.type.add(DraftField(name, "{}!", target=named.entity.type))
        self._fields.names(group, made, named.entity, _slot_texts(group, 1))
        lead: Written = (named.lead,) if named.lead else ()
        return (*lead, *named.entity.written(made, named.literal))

    # --- edges ---

    def _edges(self) -> None:
        left = [one for one in self._items if one.is_edge]
        while left:
            one = left.pop(0)
            mirror = next((other for other in left if _is_mirror(one, other)), None)
            if mirror is not None:
                left.remove(mirror)
                self._types.remove(mirror.type)
                mirror.type = one.type
                one.type.groups.append(mirror.group)
            self._edge(one, mirror)

    def _edge(self, one: _Item, mirror: _Item | None) -> None:
        assert one.entity is not None
        assert one.sorted_by is not None
        start, end = one.entity, one.sorted_by.entity
        type_ = one.type
        lead = camel(words(one.sorted_by.lead)) or camel(words(one.tail))
        if one.group.tag is None:
            others = (other.name for other in self._types if other is not type_)
            wished = f"{start.type.name}{pascal(lead)}" if lead else f"{start.type.name}{end.type.name}"
            type_.name = type_name(wished, others)
        other = lead if start is end else camel(end.type.name)
        names = (camel(start.type.name), other or camel(end.type.name))
        if names[0] == names[1]:
            names = ("source", "target")
        taken = {name for group in type_.groups for item in group.items for name in item}
        source, target = (
            type_.add(DraftField(unique(name, taken - {name}), "{}!", target=entity.type))
            for name, entity in zip(names, (start, end), strict=True)
        )
        sides = [(one, source, target)] + ([(mirror, target, source)] if mirror else [])
        for side, first, second in sides:
            assert side.entity is not None
            assert side.sorted_by is not None
            named = side.sorted_by
            self._fields.names(side.group, first, side.entity, _slot_texts(side.group, 0))
            self._fields.names(side.group, second, named.entity, _slot_texts(side.group, 1))
            prefix: Written = (named.lead,) if named.lead else ()
            copied = second if _is_copy(side.group, named.entity, 1) else None
            if copied is None and _is_copy(side.group, side.entity, 0):
                copied = first
            if copied is None:
                self._fields.attributes(type_, side.group)
            sort = (*prefix, *named.entity.written(second, named.literal))
            type_.keys.append(DraftKey(side.partition(first), sort, is_edge=True, copy=copied))
        self._link_edge(one, source, target, start, end, lead)

    def _link_edge(
        self, one: _Item, source: DraftField, target: DraftField, start: Entity, end: Entity, lead: str
    ) -> None:
        name = plural(lead or camel(end.type.name))
        self._links.append(Link(start.type, end.type, one.type, source, name, many=True))
        texts = Counter(one.group.texts(one.group.keys[1]))
        is_one = one.plan.sample.is_whole and len(texts) >= FEW and max(texts.values()) == 1
        back = camel(start.type.name) if is_one else plural(camel(start.type.name))
        if start is end:
            back = f"{plural(source.name)}Of{pascal(target.name)}" if lead else "sources"
        note = f"each of the {len(texts)} is named by one {start.type.name} only" if is_one else ""
        self._links.append(Link(end.type, start.type, one.type, target, back, not is_one, note))


def _slot_texts(group: Group, place: int) -> tuple[str, ...]:
    """List what stands in the first variable of a key."""
    found = group.pieces[group.keys[place]]
    return next((piece.texts for piece in found if isinstance(piece, Slot)), ())


def _is_mirror(one: _Item, other: _Item) -> bool:
    """Say whether items say the same the other way round."""
    if (
        one.sorted_by is None
        or other.sorted_by is None
        or one.tail
        or other.tail
        or one.group.table != other.group.table
    ):
        return False
    if (
        one.entity is not other.sorted_by.entity
        or other.entity is not one.sorted_by.entity
        or one.entity is other.entity
    ):
        return False
    first, second = one.group.keys
    pairs = {(text_of(item, first), text_of(item, second)) for item in one.group.items}
    swapped = {(text_of(item, second), text_of(item, first)) for item in other.group.items}
    return 2 * len(pairs & swapped) >= max(len(pairs), len(swapped)) and one.group.tag == other.group.tag


def _is_copy(group: Group, end: Entity, place: int) -> bool:
    """Say whether items hold what the node at one end holds."""
    if end.type.is_virtual or end.slot is None:
        return False
    nodes = {text.removeprefix(end.literal): item for text, item in end.items_by_partition().items()}
    (slot,) = [piece for piece in group.pieces[group.keys[place]] if isinstance(piece, Slot)]
    kept = {name for item in group.items for name in item} - set(group.keys)
    known = {name for item in end.group.items for name in item} - set(end.group.keys)
    if not kept or not kept <= known:
        return False
    pairs = [(nodes[text], item) for text, item in zip(slot.texts, group.items, strict=True) if text in nodes]
    alike = sum(1 for node, item in pairs if all(node.get(name) == item[name] for name in kept if name in item))
    return bool(pairs) and 10 * alike >= 9 * len(pairs)
