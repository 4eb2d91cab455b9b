"""Typos: distances by bits are those of the table that is usually filled."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from graph.search.typos import Wanted, grams, least_shared

WORDS = st.text("abc", min_size=1, max_size=12)


def distance(left: str, right: str) -> int:
    """Optimal string alignment, by its definition."""
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) + 1):
        for j in range(len(right) + 1):
            if not i or not j:
                table[i][j] = i + j
                continue
            is_same = left[i - 1] == right[j - 1]
            ways = [table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (not is_same)]
            if i > 1 and j > 1 and left[i - 1] == right[j - 2] and left[i - 2] == right[j - 1]:
                ways.append(table[i - 2][j - 2] + 1)
            table[i][j] = min(ways)
    return table[-1][-1]


@given(WORDS, WORDS)
@example("acme", "acme")
@example("ab", "ba")
@example("x" * 64, "y" * 70)
def test_distances_to_every_beginning(wanted: str, other: str) -> None:
    found = Wanted(wanted).distances(other)

    assert found == [distance(wanted, other[:end]) for end in range(len(other) + 1)]


@given(WORDS, WORDS)
def test_the_nearest_beginning_is_the_longest_of_those_with_the_fewest_typos(wanted: str, other: str) -> None:
    least, beginning = Wanted(wanted).beginning(other, 2)

    distances = [distance(wanted, other[:end]) for end in range(min(len(other), len(wanted) + 2) + 1)]
    assert least == min(distances)
    assert beginning == other[: max(end for end, one in enumerate(distances) if one == least)]


@given(st.text("abcdef", min_size=4, max_size=12), st.data())
def test_what_is_a_typo_away_shares_pairs_enough(wanted: str, data: st.DataObject) -> None:
    typos = 1 + (len(wanted) >= 8)
    other = wanted
    for number in range(typos):
        place = data.draw(st.integers(0, len(other) - 1))
        letter = data.draw(st.sampled_from("abcxyz"))
        kinds = [
            other[:place] + other[place + 1 :],
            other[:place] + letter + other[place:],
            other[:place] + letter + other[place + 1 :],
        ]
        if not number:
            kinds.append(other[:place] + other[place : place + 2][::-1] + other[place + 2 :])
        other = data.draw(st.sampled_from(kinds)) or other

    shared = set(grams(wanted)) & set(grams(other))

    assert len(shared) >= least_shared(len(grams(wanted)), typos)
