"""Which groups are nodes, and which lie in the partition of another: the owners of partition keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from graph.infer.groups import Group, text_of
from graph.infer.sample import Sample
from graph.infer.texts import STRONG, Slot, words
from graph.requests import Item
from resolvers.infer.draft import DraftField, DraftType, Hole, Written
from resolvers.infer.names import parts, pascal, same, singular

STAGES = frozenset(("table", "tables", "prod", "production", "dev", "test", "staging", "stage", "local", "dynamodb"))
"""What the name of a table says that is nothing of what lies there."""
PART = 3
"""A name with more letters than these may be a part of another."""
ROOTS = frozenset(
    ("metadata", "meta", "profile", "info", "root", "detail", "self", "main", "base", "data", "a", "header")
)
"""What the sort key of a node's own item says, where others share its partition."""


@dataclass(eq=False)
class Entity:
    """A node, as others name it."""

    type: DraftType
    group: Group
    """Its own items, or of a virtual node some that name it."""
    attribute: str
    children: list[Group] = field(default_factory=list)
    """Of a virtual node: the groups that meet in its partition."""
    literal: str = ""
    slot: Slot | None = None
    """Where one variable alone names it."""
    values: frozenset[str] = frozenset()
    field: DraftField | None = None
    ref: str | None = None
    """The literal that others write before its variable, where it is not that of its own key."""

    @property
    def is_number(self) -> bool:
        """Say whether its key is a number."""
        return "N" in self.group.items[0][self.attribute]

    def items_by_partition(self) -> dict[str, Item]:
        """Give its own items by their partition keys."""
        return {text_of(item, self.attribute): item for item in self.group.items}

    def written(self, own: DraftField, literal: str) -> Written:
        """Write how a key names it that has this literal before the variable."""
        return (Hole(own, "partition" if self.ref is not None and literal != self.ref else ""),)


@dataclass(frozen=True, slots=True)
class Naming:
    """How a text names an entity: `lead` stands before it, `literal` belongs to its name."""

    entity: Entity
    lead: str
    literal: str


def entity_of(type_: DraftType, group: Group) -> Entity:
    """Make the entity of a node's items."""
    attribute = group.keys[0]
    found = group.pieces[attribute]
    slots = [piece for piece in found if isinstance(piece, Slot)]
    if len(slots) != 1 or found[-1] is not slots[0] or slots[0].format:
        return Entity(type_, group, attribute)
    literal = found[0] if isinstance(found[0], str) else ""
    return Entity(type_, group, attribute, [], literal, slots[0], frozenset(slots[0].texts))


