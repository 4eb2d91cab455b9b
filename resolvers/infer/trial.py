"""Tries a draft: what the compiler refuses, or an item does not fit, is taken back until all of it serves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from graph.entity import Entity, every_layout, read_entity
from graph.errors import GraphError, InferError, ItemError, ModelError
from graph.infer.groups import Grouping, groupings, text_of
from graph.infer.sample import Sample
from graph.infer.series import joined
from graph.model import FieldKind, Index, ItemType, Model
from graph.requests import Item
from graph.scalars import AttributeValue
from resolvers.infer.draft import Draft, DraftField, DraftFind, DraftIndexed, DraftKey, DraftType
from resolvers.infer.drafting import Drafting, Plan
from resolvers.infer.names import type_name
from resolvers.sdl import compile_model

ROUNDS = 300
STAND_INS: dict[str, AttributeValue] = {
    "S": {"S": "x"},
    "N": {"N": "1"},
    "B": {"B": "eA=="},
    "BOOL": {"BOOL": True},
    "M": {"M": {}},
    "L": {"L": []},
    "SS": {"SS": ["x"]},
    "NS": {"NS": ["1"]},
    "BS": {"BS": ["eA=="]},
}
"""A value of each type, for what is declared and never seen."""


@dataclass(frozen=True)
class Inferred:
    """A schema that serves a table."""

    text: str
    model: Model
    items: int
    unfit: tuple[str, ...]
    """The keys of items that fit no type."""
    counts: dict[str, int] = field(default_factory=dict)
    """How many items each type has."""


def infer(samples: Sequence[Sample]) -> Inferred:
    """Make the schema of tables. Raises: InferError where a table has keys that no schema serves."""
    for sample in samples:
        _check(sample)
    samples = [_sorted(sample) for sample in samples]
    series = joined(samples)
    found = _best(series) or (_best(samples) if len(series) < len(samples) else None)
    if found is None:
        raise InferError(f"no schema was found that serves {', '.join(one.name for one in samples)}: write one by hand")
    return found


def _best(samples: Sequence[Sample]) -> Inferred | None:
    """Try one way to group the items after another, and take the first that all items fit, or most of them."""
    ways = [[*groupings(sample)] or [_empty(sample)] for sample in samples]
    best: Inferred | None = None
    for level in range(max(map(len, ways))):
        chosen = [way[min(level, len(way) - 1)] for way in ways]
        found = _tried(samples, chosen)
        if found is not None and (best is None or len(found.unfit) < len(best.unfit)):
            best = found
        if found is not None and not _failed(found, chosen):
            break
    return best


def _failed(found: Inferred, chosen: Sequence[Grouping]) -> bool:
    """Say whether items fit no type that were meant to."""
    return len(found.unfit) > sum(len(one.lost) for one in chosen)


def _sorted(sample: Sample) -> Sample:
    """Put items in the order of their keys, so that a schema does not depend on the order of a scan."""
    return replace(
        sample, items=tuple(sorted(sample.items, key=lambda item: [text_of(item, key) for key in sample.keys]))
    )


def _check(sample: Sample) -> None:
    for name in sample.keys:
        if sample.key_types.get(name) == "B":
            raise InferError(
                f"the key {name!r} of the table {sample.name} is binary: expected text or a number, for no template "
                "makes binary keys. Serve another table, or copy its items under keys that are text"
            )


def _empty(sample: Sample) -> Grouping:
    """Group nothing: an item is made up, so that the table's keys alone make a type."""
    item = {name: STAND_INS[kind] for name, kind in sample.declared.items() if kind in STAND_INS}
    item |= {name: STAND_INS[sample.key_types.get(name, "S")] for name in sample.keys}
    return [*groupings(replace(sample, items=(item,)))][-1]


def _tried(samples: Sequence[Sample], chosen: Sequence[Grouping]) -> Inferred | None:
    plans = [
        Plan(sample, one.type_attribute, tuple(one.groups), one.note)
        for sample, one in zip(samples, chosen, strict=True)
    ]
    draft = Drafting(plans).make()
    for _ in range(ROUNDS):
        lines = [*draft.lines()]
        try:
            model = compile_model("\n".join(line for line, _ in lines) + "\n")
        except ModelError as error:
            if not _mend(draft, lines, error):
                return None
            continue
        wrong, unfit, counts = _fitted(draft, model, samples)
        if not wrong:
            return _told(draft, samples, unfit, counts)
        for one in wrong:
            _demote(one)
    return None


def _told(draft: Draft, samples: Sequence[Sample], unfit: dict[str, list[str]], counts: Counter[str]) -> Inferred:
    for type_ in draft.types:
        if counts[type_.name]:
            type_.told = f"{counts[type_.name]} of the items seen."
            if counts[type_.name] == 1:
                type_.notes.append("one item was seen: what its keys may hold besides is not known")
    for table in draft.tables:
        missing = unfit.get(table.sample.name, [])
        count = len(table.sample.items)
        if not count:
            table.notes.append(f"{table.sample.name} has no items: what its keys look like is not known")
        if missing:
            some = ", ".join(sorted(missing)[:3])
            table.notes.append(f"{len(missing)} of {count} items of {table.sample.name} fit no type, keys like {some}")
    draft.told += [_heading(table.sample) for table in draft.tables]
    draft.told.append("A type with `!` says that every item seen has it: whoever reads one without gets an error.")
    text = draft.text()
    names = tuple(name for missing in unfit.values() for name in missing)
    return Inferred(text, compile_model(text), sum(len(one.items) for one in samples), names, dict(counts))


