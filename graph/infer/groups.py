"""Groups of items that are alike: by the attribute that names their type, and by the shape of their keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from graph.infer.sample import Sample
from graph.infer.texts import STRONG, Pieces, Slot, frame, heads, is_literal, is_shouted, is_wordy, pieces, words
from graph.infer.values import date_kind
from graph.keys import Literal, Part, Template, Variable, overlap
from graph.requests import Item, key_value
from graph.scalars import BIG_INT, DATE, DATE_TIME, DECIMAL, ID, INT, Scalar

TYPE_NAMES = (
    *("__typename", "_et", "__edb_e__", "_type", "_entity", "entity", "entitytype", "entity_type", "entityname"),
    *("et", "itemtype", "item_type", "modeltype", "recordtype", "record_type", "objecttype", "type", "kind", "model"),
)
"""What an attribute is called that names the type of an item, in small letters, the surest first."""
SURE_NAMES = 13
PLAIN_KEYS = frozenset(
    ("pk", "hk", "hashkey", "hash", "partitionkey", "partition_key", "key", "_pk", "p", "id", "objectid")
)
"""Names of a partition key, in small letters, that say nothing of what it holds."""
MOST_TYPES = 60
MOST_GROUPS = 80
FEW_LITERALS = 10
INT_DIGITS = 9
ENOUGH_TO_LOSE, MOST_LOST = 40, 0.1
SAME = "="


@dataclass
class Group:
    """Items that are alike."""

    table: str
    keys: tuple[str, ...]
    items: list[Item]
    overloaded: frozenset[str] = frozenset()
    """Attributes that repeat in indexes what others hold."""
    tag: str | None = None
    heads: tuple[str, ...] = ()
    """The literal that each key begins with; a second one of "=" says that both keys are the same."""
    whole: tuple[bool, ...] = ()
    """The literal is all of the key."""
    pieces: dict[str, Pieces] = field(default_factory=dict)
    """What each key attribute is made of."""
    is_narrow: bool = False
    """Its variables are numbers where all texts are, for else its keys could be taken for those of another group."""

    @property
    def is_self_keyed(self) -> bool:
        """Say whether both keys are the same text."""
        return self.heads[1:] == (SAME,)

    def texts(self, attribute: str) -> list[str]:
        """List what a key attribute holds, item by item."""
        return [text_of(item, attribute) for item in self.items]

    def template(self, attribute: str) -> Template:
        """Make a template whose variables are as narrow as the items allow."""
        parts: list[Part] = []
        for number, piece in enumerate(self.pieces[attribute]):
            if isinstance(piece, str):
                parts.append(Literal(piece))
            else:
                scalar = self.slot_scalar(attribute, piece)
                format_ = piece.format if scalar.name in ("Int", "BigInt") or piece.format == "lower" else ""
                parts.append(Variable((f"v{number}",), scalar, format_))
        return Template(attribute, tuple(parts))

    def slot_scalar(self, attribute: str, slot: Slot) -> Scalar:
        """Give the scalar of a variable."""
        if "N" in self.items[0][attribute]:
            numbers = [key_value(item[attribute]) for item in self.items]
            is_whole = all(number == int(number) for number in numbers)
            return INT if is_whole and all(abs(int(n)) < 2**31 for n in numbers) else BIG_INT if is_whole else DECIMAL
        if slot.format == "epoch":
            return DATE_TIME
        if slot.format.isdigit():
            return INT if int(slot.format) < 10 else BIG_INT
        if self.is_narrow and all(_is_whole_number(text) for text in slot.texts):
            return INT
        name = date_kind(slot.texts)
        return DATE if name == "Date" else DATE_TIME if name else ID


def _is_whole_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= INT_DIGITS and str(int(text)) == text


def text_of(item: Item, attribute: str) -> str:
    """Give a key's value as text."""
    return str(next(iter(item[attribute].values())))


@dataclass(frozen=True)
class Grouping:
    """One way to group the items of a table."""

    type_attribute: str | None
    groups: list[Group]
    lost: list[Item] = field(default_factory=list)
    """Items that are like no others."""
    note: str = ""
    """Why it is not sure."""


