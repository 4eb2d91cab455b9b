"""Words: text as it is indexed and searched, without case, accents and punctuation.

Whatever the index, it is given words that are cut and folded here: both agree on what a word is, and nothing that a
user types is an operator to either.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from graph.errors import InputError

MOST_CHARACTERS = 1_000
MOST_WORDS = 32
"""What one search takes."""
LONGEST_WORD = 64
"""In characters: of a longer one the beginning counts."""
SHORTEST_WITH_TYPO = 4
SHORTEST_WITH_TWO = 8

VERSION = 1
"""Changes when the same text gives other words: an index of other words is to be rebuilt."""

_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ŧ": "t", "\u0131": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
"""Letters that Unicode does not take apart."""
_ASCII_WORDS = re.compile(r"[a-z0-9]+", re.ASCII)
_APOSTROPHES = dict.fromkeys(map(ord, "'\u2019\u02bc\uff07"))
_UNSPACED = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF)),
    *((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)),
)
"""Thai and Lao, Burmese, Khmer, kana and Han characters: written without spaces between words."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word: one token, or of a script without spaces its characters, which must stand behind each other."""

    tokens: tuple[str, ...]

    @property
    def typos(self) -> int:
        """Say how many typos it may have: none where it is short, a code with digits, or of a script without spaces."""
        token = self.tokens[0]
        if len(self.tokens) > 1 or not is_misspelt(token):
            return 0
        return (len(token) >= SHORTEST_WITH_TYPO) + (len(token) >= SHORTEST_WITH_TWO)


def is_misspelt(token: str) -> bool:
    """Say whether another word may be meant by a token: of a code with digits another one is just another code."""
    return not any(map(str.isdigit, token)) and not _is_unspaced(token[0])


def fold(text: str) -> str:
    """Fold text: é, É and e are the same, so are ß and ss, full and half width, and O'Neill and ONeill."""
    folded = unicodedata.normalize("NFKD", text).casefold().translate(_APOSTROPHES)
    bare = "".join([char for char in unicodedata.normalize("NFKD", folded) if not _is_accent(char)])
    return unicodedata.normalize("NFKC", bare).translate(_LETTERS)


def _is_accent(char: str) -> bool:
    # Signs of other classes tell words apart: the voicing of kana, the virama of Indian scripts.
    place = unicodedata.combining(char)
    return place == 1 or place >= 200 or "\ufe00" <= char <= "\ufe0f" or unicodedata.category(char) == "Me"


def words(text: str) -> Iterator[Word]:
    """Cut text into words, in their order."""
    if text.isascii():
        # Most text, in a twentieth of the time.
        for run in _ASCII_WORDS.findall(text.lower().replace("'", "")):
            yield Word((run[:LONGEST_WORD],))
        return
    for (is_word, is_unspaced), group in groupby(fold(text), _kind):
        run = "".join(group)
        if is_word and any(map(str.isalnum, run)):
            yield Word(tuple(_characters(run))) if is_unspaced else Word((run[:LONGEST_WORD],))


def _characters(run: str) -> list[str]:
    """Cut text into letters, each with the marks behind it; marks without a letter are none."""
    found: list[str] = []
    for char in run:
        if char.isalnum():
            found.append(char)
        elif found:
            found[-1] += char
    return found


def _kind(char: str) -> tuple[bool, bool]:
    is_word = char.isalnum() or unicodedata.category(char)[0] == "M"
    return is_word, is_word and _is_unspaced(char)


def _is_unspaced(char: str) -> bool:
    return char > "\u0dff" and any(low <= ord(char) <= high for low, high in _UNSPACED)


def tokens(text: str) -> str:
    """Write text as an index takes it: its tokens with spaces between them."""
    return " ".join(token for word in words(text) for token in word.tokens)


def wanted(text: str) -> tuple[Word, ...]:
    """Read what is searched for: each word once, the last one last; none where the text has none.

    Raises: InputError when it is longer than anything that one looks for.
    """
    if len(text) > MOST_CHARACTERS:
        raise InputError(
            f"`text` has {len(text):,} characters: expected at most {MOST_CHARACTERS:,}. Search for a few words of it"
        )
    found = list(words(text))
    # Of two that are alike the later one: the last word is the one that is still being typed.
    several = tuple(reversed(dict.fromkeys(reversed(found))))
    if len(several) > MOST_WORDS:
        raise InputError(
            f"`text` has {len(several)} different words: expected at most {MOST_WORDS}, for all of them must be "
            "found. Search for the rarest ones"
        )
    return several