def families(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """Put groups together that share partitions: by the literal of the partition key, else by what lies there."""
    alike: dict[tuple[str | None, ...], list[Group]] = {}
    for group in groups:
        found = group.pieces[group.keys[0]]
        alike.setdefault(tuple(piece if isinstance(piece, str) else None for piece in found), []).append(group)
    for shape, several in alike.items():
        if any(shape) or len(several) == 1:
            yield several
        else:
            yield from _sharing(several)


def _sharing(groups: Iterable[Group]) -> Iterator[list[Group]]:
    left: list[tuple[set[str], list[Group]]] = []
    for group in groups:
        texts, several = set(group.texts(group.keys[0])), [group]
        for held, others in [entry for entry in left if entry[0] & texts]:
            texts, several = texts | held, [*others, *several]
            left = [entry for entry in left if entry[0] is not held]
        left.append((texts, several))
    yield from (several for _, several in left)


def owner(family: Sequence[Group]) -> Group | None:
    """Find the group whose items are the nodes that partitions of a family belong to."""
    first = family[0]
    if tail(first) or not any(isinstance(piece, Slot) for piece in first.pieces[first.keys[0]]):
        return None
    if len(first.keys) == 1:
        return first
    single = [group for group in family if _is_single(group)]
    word = same(words(first.heads[0]))
    fixed = [group for group in single if group.whole[1]]
    wished = [
        *(group for group in family if group.is_self_keyed),
        *(group for group in single if group.tag is not None and same(group.tag) == word),
        *(group for group in single if _repeats(group)),
        *(group for group in fixed if same(group.heads[1]) in ROOTS or same(words(group.heads[1])) == word),
        *sorted(fixed, key=lambda group: -len(group.items)),
        *(group for group in single if len(family) == 1),
    ]
    return wished[0] if wished else None


def _repeats(group: Group) -> bool:
    """Say whether the sort key repeats what the partition key says."""
    slots = [[one for one in group.pieces[key] if isinstance(one, Slot)] for key in group.keys]
    (first, second) = (found[0] if len(found) == 1 else None for found in slots)
    is_root = same(words(group.heads[1])) in ROOTS
    same_texts = first is not None and second is not None and first.texts == second.texts
    return is_root and same_texts and second is not None and is_repetition(second)


def is_repetition(slot: Slot) -> bool:
    """Say whether it is no coincidence that a key says the same as another."""
    return len(set(slot.texts)) > 1 or len(slot.texts[0]) > PART


def _is_single(group: Group) -> bool:
    return len(set(group.texts(group.keys[0]))) == len(group.items)


def tail(group: Group) -> str:
    """Give what stands in a partition key behind its one variable: "#follower" of "USER#{number}#follower"."""
    found = group.pieces[group.keys[0]]
    is_tailed = len(found) == 3 and isinstance(found[0], str) and isinstance(found[1], Slot)
    return found[2] if is_tailed and isinstance(found[2], str) else ""


def shares(family: Sequence[Group]) -> bool:
    """Say whether groups of a family meet in a partition."""
    seen: set[str] = set()
    for group in family:
        texts = set(group.texts(group.keys[0]))
        if seen & texts:
            return True
        seen |= texts
    return False


def wish(group: Group, sample: Sample, entity: Entity | None, behind: str = "") -> str:
    """Say what the type of a group may be called."""
    is_own = entity is None or entity.group is group
    if group.tag is not None and not (is_own and same(group.tag) in ROOTS):
        return group.tag
    facets = {sample.facets.get(tuple(text_of(item, name) for name in group.keys)) for item in group.items}
    if sample.facets and len(facets) == 1 and (facet := next(iter(facets))) is not None and same(facet) not in ROOTS:
        return singular(pascal(facet))
    head, *rest = group.heads
    fixed = rest and group.whole[1]
    if entity is None or entity.group is group:
        own = head.strip(STRONG + "_-.") if head and not group.whole[0] else ""
        sort = "" if group.is_self_keyed or not rest else group.heads[1].strip(STRONG + "_-.")
        return pascal(own) if own else _of(sort, sample)
    if entity.type.table != sample.name:
        return _of("", sample)
    if behind:
        return entity.type.name + pascal(behind)
    if fixed:
        return entity.type.name + pascal(group.heads[1])
    found = [words(rest[0])] if rest else []
    found += [words(piece) for piece in group.pieces[group.keys[-1]][1:] if isinstance(piece, str)]
    told = [word for word in found if len(word) > 1]
    return "".join(pascal(singular(word)) for word in told) or f"{entity.type.name}Item"


def _of(sort: str, sample: Sample) -> str:
    word = words(sort)
    return pascal(word) if word and same(word) not in ROOTS else table_word(sample.name)


def table_word(name: str) -> str:
    """Call a type after its table: "prod-user-sessions" holds a UserSession."""
    found = [
        word for word in parts(re.sub(r"\{.*?\}", "", name)) if word.lower() not in STAGES and not word.isdecimal()
    ]
    return singular(pascal(" ".join(found)))


def naming(literal: str, values: Iterable[str], entities: Sequence[Entity]) -> Naming | None:
    """Find the entity that texts name, which all begin with a literal."""
    if not literal:
        return None
    known = [one for one in entities if one.slot is not None and not one.is_number]
    for one in sorted(known, key=lambda one: -len(one.literal)):
        if one.literal and literal.endswith(one.literal):
            lead = literal[: -len(one.literal)]
            if not lead or lead[-1] in STRONG:
                return Naming(one, lead, one.literal)
    distinct = set(values)
    for one in known:
        is_alike = same(words(literal)) == same(one.type.name) or (one.literal and one.literal.endswith(literal))
        if is_alike and 2 * len(distinct & one.values) >= len(distinct) and one.ref in (None, literal):
            return Naming(one, "", literal)
    return None


def named_by(attribute: str, texts: Sequence[str], entities: Sequence[Entity], *, is_number: bool) -> Entity | None:
    """Find the entity that an attribute names by its name: `customerId` a Customer."""
    base = attribute
    for ending in ("Ids", "IDs", "_ids", "Id", "ID", "_id", "-id"):
        base = base.removesuffix(ending) if len(base) > len(ending) else base
    distinct = set(texts)
    for one in entities:
        name = same(one.type.name)
        called = same(base)
        is_part = min(len(name), len(called)) > PART and (called.endswith(name) or name.endswith(called))
        is_alike = one.slot is not None and one.is_number == is_number and (called == name or is_part)
        if is_alike and base and distinct and 2 * len(distinct & one.values) >= len(distinct):
            return one
    return None