def groupings(sample: Sample) -> Iterator[Grouping]:
    """Group the items, in one way after another, the finest first."""
    if not sample.items:
        return
    attribute = type_attribute(sample)
    if attribute is not None:
        without = sum(1 for item in sample.items if attribute not in item)
        note = f"{without} of {len(sample.items)} items do not have `{attribute}`, which names the type of the others"
        yield Grouping(attribute, *_apart(_groups(sample, attribute), is_tagged=True), note if without else "")
    yield Grouping(None, *_apart(_groups(sample, None), is_tagged=False))
    whole = Group(sample.name, sample.keys, list(sample.items), sample.overloaded)
    whole.heads = ("",) * len(sample.keys)
    whole.whole = (False,) * len(sample.keys)
    for name in sample.keys:
        whole.pieces[name] = (Slot(tuple(whole.texts(name))),)
    note = "nothing tells the items apart that would hold for all of them: they are of one type"
    yield Grouping(None, [whole], note=note if len(sample.items) > 1 else "")


def _apart(groups: list[Group], *, is_tagged: bool) -> tuple[list[Group], list[Item]]:
    """Put aside the few items whose keys have no literal, where nearly all others have: they would fit everything."""
    total = sum(len(group.items) for group in groups)
    odd = [group for group in groups if not any(group.heads) and group.tag is None]
    count = sum(len(group.items) for group in odd)
    if not count or total < ENOUGH_TO_LOSE or count > total * MOST_LOST:
        return _merged(groups, is_tagged=is_tagged), []
    together = _merged(groups, is_tagged=is_tagged)
    if len(together) == len(groups):
        return together, []
    kept = [group for group in groups if group not in odd]
    return _merged(kept, is_tagged=is_tagged), [item for group in odd for item in group.items]


# --- the attribute that names the type ----------------------------------------------------------------------------


def type_attribute(sample: Sample) -> str | None:
    """Find the attribute that names the type of each item."""
    names = {name for item in sample.items for name in item} - set(sample.keys)
    for rank, known in enumerate(TYPE_NAMES):
        for name in sorted(names):
            if name.lower() == known and _names_types(sample, name, is_sure=rank < SURE_NAMES):
                return name
    return None


def _names_types(sample: Sample, name: str, *, is_sure: bool) -> bool:
    tags = [item[name].get("S") if name in item else None for item in sample.items]
    known = [tag for tag in tags if tag]
    counts = Counter(known)
    if 2 * len(known) < len(sample.items) or any(name in item and "S" not in item[name] for item in sample.items):
        return False
    if not all(is_literal(tag) and words(tag) for tag in counts) or len(counts) > MOST_TYPES:
        return False
    if is_sure:
        return True
    # `type` may as well be a property: then items of one type have all its values, and the same attributes.
    if len(counts) < 2 or (len(known) > 10 and len(counts) > len(known) / 2):
        return False
    shapes: dict[str, set[object]] = {}
    column = heads(text_of(item, sample.keys[-1]) for item in sample.items)
    first = heads(text_of(item, sample.keys[0]) for item in sample.items)
    for tag, item in zip(tags, sample.items, strict=True):
        place = first[text_of(item, sample.keys[0])], column[text_of(item, sample.keys[-1])]
        shapes.setdefault(tag or "", set()).add(place)
    pairs = list(combinations(shapes.values(), 2))
    if sum(1 for one, other in pairs if one & other) <= len(pairs) / 3:
        return True
    attributes = [
        {frozenset(item) for tag, item in zip(tags, sample.items, strict=True) if tag == one} for one in counts
    ]
    return all(not one & other for one, other in combinations(attributes, 2))


# --- the shapes of keys -------------------------------------------------------------------------------------------


