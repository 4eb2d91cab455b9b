"""Judging: an item is compared with what a write would have made of its values."""

from __future__ import annotations

from collections.abc import Iterator

from graph.entity import UNKNOWN, Entity
from graph.errors import ItemError, KeyValueError
from graph.maintenance.findings import Code, Finding, Mend, same, told
from graph.maintenance.subjects import Subject, knows
from graph.model import Field, FieldKind
from graph.requests import key_attribute
from graph.scalars import AttributeValue
from graph.transaction import shown
from graph.updates import Update
from graph.writes.draft import Draft, paths_of, ref_text, written
from graph.writes.guards import LOCK
from graph.writes.locks import LEASE_SECS, is_stale
from graph.writes.stored import copied_fields


def judge(subject: Subject, *, lacks_no_copy: bool = False) -> list[Finding]:
    """List what is wrong with an item, as far as it shows in the item, its nodes and its mirrors.

    A copy that is not there is fetched, and not wrong, unless the item `lacks_no_copy`.
    """
    if subject.entity is None:
        return [Finding(Code.NO_TYPE, subject.key, "", "", "the shape of a type's key", "none")]
    return list(_judged(subject, lacks_no_copy=lacks_no_copy))


def _judged(subject: Subject, *, lacks_no_copy: bool) -> Iterator[Finding]:
    yield from _lock(subject)
    if subject.layout.mirror:
        if subject.first is None or subject.place not in (None, subject.key):
            if subject.first_key is not None:
                yield _orphan(subject)
            return
        yield from _mirrored(subject)
    else:
        yield from _own(subject)
        yield from _dangling(subject)
        yield from _mirrors(subject)
    yield from _tag(subject)
    yield from _references(subject)
    yield from _keys(subject)
    yield from _copies(subject, lacks_no_copy=lacks_no_copy)


def finding(subject: Subject, code: Code, field: str, expected: str, found: str, mend: Mend | None = None) -> Finding:
    """Make a finding of a subject."""
    return Finding(code, subject.key, subject.layout.type_name, field, expected, found, mend)


def _compared(
    subject: Subject, code: Code, attribute: str, expected: AttributeValue | None, *, field: str = ""
) -> Finding:
    """Make a finding of an attribute that is to be another one, or not to be."""
    update = Update(remove=frozenset((attribute,))) if expected is None else Update(put={attribute: expected})
    found = told(subject.wire.get(attribute))
    return finding(subject, code, field or attribute, told(expected), found, Mend(update))


def _draft(subject: Subject) -> Draft:
    assert subject.draft is not None, "only an item of a type is compared"
    return subject.draft


# --- the item alone -----------------------------------------------------------------------------------------------


def _lock(subject: Subject) -> Iterator[Finding]:
    lock = subject.wire.get(LOCK)
    if lock is not None and is_stale(lock):
        mend = Mend(Update(remove=frozenset((LOCK,))))
        expected = f"no lock, or one of the last {LEASE_SECS:.0f} seconds"
        yield finding(subject, Code.STALE_LOCK, LOCK, expected, told(lock), mend)


def _own(subject: Subject) -> Iterator[Finding]:
    fields = _draft(subject).type.fields
    for name, (expected, found) in subject.truth.bad.items():
        yield finding(subject, Code.BAD_VALUE, name, expected, told(found))
    for name in subject.truth.missing:
        yield finding(subject, Code.MISSING_VALUE, name, "a value", "nothing")
    for name, attribute in subject.truth.disagreeing.items():
        yield _compared(subject, Code.STALE_KEY, fields[name].attribute, attribute, field=name)


def _tag(subject: Subject) -> Iterator[Finding]:
    name = _draft(subject).model.tables[subject.layout.table].type_attribute
    if subject.tag is not None and name is not None:
        yield _compared(subject, Code.STALE_KEY, name, {"S": subject.tag})


# --- keys ---------------------------------------------------------------------------------------------------------


def _keys(subject: Subject) -> Iterator[Finding]:
    """Compare the keys of indexes, and what the primary key holds of nodes beyond their names."""
    draft, layout = _draft(subject), subject.layout
    primary = draft.model.tables[layout.table].key_attributes
    judged = {draft.type.fields[name].attribute for name in subject.truth.disagreeing}
    if not subject.layout.mirror:
        yield from _place(subject)
    for name, template in layout.templates.items():
        if name in primary or name in judged or _is_reference(draft, name) or not knows(subject, paths_of(template)):
            continue
        try:
            value = draft.made_key(layout, name)
        except KeyValueError as error:
            yield finding(
                subject, Code.BAD_VALUE, name, f"values that make a key: {error}", told(subject.wire.get(name))
            )
            continue
        expected = None if value is None else key_attribute(value)
        if not same(expected, subject.wire.get(name)):
            made = _compared(subject, Code.STALE_KEY, name, expected)
            yield made if expected is not None or not _lacks_required(subject, name) else _unmended(made)


def _lacks_required(subject: Subject, name: str) -> bool:
    """Say whether a key may be the last trace of a required field's value."""
    lacking = {path[0] for path in paths_of(subject.layout.templates[name])}
    return not lacking.isdisjoint(subject.truth.missing)


def _unmended(made: Finding) -> Finding:
    return Finding(made.code, made.key, made.type, made.field, made.expected, made.found)


def _is_reference(draft: Draft, attribute: str) -> bool:
    return any(entry.attribute == attribute for entry in draft.type.references)