def _heading(sample: Sample) -> str:
    """Say what the schema was made of."""
    of = "all" if sample.is_whole else "a sample of"
    return f"Made by `tablegraph infer` of {of} the items of {sample.name}: {len(sample.items):,}."


def shown(sample: Sample, item: Item) -> str:
    """Write the key of an item."""
    return " / ".join(str(next(iter(item[name].values())))[:60] for name in sample.keys)


# --- whether the items fit ----------------------------------------------------------------------------------------


def _fitted(
    draft: Draft, model: Model, samples: Sequence[Sample]
) -> tuple[list[DraftField], dict[str, list[str]], Counter[str]]:
    """Read every item as the model has it: list fields that cannot be read, and items that are not of just one type."""
    wrong: dict[DraftField, None] = {}
    unfit: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    types = {type_.name: type_ for type_ in draft.types}
    for sample in samples:
        layouts = [
            layout for item in model.items.values() for layout in every_layout(item) if layout.table == sample.name
        ]
        for item in sample.items:
            found = [entity for layout in layouts if (entity := read_entity(model, layout, item)) is not None]
            if len({entity.type.name for entity in found}) != 1:
                unfit.setdefault(sample.name, []).append(shown(sample, item))
                continue
            counts[found[0].type.name] += 1
            entity = found[0]
            entity.holds = None
            for one in types[entity.type.name].fields:
                if one.relationship is None and not one.is_dropped and not _is_read(entity, entity.type, one):
                    wrong[one] = None
    return list(wrong), unfit, counts


def _is_read(entity: Entity, type_: ItemType, one: DraftField) -> bool:
    entry = type_.fields[one.name]
    try:
        value = entity.reference(entry) if entry.kind is FieldKind.REFERENCE else entity.value(entry)
    except (ItemError, GraphError, ValueError):
        return False
    return value is not None or not entry.type.required


def _demote(one: DraftField) -> None:
    """Declare less of a field that cannot be read as it is declared."""
    if one.type.endswith("!"):
        one.type = one.type.rstrip("!")
        one.plain = one.plain.rstrip("!")
    elif one.target is not None:
        _plain(one)
    elif one.type != "JSON":
        one.type, one.is_set = "JSON", False
    else:
        one.is_dropped = True


def _plain(one: DraftField) -> None:
    one.target, one.ref, one.type = None, None, one.plain


# --- what the compiler refuses ------------------------------------------------------------------------------------


def _mend(draft: Draft, lines: Sequence[tuple[str, object]], error: ModelError) -> bool:
    """Take back what has a mistake; say whether that was possible."""
    is_mended = False
    for problem in error.problems:
        about = lines[problem.line - 1][1] if problem.line <= len(lines) else None
        is_mended |= any(_mend_one(draft, about, problem.message))
    return is_mended


def _mend_one(draft: Draft, about: object, message: str) -> Iterator[bool]:
    """Change what a mistake is about."""
    if isinstance(about, DraftFind):
        about.is_dropped = True
        yield True
    elif isinstance(about, DraftField):
        yield _mend_field(draft, about)
    elif isinstance(about, DraftIndexed):
        yield _drop_indexed(draft, about)
    elif isinstance(about, Index):
        yield _drop_index(draft, about.table, about.name)
    elif isinstance(about, DraftKey):
        yield _mend_key(draft, about, message)
    elif isinstance(about, DraftType):
        about.name = type_name(f"{about.name}Record", (one.name for one in draft.types if one is not about))
        yield True


def _mend_field(draft: Draft, one: DraftField) -> bool:
    if one.is_dropped:
        return False
    if one.relationship is not None:
        one.is_dropped = True
        return True
    if one.target is not None:
        if one.attribute is None:
            return False
        _plain(one)
        return True
    owner = next(type_ for type_ in draft.types if one in type_.fields)
    if any(
        hole.field is one
        for key in owner.keys
        for hole in (*key.partition, *(key.sort or ()))
        if not isinstance(hole, str)
    ):
        one.name = f"{one.name}Value"
        return not one.name.endswith("ValueValue")
    one.is_dropped = True
    return True


def _mend_key(draft: Draft, key: DraftKey, message: str) -> bool:
    owner = next(type_ for type_ in draft.types if key in type_.keys)
    found = re.search(r"on the index `([^`]+)`", message)
    if found is not None:
        return _drop_index(draft, owner.table, found[1])
    if key.copy is not None:
        key.copy = None
        return True
    if owner.ref is not None:
        owner.ref = None
        return True
    return False


def _drop_indexed(draft: Draft, indexed: DraftIndexed) -> bool:
    for type_ in draft.types:
        if indexed in type_.indexed:
            type_.indexed.remove(indexed)
            for one in indexed.fields:
                type_.add(one)
            return True
    return False


def _drop_index(draft: Draft, table: str, name: str | None) -> bool:
    for one in draft.tables:
        index = next((index for index in one.indexes if index.name == name), None)
        if one.sample.name == table and index is not None:
            one.indexes.remove(index)
            one.notes.append(f"the index {name} is left out: nothing tells the items of two types apart in it")
            for type_ in draft.types:
                for indexed in [used for used in type_.indexed if used.index is index and type_.table == table]:
                    _drop_indexed(draft, indexed)
            return True
    return False