def _groups(sample: Sample, attribute: str | None) -> list[Group]:
    found: dict[tuple[object, ...], Group] = {}
    first, *rest = sample.keys
    is_plain = first.lower() in PLAIN_KEYS
    partitions = _literals(sample, first, is_plain=is_plain)
    counts = Counter(text_of(item, first) for item in sample.items)
    frames = _frames({text: head for text, (head, _) in partitions.items()}, counts)
    for item in sample.items:
        tag = item.get(attribute, {}).get("S") if attribute else None
        head, is_whole = partitions[text_of(item, first)]
        same = bool(rest) and item[first] == item[rest[0]]
        place: tuple[object, ...] = (tag, head, is_whole, same, frames[text_of(item, first)])
        if place not in found:
            found[place] = Group(sample.name, sample.keys, [], sample.overloaded, tag, (head,), (is_whole,))
        found[place].items.append(item)
    if not rest:
        return list(found.values())
    everywhere = heads(text_of(item, rest[0]) for item in sample.items)
    made: list[Group] = []
    for place, group in found.items():
        if place[3]:
            group.heads, group.whole = (*group.heads, SAME), (*group.whole, False)
            made.append(group)
        else:
            made += _by_sort(group, rest[0], everywhere)
    return made


def _literals(sample: Sample, attribute: str, *, is_plain: bool) -> dict[str, tuple[str, bool]]:
    """Give the literal of every partition key, and whether it is all of it."""
    texts = Counter(text_of(item, attribute) for item in sample.items)
    found = heads(texts)
    if sample.key_types.get(attribute) == "N":
        return dict.fromkeys(texts, ("", False))
    made: dict[str, tuple[str, bool]] = {}
    for text, count in texts.items():
        is_whole = is_plain and count > 1 and not found[text] and is_wordy(text) and is_shouted(text)
        made[text] = (text, True) if is_whole and len(texts) <= 50 else (found[text], False)
    return made