def _place(subject: Subject) -> Iterator[Finding]:
    """Compare where the item lies with where its values would put it."""
    draft, layout = _draft(subject), subject.layout
    primary = draft.model.tables[layout.table].key_attributes
    if not all(knows(subject, paths_of(layout.templates[name])) for name in primary):
        return
    try:
        key = draft.key(layout)
    except KeyValueError:
        return
    if key != subject.key:
        mend = None if subject.mirrors or subject.truth.bad else Mend(move=True)
        field = next((name for (name, old), (_, new) in zip(subject.key[1], key[1], strict=True) if old != new), "")
        yield finding(subject, Code.STALE_KEY, field, _shown(key), _shown(subject.key), mend)


def _shown(key: tuple[str, tuple[tuple[str, object], ...]]) -> str:
    return f"{key[0]}: {' / '.join(str(value) for _, value in key[1])}"


def _references(subject: Subject) -> Iterator[Finding]:
    """Compare how attributes name the nodes; a reference that a key holds needs no attribute."""
    draft = _draft(subject)
    primary = draft.model.tables[subject.layout.table].key_attributes
    for entry in draft.type.references:
        found, node = subject.wire.get(entry.attribute), draft.values.get(entry.name)
        is_judged = entry.name not in subject.unreadable and entry.attribute not in primary
        if is_judged and isinstance(node, Entity):
            is_key = entry.attribute in subject.layout.templates
            expected = _reference_attribute(entry, node)
            if expected is not None and not same(expected, found) and (is_key or not _is_none(found)):
                yield _compared(subject, Code.STALE_KEY, entry.attribute, expected, field=entry.name)


def _is_none(found: AttributeValue | None) -> bool:
    return found is None or "NULL" in found


def _reference_attribute(entry: Field, node: Entity) -> AttributeValue | None:
    ref = entry.refs[node.type.name]
    if any(node.at(variable.path) in (None, UNKNOWN) for variable in ref.variables):
        return None
    try:
        return key_attribute(ref_text(entry, node))
    except KeyValueError:
        return None


# --- nodes and copies ---------------------------------------------------------------------------------------------


def _dangling(subject: Subject) -> Iterator[Finding]:
    draft = _draft(subject)
    for name, node in subject.nodes.items():
        if node is None:
            named = draft.values[name]
            values = ", ".join(f"{'.'.join(path)} {value}" for path, value in named.named.items())
            mend = None if draft.type.is_node else Mend(delete=True)
            yield finding(subject, Code.DANGLING, name, f"a {named.type.name}", f"none of {values}", mend)


def _copies(subject: Subject, *, lacks_no_copy: bool) -> Iterator[Finding]:
    """Compare the attributes copied from a node."""
    layout, draft = subject.layout, _draft(subject)
    node = subject.nodes.get(layout.copy) if layout.copy else None
    if node is None:
        return
    for entry in copied_fields(draft.model, layout, node.type):
        found = subject.wire.get(entry.attribute)
        if (found is None and not lacks_no_copy) or same(found, node.wire.get(entry.attribute)):
            continue
        try:
            value = node.at((entry.name,))
            expected = None if value is None else written(entry, value)
        except (ItemError, KeyValueError):
            continue
        if not same(found, expected):
            yield _compared(subject, Code.WRONG_COPY, entry.attribute, expected, field=f"{layout.copy}.{entry.name}")


# --- mirrors ------------------------------------------------------------------------------------------------------


def _orphan(subject: Subject) -> Finding:
    assert subject.first_key is not None
    mend = Mend(delete=True)
    if subject.place is not None:
        expected = f"this mirror of the edge at {shown(subject.place)}"
        return finding(subject, Code.ORPHAN_MIRROR, "", expected, "another one", mend)
    return finding(
        subject, Code.ORPHAN_MIRROR, "", f"the edge's first item at {shown(subject.first_key)}", "none", mend
    )


def _mirrors(subject: Subject) -> Iterator[Finding]:
    for layout, key, is_there in subject.mirrors:
        if not is_there:
            paths = (path for template in layout.templates.values() for path in paths_of(template))
            is_makeable = not subject.truth.bad and knows(subject, paths)
            mend = Mend(mirror=layout) if is_makeable else None
            yield finding(subject, Code.MIRROR_MISSING, "", f"a mirror at {shown(key)}", "none", mend)


def _mirrored(subject: Subject) -> Iterator[Finding]:
    """Compare a mirror's own fields with those of the first item."""
    first, draft = subject.first, _draft(subject)
    assert first is not None
    held = {
        path[0]
        for name in draft.model.tables[subject.layout.table].key_attributes
        for path in paths_of(subject.layout.templates[name])
    }
    for entry in draft.type.fields.values():
        if entry.kind is FieldKind.RELATIONSHIP or entry.name in held or entry.name in first.truth.bad:
            continue
        expected, found = first.truth.values.get(entry.name), subject.truth.values.get(entry.name)
        if entry.name in subject.truth.bad or not _is_same_value(entry, expected, found):
            attribute = None if expected in (None, UNKNOWN) else _attribute(entry, draft.values[entry.name])
            yield _compared(subject, Code.WRONG_MIRROR, entry.attribute, attribute, field=entry.name)


def _attribute(entry: Field, value: object) -> AttributeValue | None:
    if entry.is_set and not value:
        return None
    return written(entry, value)


def _is_same_value(entry: Field, one: object, other: object) -> bool:
    if isinstance(one, Entity) and isinstance(other, Entity):
        return one.type is other.type and dict(one.named) == dict(other.named)
    if one is None or other is None or entry.is_set:
        # An empty set is stored as nothing, and the order of a set is nobody's.
        empty: object = [] if entry.is_set else None
        return _sorted(empty if one is None else one) == _sorted(empty if other is None else other)
    if entry.kind is FieldKind.ATTRIBUTE and entry.scalar is not None and entry.type.of is None:
        comparable = entry.scalar.comparable
        return bool(comparable(one) == comparable(other))
    return one == other


def _sorted(value: object) -> object:
    return sorted(value, key=str) if isinstance(value, list) else value
