"""Typos: which words of a vocabulary are nearly another one."""

from __future__ import annotations


def grams(word: str, *, is_whole: bool = True) -> list[str]:
    """List the pairs of letters of a word that stand beside each other, its beginning and end among them.

    A typo changes two of them, or three where it swaps letters: words that are alike share the others.
    """
    marked = f"^{word}$" if is_whole else f"^{word}"
    return sorted({marked[place : place + 2] for place in range(len(marked) - 1)})


def least_shared(count: int, typos: int) -> int:
    """Say how many of its pairs a word shares at least with one that is so many typos away, one of them a swap."""
    return max(1, count - 2 * typos - 1)


class Wanted:
    """A word that is compared with many others."""

    def __init__(self, word: str) -> None:
        self._places: dict[str, int] = {}
        for place, letter in enumerate(word):
            self._places[letter] = self._places.get(letter, 0) | 1 << place
        self._length = len(word)

    def distances(self, other: str) -> list[int]:
        """Give how many typos away every beginning of another word is, the empty one first.

        Bits stand for the letters of the wanted word: a column of the table that is usually filled is two numbers, of
        what rises and what falls along it. Swapped neighbours count as one typo (optimal string alignment).
        Source: Hyyrö, "A Bit-Vector Algorithm for Computing Levenshtein and Damerau Edit Distances", 2003.
        """
        last = 1 << (self._length - 1)
        every = (last << 1) - 1
        rises, falls, same, matched = every, 0, 0, 0
        distance = self._length
        found = [distance]
        for letter in other:
            before, matched = matched, self._places.get(letter, 0)
            swapped = ((~same & matched) << 1) & before
            same = ((((matched & rises) + rises) ^ rises) | matched | falls | swapped) & every
            more = falls | (every & ~(same | rises))
            less = same & rises
            distance += bool(more & last) - bool(less & last)
            found.append(distance)
            more = (more << 1 | 1) & every
            rises = (less << 1 | (every & ~(same | more))) & every
            falls = more & same
        return found

    def whole(self, other: str) -> tuple[int, str]:
        """Give how many typos away another word is, and that word."""
        return self.distances(other)[-1], other

    def beginning(self, other: str, most: int) -> tuple[int, str]:
        """Give the beginning of another word that is the fewest typos away, and how many."""
        distances = self.distances(other[: self._length + most])
        least = min(distances)
        # Of several beginnings the longest: it finds the least else.
        end = len(distances) - 1 - distances[::-1].index(least)
        return least, other[:end]
