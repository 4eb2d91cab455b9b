"""The fields of types in the making: of attributes, of what keys hold, and of the keys of indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graph.infer.groups import Group, text_of
from graph.infer.texts import Slot, heads, is_shouted, is_wordy, pieces
from graph.infer.values import Kind, by_frequency, date_kind, is_always, kind_of
from graph.keys import OURS
from graph.model import Index
from graph.requests import Item
from resolvers.infer.draft import DraftField, DraftIndexed, DraftKey, DraftTable, DraftType, Hole, Ref, Written
from resolvers.infer.names import TAKEN, camel, field_name, pascal, same, type_name, unique
from resolvers.infer.nodes import Entity, is_repetition, named_by, naming

PLAIN_KEY_NAMES = frozenset(
    ("pk", "sk", "hk", "rk", "hashkey", "rangekey", "hash", "range", "partitionkey", "sortkey", "partition_key",
     "sort_key", "key", "id", "objectid", "relatedobjectid", "type", "metadata", "_pk", "_sk")
)  # fmt: skip
"""Names of key attributes, in small letters, that say nothing of what is there."""
IN_KEYS = ("ID", "String", "Int", "BigInt", "Date", "DateTime")


class Fields:
    """Makes fields, and the types of what is nested in them."""

    def __init__(
        self,
        types: list[DraftType],
        entities: Sequence[Entity],
        tables: Sequence[DraftTable],
        cases: Mapping[str, str],
    ) -> None:
        self._types = types
        self._entities = entities
        self._tables = {table.sample.name: table for table in tables}
        self._cases = cases
        self._slots: dict[tuple[int, str], list[tuple[DraftField, Slot]]] = {}
        self._references: dict[int, list[tuple[DraftField, Entity, tuple[str, ...]]]] = {}
        self._heads: dict[tuple[str, str], dict[str, str]] = {}

    # --- attributes ---

    def attributes(self, type_: DraftType, group: Group) -> None:
        """Add a field for every attribute of the items that no key says already."""
        table = self._tables[group.table]
        ignored = {*group.keys, *group.overloaded, table.type_attribute}
        held = {piece.attribute for found in group.pieces.values() for piece in found if isinstance(piece, Slot)}
        for name in by_frequency(group.items):
            if name in ignored or name.startswith(OURS) or type_.of(name) is not None:
                continue
            values = [item[name] for item in group.items if name in item]
            reference = None if name in held else self._reference(type_, group, name, values)
            type_.add(reference or self._attribute(type_, group, name, values, in_key=name in held))

    def _attribute(
        self, type_: DraftType, group: Group, name: str, values: Sequence[Mapping[str, object]], *, in_key: bool = False
    ) -> DraftField:
        sample = self._tables[group.table].sample
        is_key = any(name in index.key_attributes for index in sample.indexes)
        kind = kind_of(values, name)
        if name == sample.expiry and all("N" in value for value in values):
            kind = Kind("DateTime")
        if kind.values and (in_key or is_key):
            kind = Kind("String")
        made = DraftField(self._free(type_, field_name(name, type_.case), group), "", name)
        made.is_ttl = name == sample.expiry and kind.name == "DateTime" and all("N" in value for value in values)
        made.type = self._written(kind, type_, made.name) + ("!" if is_always(name, group.items) else "")
        made.is_set = kind.is_set
        made.notes += [kind.note] if kind.note else []
        return made

    def _free(self, type_: DraftType, name: str, group: Group | None = None) -> str:
        """Give a field another name where the API has its own of this name."""
        return camel(f"{type_.name}_{name}") if name in TAKEN else name

    def _written(self, kind: Kind, owner: DraftType, name: str) -> str:
        """Write a type, and make those that it needs."""
        if kind.values:
            made = DraftType(type_name(f"{owner.name}{pascal(name)}", self._names()), enum=kind.values)
            self._types.append(made)
            return made.name
        if kind.of is not None:
            return f"[{self._written(kind.of, owner, name)}{'' if kind.has_nulls else '!'}]"
        if not kind.is_map:
            return kind.name
        wished = pascal(name) if name.lower().startswith(owner.name.lower()) else f"{owner.name}{pascal(name)}"
        made = DraftType(type_name(wished, self._names()), case=owner.case)
        made.told = f"a map in {owner.name}.{name}"
        self._types.append(made)
        for attribute, member in kind.members.items():
            inner = "AS_WRITTEN" if made.case == "AS_WRITTEN" else made.case
            one = DraftField(field_name(attribute, inner), "", attribute, is_set=member.kind.is_set)
            one.name = f"{one.name}Value" if one.name in ("and", "or", "not") else one.name
            one.type = self._written(member.kind, made, one.name) + ("!" if member.is_always else "")
            made.add(one)
        return made.name

    def _names(self) -> list[str]:
        return [type_.name for type_ in self._types]

    # --- references ---

    def _reference(
        self, type_: DraftType, group: Group, name: str, values: Sequence[Mapping[str, object]]
    ) -> DraftField | None:
        """Make the field of an attribute that names a node, where it does."""
        plain = kind_of(values, name)
        if plain.name not in ("String", "ID", "Int", "BigInt"):
            return None
        texts = [str(next(iter(value.values()))) for value in values if "NULL" not in value]
        is_number = plain.name in ("Int", "BigInt")
        entity, literal = self._named(name, texts, is_number=is_number)
        if entity is None or entity.slot is None or not all(len(text) > len(literal) for text in texts):
            return None
        if entity.type is type_ and self._is_its_own(group, entity, name, literal):
            return None
        wanted = camel(entity.type.name)
        base = field_name(name, type_.case)
        short = next((base[: -len(end)] for end in ("Id", "ID", "_id") if base.endswith(end)), base)
        made = DraftField(short if same(short) != same(wanted) else wanted, "{}", name, target=entity.type)
        made.name = self._free(type_, made.name)
        made.type += "!" if is_always(name, group.items) else ""
        made.plain = plain.name + ("!" if is_always(name, group.items) else "")
        if literal != (entity.literal if entity.ref is None else entity.ref):
            made.ref = Ref(literal, entity)
        known = sum(1 for text in texts if text[len(literal) :] in entity.values)
        if not literal or known < len(texts):
            by = "begins like" if literal else "is called like"
            made.notes.append(f"it {by} a {entity.type.name}, and {known} of {len(texts)} values are those of one")
        return made

    def _named(self, name: str, texts: list[str], *, is_number: bool) -> tuple[Entity | None, str]:
        found = {} if is_number else heads(texts)
        literals = set(found.values())
        if len(literals) == 1 and (literal := next(iter(literals))):
            rests = [text[len(literal) :] for text in texts]
            named = naming(literal, rests, self._entities)
            if named is not None and not named.lead and set(rests) & named.entity.values:
                return named.entity, named.literal
        return named_by(name, texts, self._entities, is_number=is_number), ""

    def _is_its_own(self, group: Group, entity: Entity, name: str, literal: str) -> bool:
        """Say whether an attribute only repeats the key of its own item."""
        assert entity.slot is not None
        own = zip(group.items, group.texts(group.keys[0]), strict=True)
        pairs = [(str(next(iter(item[name].values()))), text) for item, text in own if name in item]
        return all(value.removeprefix(literal) == text.removeprefix(entity.literal) for value, text in pairs)

    # --- what keys hold ---

    def virtual(self, entity: Entity) -> None:
        """Make the one field of a node without items."""
        assert entity.slot is not None
        name = "number" if any(letter.isdigit() for value in entity.values for letter in value) else "name"
        entity.field = entity.type.add(DraftField(name, "ID!"))
        if entity.ref is not None and entity.ref != entity.literal:
            entity.type.ref = (entity.ref, Hole(entity.field))
        partition: Written = (entity.literal, Hole(entity.field))
        has_sort = len(entity.group.keys) > 1
        entity.type.keys.append(DraftKey(partition, None, is_self_keyed=has_sort))

    def names(self, group: Group, own: DraftField, entity: Entity, texts: tuple[str, ...]) -> None:
        """Note that a key names a node, for index keys that repeat it."""
        if entity.slot is not None:
            self._references.setdefault(id(group), []).append((own, entity, texts))

    def key(self, type_: DraftType, group: Group, attribute: str) -> Written:
        """Write the template of a key attribute, and make the fields that it holds alone."""
        found = group.pieces[attribute]
        made: list[str | Hole] = []
        for piece in found:
            made.append(piece if isinstance(piece, str) else self._hole(type_, group, attribute, piece, len(found)))
        return tuple(made)

    def _hole(self, type_: DraftType, group: Group, attribute: str, slot: Slot, count: int) -> Hole:
        own = type_.of(slot.attribute) if slot.attribute else None
        known = self._slots.setdefault((id(group), attribute), [])
        if own is not None and own.target is None and _may_hold(own, slot):
            own.type = f"{own.type.rstrip('!')}!"
            known.append((own, slot))
            return Hole(own, format=slot.format)
        if (again := self._again(group, attribute, slot)) is not None:
            return again
        scalar = group.slot_scalar(attribute, slot)
        is_number = "N" in group.items[0][attribute]
        has_digits = any(letter.isdigit() for text in slot.texts for letter in text)
        taken = {field_name(name, type_.case) for name in by_frequency(group.items)}
        kept = None
        if count == 1 and attribute.lower() not in PLAIN_KEY_NAMES:
            name, kept = self._free(type_, field_name(attribute, type_.case)), attribute
        elif attribute.lower() not in PLAIN_KEY_NAMES and not slot.word:
            name = f"{field_name(attribute, type_.case)}{1 + len(known)}"
        elif scalar.name in ("Date", "DateTime"):
            name = unique("date" if scalar.name == "Date" else "time", taken)
        else:
            name = unique("number" if has_digits else "name", taken)
        type_name_ = scalar.name if is_number or scalar.name != "ID" else "ID" if has_digits or kept else "String"
        if attribute == group.keys[0] and type_name_ == "String":
            type_name_ = "ID"
        made = type_.add(DraftField(name, f"{type_name_}!", kept))
        known.append((made, slot))
        return Hole(made, format=slot.format if slot.format.isdigit() and type_name_ in ("Int", "BigInt") else "")

    def _again(self, group: Group, attribute: str, slot: Slot) -> Hole | None:
        """Find the field of the partition key that a sort key repeats: "#METADATA#7" behind "USER#7"."""
        if attribute == group.keys[0]:
            return None
        for own, other in self._slots.get((id(group), group.keys[0]), ()):
            if other.texts == slot.texts and not other.format and is_repetition(slot):
                return Hole(own)
        return None

    # --- the keys of indexes ---

    def index_keys(self, type_: DraftType, group: Group) -> None:
        """Say what the overloaded keys of indexes are made of."""
        table = self._tables[group.table]
        done: set[str] = set()
        for index in table.indexes:
            given: dict[str, Written] = {}
            fields: list[DraftField] = []
            for name in index.key_attributes:
                if name not in group.overloaded or name in done or type_.of(name) is not None:
                    continue
                items = [item for item in group.items if name in item]
                if not items:
                    continue
                done.add(name)
                made = self._index_key(type_, group, name, items)
                if made is None:
                    values = [item[name] for item in items]
                    type_.add(self._attribute(type_, group, name, values))
                elif made:
                    given[name] = made
                    values = [item[name] for item in items]
                    fields.append(self._attribute(type_, group, name, values))
            self._add_indexed(type_, index, given, fields)

    def _add_indexed(
        self, type_: DraftType, index: Index, given: Mapping[str, Written], fields: list[DraftField]
    ) -> None:
        sides = []
        for names in (index.partition_keys, index.sort_keys):
            whole = all(name in given for name in names) and bool(names)
            sides.append(tuple(given[name] for name in names) if whole else None)
            if not whole:
                for one in [one for one in fields if one.attribute in names]:
                    type_.add(one)
        if any(sides):
            type_.indexed.append(DraftIndexed(index, sides[0], sides[1], fields))

    def _index_key(self, type_: DraftType, group: Group, name: str, items: Sequence[Item]) -> Written | None:
        """Write the template of an index key; None: it is a value, and () a reference that the field says."""
        if any("S" not in item[name] for item in items):
            return None
        texts = [text_of(item, name) for item in items]
        if len(set(texts)) == 1 and is_wordy(texts[0]) and is_shouted(texts[0]):
            return (texts[0],) if len(items) == len(group.items) else None
        found = {self._column(group.table, name)[text] for text in texts}
        head = next(iter(found)) if len(found) == 1 else ""
        parts = pieces(head, texts, items, {*group.keys, *group.overloaded})
        made: list[str | Hole] = []
        unknown: list[DraftField] = []
        for number, piece in enumerate(parts):
            if isinstance(piece, str):
                made.append(piece)
                continue
            before = str(made[-1]) if made and isinstance(made[-1], str) else ""
            hole = self._known(type_, group, piece, items, before) or self._named_hole(
                type_, before, piece, name, number, parts
            )
            if isinstance(hole, tuple):
                literal, own = hole
                if own.attribute is not None:
                    type_.add(own)
                    return ()
                made[-1:] = [literal] if literal else []
                made.append(Hole(own))
                continue
            if hole is None:
                one = self._held(type_, group, piece)
                unknown.append(one)
                hole = Hole(one)
            made.append(hole)
        if len(unknown) > 1 or (unknown and len(made) == 1):
            return None
        for one in unknown:
            type_.add(one)
        return tuple(made)

    def _held(self, type_: DraftType, group: Group, slot: Slot) -> DraftField:
        """Make the field of what an index key holds alone."""
        taken = {field_name(name, type_.case) for name in by_frequency(group.items)}
        kind = date_kind(slot.texts)
        has_digits = any(letter.isdigit() for text in slot.texts for letter in text)
        name = "date" if kind == "Date" else "time" if kind else "number" if has_digits else "name"
        return DraftField(unique(name, {*taken, *(one.name for one in type_.fields)}), kind or "String")

    def _column(self, table: str, name: str) -> dict[str, str]:
        if (table, name) not in self._heads:
            items = [item for item in self._tables[table].sample.items if "S" in item.get(name, {})]
            self._heads[table, name] = heads(text_of(item, name) for item in items)
        return self._heads[table, name]

    def _known(self, type_: DraftType, group: Group, slot: Slot, items: Sequence[Item], literal: str) -> Hole | None:
        """Find what a key of the item, or an attribute, holds already."""
        if slot.attribute is not None:
            own = type_.of(slot.attribute)
            if own is not None and own.target is None and _may_hold(own, slot):
                return Hole(own, format=slot.format)
        is_evidence = len(set(slot.texts)) > 1
        places = {id(item): place for place, item in enumerate(group.items)}
        for attribute in group.keys:
            for own, other in self._slots.get((id(group), attribute), ()):
                if (is_evidence or group.pieces[attribute][0] == literal) and all(
                    other.texts[places[id(item)]] == text for item, text in zip(items, slot.texts, strict=True)
                ):
                    return Hole(own, format=other.format)
        for own, entity, texts in self._references.get(id(group), ()):
            if (is_evidence or literal in (entity.literal, entity.ref)) and all(
                texts[places[id(item)]] == text for item, text in zip(items, slot.texts, strict=True)
            ):
                return Hole(own, below=entity.field.name if entity.field else "")
        return None

    def _named_hole(
        self, type_: DraftType, literal: str, slot: Slot, name: str, number: int, parts: Sequence[object]
    ) -> tuple[str, DraftField] | None:
        """Find the node that a part of an index key names."""
        named = naming(literal, slot.texts, self._entities)
        if named is None or not set(slot.texts) & named.entity.values or named.entity.type is type_:
            return None
        entity = named.entity
        if named.literal != (entity.literal if entity.ref is None else entity.ref):
            return None
        known = [one for one in type_.fields if one.target is entity.type and one.relationship is None]
        if known:
            return None
        is_alone = not named.lead and len(parts) == 2 and number == 1
        made = DraftField(camel(entity.type.name), "{}", name if is_alone else None, target=entity.type)
        made.plain = "String"
        if not is_alone:
            type_.add(made)
        return named.lead, made


def _may_hold(own: DraftField, slot: Slot) -> bool:
    """Say whether a field's type can stand in a key as the slot has it."""
    name = own.type.rstrip("!")
    if slot.format == "lower":
        return name in ("ID", "String")
    if slot.format == "epoch":
        return name == "DateTime"
    if slot.format:
        return name in ("Int", "BigInt")
    return name in IN_KEYS