def _frames(found: Mapping[str, str], counts: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Give the words between the values of keys, where they come again: else they are values too."""
    frames = {text: frame(text, head) for text, head in found.items()}
    items = sum(counts[text] for text in found)
    return frames if 2 * items >= 3 * len(set(frames.values())) else dict.fromkeys(frames, ())


def _by_sort(group: Group, attribute: str, everywhere: Mapping[str, str]) -> list[Group]:
    """Split a group by what its sort keys begin with."""
    partition = group.keys[0]
    if "N" in group.items[0][attribute]:
        group.heads, group.whole = (*group.heads, ""), (*group.whole, False)
        return [group]
    partitions: dict[str, set[str]] = {}
    for item in group.items:
        partitions.setdefault(text_of(item, attribute), set()).add(text_of(item, partition))
    whole = _whole_literals(partitions, everywhere)
    counts = Counter(group.texts(attribute))
    frames = _frames({text: everywhere[text] for text in partitions if text not in whole}, counts)
    made: dict[tuple[str, bool, tuple[str, ...]], Group] = {}
    for item in group.items:
        text = text_of(item, attribute)
        place = (text, True, ()) if text in whole else (everywhere[text], False, frames[text])
        if place not in made:
            kept = Group(group.table, group.keys, [], group.overloaded, group.tag)
            kept.heads, kept.whole = (*group.heads, place[0]), (*group.whole, place[1])
            made[place] = kept
        made[place].items.append(item)
    return _without_enumerations(list(made.values()), attribute)


def _whole_literals(partitions: Mapping[str, set[str]], everywhere: Mapping[str, str]) -> set[str]:
    """List the sort keys that are a word of the design, like "PROFILE", and no value."""
    shared = Counter(everywhere[text] for text in partitions)
    plain = {text: held for text, held in partitions.items() if not everywhere[text] or shared[everywhere[text]] == 1}
    wordy = {text: held for text, held in plain.items() if is_wordy(text) and is_literal(text)}
    count = len({one for held in partitions.values() for one in held})
    are_few = len(wordy) <= FEW_LITERALS and sum(map(len, wordy.values())) >= 2 * len(wordy)
    found = set()
    for text, held in wordy.items():
        share = len(held) / count
        is_repeated = len(held) > 1 and (share >= (0.02 if is_shouted(text) else 0.2) or (are_few and is_shouted(text)))
        is_only = len(held) == 1 and is_shouted(text) and len(wordy) <= 3 and not everywhere[text]
        if is_repeated or is_only:
            found.add(text)
    return found


def _without_enumerations(groups: list[Group], attribute: str) -> list[Group]:
    """Put groups together whose literals are values: of one attribute, or the upper levels of a hierarchy."""
    alike: dict[tuple[object, ...], list[Group]] = {}
    for group in groups:
        head = group.heads[1]
        rests = {_signs(text[len(head) :]) for text in group.texts(attribute)}
        level = next(iter(rests)) if len(rests) == 1 else ""
        place: tuple[object, ...] = (id(group),)
        if head and not group.whole[1] and (level or _held(group, head)):
            place = (level, head[-1:])
        alike.setdefault(place, []).append(group)
    made: list[Group] = []
    for several in alike.values():
        if len(several) < 2 or not _have_same_attributes(several):
            made += several
            continue
        first = several[0]
        first.items = [item for group in several for item in group.items]
        first.heads, first.whole = (first.heads[0], ""), (first.whole[0], False)
        made.append(first)
    return made


def _signs(text: str) -> str:
    return "".join(letter for letter in text if letter in STRONG)


def _held(group: Group, head: str) -> bool:
    """Say whether an attribute holds the word of a literal: then it is a value."""
    word = head.rstrip(STRONG + "._-")
    return all(any(value.get("S") == word for value in item.values()) for item in group.items)


def _have_same_attributes(groups: Sequence[Group]) -> bool:
    sets = [{name for item in group.items for name in item} for group in groups]
    return all(len(one & other) * 2 >= len(one | other) for one, other in combinations(sets, 2))


# --- groups that nothing tells apart ------------------------------------------------------------------------------


def _merged(groups: list[Group], *, is_tagged: bool) -> list[Group]:
    """Split the keys of groups into pieces, and put those together whose keys may look alike."""
    groups = _fewer(groups) if len(groups) > MOST_GROUPS else [*groups]
    for group in groups:
        _shape(group)
    done: list[Group] = []
    while groups:
        group = groups.pop(0)
        rival = next((other for other in done if _are_alike(group, other, is_tagged=is_tagged)), None)
        if rival is None:
            done.append(group)
        else:
            done.remove(rival)
            groups.insert(0, _joined(rival, group))
    return done


def _fewer(groups: list[Group]) -> list[Group]:
    """Take only the literals that the partition keys begin with, where sort keys have too many."""
    found: dict[tuple[str | None, str, bool], Group] = {}
    for group in groups:
        place = (group.tag, group.heads[0], group.is_self_keyed)
        if place in found:
            found[place] = _joined(found[place], group)
        else:
            found[place] = group
    return list(found.values())


def _are_alike(one: Group, other: Group, *, is_tagged: bool) -> bool:
    """Say whether the keys of two groups could be taken for each other, also when they are taken for numbers."""
    if one.is_self_keyed != other.is_self_keyed:
        return False
    if is_tagged and one.tag is not None and other.tag is not None and one.tag != other.tag:
        return False
    if not _overlap(one, other):
        return False
    narrow = [replace(group, is_narrow=True) for group in (one, other)]
    if _overlap(*narrow):
        return True
    one.is_narrow = other.is_narrow = True
    return False


def _overlap(one: Group, other: Group) -> bool:
    return all(overlap(one.template(name), other.template(name)) for name in one.keys)


def _joined(one: Group, other: Group) -> Group:
    tag = one.tag if one.tag == other.tag else None
    made = Group(one.table, one.keys, [*one.items, *other.items], one.overloaded, tag)
    pairs = list(zip(one.heads, other.heads, one.whole, other.whole, strict=True))
    made.heads = tuple(_common(left, right) for left, right, *_ in pairs)
    made.whole = tuple(left == right and a and b for left, right, a, b in pairs)
    _shape(made)
    return made


def _common(left: str, right: str) -> str:
    """Give the literal that both begin with."""
    if SAME in (left, right) and left != right:
        return ""
    short, long = sorted((left, right), key=len)
    return short if long.startswith(short) else ""


def _shape(group: Group) -> None:
    for name, head, is_whole in zip(group.keys, group.heads, group.whole, strict=True):
        if is_whole:
            group.pieces[name] = (head,)
        elif head == SAME:
            group.pieces[name] = group.pieces[group.keys[0]]
        elif "N" in group.items[0][name]:
            group.pieces[name] = (Slot(tuple(group.texts(name))),)
        else:
            group.pieces[name] = pieces(head, group.texts(name), group.items, {*group.keys, *group.overloaded})
