"""Key texts: which literal they begin with, and what the rest of them is made of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from graph.infer.values import KSUID, ULID, UUID, date_kind
from graph.requests import Item
from graph.scalars import date_time_to_epoch, number_text, storable

STRONG = "#|/:"
WEAK = "._-~ "
_ATOM = re.compile(
    rf"\d{{4}}-\d\d[^#|/]*|[\d.:+-]+|[^@\s]+@[^@\s]+\.\w+|\w+://.*|{UUID.pattern}|{ULID.pattern}|{KSUID.pattern}"
    "|(?=.*[0-9])[0-9a-fA-F]{8,}",
    re.ASCII | re.DOTALL,
)
"""Dates, numbers, addresses and random ids: one value, whatever signs it has."""
_STRONG_HEAD = re.compile(r"[#|/:_]?[A-Za-z]+(?:[-_. ][A-Za-z]{2,})*[#|/:]+")
_UPPER_HEAD = re.compile(r"[A-Z]+(?:[-_][A-Z]{2,})*+(?:[-_.]+|(?<=[A-Z]{2})(?=\d))")
_WEAK_HEAD = re.compile(r"(?:[a-z]{2,}|(?:[A-Z][a-z]+)+)[-_.]+|(?:[a-z]{3,}|(?:[A-Z][a-z]+)+)(?=\d)")
_WORDS = re.compile(r"[\"'#_$@]*[A-Za-z]+(?:[-_ #.][A-Za-z]+)*[\"'#_]*")


@dataclass(frozen=True, slots=True)
class Slot:
    """A variable of a key: what stands there, text by text, and the attribute that holds the same."""

    texts: tuple[str, ...]
    word: str = ""
    """The word of the literal before it."""
    attribute: str | None = None
    format: str = ""


Piece = str | Slot
Pieces = tuple[Piece, ...]


def heads(texts: Iterable[str]) -> dict[str, str]:
    """Give for each text of a column the literal that it begins with: "USER#" of "USER#7", or nothing."""
    distinct = set(texts)
    found = {text: _head(text) for text in distinct}
    weak = {text: head for text, head in found.items() if head and _is_weak(head)}
    counts = Counter(weak.values())
    is_custom = 4 * len(weak) >= 5 * len(counts)
    return {text: head if not _is_weak(head) or counts[head] > 1 or is_custom else "" for text, head in found.items()}


def frame(text: str, head: str) -> tuple[str, ...]:
    """Give the words that stand in a key between its values: "follower" of "USER#7#follower"."""
    sign = head[-1:]
    if not sign or sign not in STRONG:
        return ()
    found = text[len(head) :].split(sign)[1::2]
    return tuple(found) if all(is_wordy(word) and is_shouted(word) for word in found) else ()


def _head(text: str) -> str:
    if _ATOM.fullmatch(text):
        return ""
    for pattern in (_STRONG_HEAD, _UPPER_HEAD, _WEAK_HEAD):
        match = pattern.match(text)
        if match is not None and match.end() < len(text) and is_literal(match[0]):
            return match[0]
    return ""


def _is_weak(head: str) -> bool:
    return bool(head) and not _STRONG_HEAD.fullmatch(head) and not _UPPER_HEAD.match(head + "1")


def is_literal(text: str) -> bool:
    """Say whether a text may stand in a template as it is."""
    return "{" not in text and "}" not in text and text.isprintable() and len(text) <= 100


def is_wordy(text: str) -> bool:
    """Say whether a text is made of words, and no digits."""
    return len(text) <= 60 and _WORDS.fullmatch(text) is not None


def is_shouted(text: str) -> bool:
    """Say whether words are written as constants are: in one case, without blanks."""
    return " " not in text and (text.isupper() or text.islower())


def words(text: str) -> str:
    """Give the last word of a literal: "EMPLOYEE" of "HR-EMPLOYEE-"."""
    found = re.findall(r"[A-Za-z]+", text)
    return found[-1] if found else ""


# --- what the rest of a key is made of ----------------------------------------------------------------------------


def pieces(head: str, texts: Sequence[str], items: Sequence[Item], keys: Collection[str]) -> Pieces:
    """Split a column whose texts all begin with a literal into literals and variables."""
    rests = [text[len(head) :] for text in texts]
    rest = _split(rests, items, keys, words(head))
    return (head, *rest) if head else rest


def _split(rests: Sequence[str], items: Sequence[Item], keys: Collection[str], word: str) -> Pieces:
    whole = match(Slot(tuple(rests), word), items, keys)
    if whole.attribute is not None or date_kind(rests) or any(_ATOM.fullmatch(rest) for rest in rests):
        return (whole,)
    for sign in STRONG + WEAK:
        columns = _columns(rests, sign)
        if columns is not None:
            found = _row(columns, sign, items, keys, word)
            if sign in STRONG or _is_explained(found):
                return found
    return (whole,)


def _columns(rests: Sequence[str], sign: str) -> list[list[str]] | None:
    """Split texts that all have a sign equally often, and something on both sides of it."""
    rows = [rest.split(sign) for rest in rests]
    count = len(rows[0])
    if not 2 <= count <= 12 or any(len(row) != count or not all(row) for row in rows):
        return None
    return [list(column) for column in zip(*rows, strict=True)]


def _row(
    columns: Sequence[Sequence[str]], sign: str, items: Sequence[Item], keys: Collection[str], word: str
) -> Pieces:
    found: list[Piece] = []
    for number, column in enumerate(columns):
        is_constant = len(set(column)) == 1 and is_wordy(column[0]) and is_literal(column[0])
        slot = match(Slot(tuple(column), word), items, keys)
        if is_constant and slot.attribute is None and (len(column) > 1 or is_shouted(column[0])):
            _add(found, column[0])
            word = words(column[0])
        else:
            found.append(slot)
            word = ""
        if number + 1 < len(columns):
            _add(found, sign)
    return tuple(found)


def _add(found: list[Piece], literal: str) -> None:
    if found and isinstance(found[-1], str):
        found[-1] += literal
    else:
        found.append(literal)


def _is_explained(found: Pieces) -> bool:
    """Say whether attributes explain all that varies: a hyphen alone separates nothing."""
    return all(isinstance(piece, str) or piece.attribute is not None for piece in found)


def match(slot: Slot, items: Sequence[Item], keys: Collection[str]) -> Slot:
    """Find the attribute that holds what stands in a key."""
    candidates = Counter(name for item in items for name in item if name not in keys)
    best: Slot | None = None
    for name, count in sorted(candidates.items()):
        if 2 * count < len(items):
            continue
        pairs = [(text, item[name]) for text, item in zip(slot.texts, items, strict=True) if name in item]
        format_ = _format(pairs)
        if format_ is None or not _is_evidence(name, slot, pairs):
            continue
        made = replace(slot, attribute=name, format=format_)
        if best is None or (slot.word and slot.word.lower() in name.lower()):
            best = made
    return best or slot


def _is_evidence(name: str, slot: Slot, pairs: Sequence[tuple[str, object]]) -> bool:
    """Say whether it is no coincidence that an attribute and a key hold the same."""
    texts = {text for text, _ in pairs}
    is_near = bool(slot.word) and slot.word.lower() in name.lower()
    return len(texts) > 1 or is_near or min(map(len, texts)) >= 4


def _format(pairs: Sequence[tuple[str, Mapping[str, str]]]) -> str | None:
    """Say how a key writes the values of an attribute; None where it does not."""
    letters = {next(iter(value)) for _, value in pairs}
    if letters == {"S"}:
        if all(text == value["S"] for text, value in pairs):
            return ""
        if all(text == value["S"].lower() for text, value in pairs):
            return "lower"
        return "epoch" if all(_is_epoch(text, value["S"]) for text, value in pairs) else None
    if letters == {"N"} and all(text.isascii() and text.isdigit() for text, _ in pairs):
        if all(text == number_text(storable(value["N"])) for text, value in pairs):
            return ""
        (size, *others) = {len(text) for text, _ in pairs}
        if not others and 1 < size <= 38 and all(int(text) == storable(value["N"]) for text, value in pairs):
            return f"0{size}"
    return None


def _is_epoch(text: str, value: str) -> bool:
    try:
        return text.isascii() and text.isdigit() and int(text) == date_time_to_epoch(value)
    except ValueError:
        return False
