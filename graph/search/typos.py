"""Typos: which words of a vocabulary are nearly another one."""

from __future__ import annotations


def grams(word: str, *, is_whole: bool = True) -> list[str]:
    """List the pairs of letters of a word that stand beside each other, its beginning and end among them.

    A typo changes two of them, or three where it swaps letters: words that are alike share the others.
    """
    marked = f"^{word}$" if is_whole else f"^{word}"
    return sorted({marked[place : place + 2] for place in range(len(marked) - 1)})


def least_shared(count: int, typos: int) -> int:
    """Say how many of its pairs a word shares at least with one that is so many typos away."""
    return max(1, count - 3 * typos)


def nearest(wanted: str, word: str, most: int) -> tuple[int, str] | None:
    """Give how many typos make a word of the wanted one, and that word; None where there are more than `most`."""
    distance = _last_row(wanted, word, most)
    return (distance[-1], word) if distance and distance[-1] <= most else None


def nearest_beginning(wanted: str, word: str, most: int) -> tuple[int, str] | None:
    """Give the beginning of a word that is the fewest typos away from the wanted one, and how many."""
    distances = _last_row(wanted, word[: len(wanted) + most], most)
    if not distances or (least := min(distances)) > most:
        return None
    # Of several beginnings the longest: it finds the least else.
    end = max(place for place, distance in enumerate(distances) if distance == least)
    return (least, word[:end]) if end else None


def _last_row(wanted: str, word: str, most: int) -> list[int]:
    """Give the distances of the wanted word to every beginning of another, empty where all are above `most`.

    Source: optimal string alignment; swapped neighbours count as one typo.
    """
    before: list[int] = []
    row = list(range(len(word) + 1))
    for line, letter in enumerate(wanted, 1):
        above, row = row, [line]
        for place, other in enumerate(word, 1):
            cost = min(above[place] + 1, row[-1] + 1, above[place - 1] + (letter != other))
            if line > 1 and place > 1 and letter == word[place - 2] and wanted[line - 2] == other:
                cost = min(cost, before[place - 2] + 1)
            row.append(cost)
        # Swapped letters reach over one line.
        if min(row) > most and min(above) > most:
            return []
        before = above
    return row
