"""Shards: which may be read, whatever is known of their tree."""

from __future__ import annotations

import pytest

from graph.streams.shards import Progress, Shard, from_now, pruned, readable, trimmed

# One splits into two, of which one goes on as four.
TREE = [Shard("1"), Shard("2", "1"), Shard("3", "1"), Shard("4", "2")]


def names(shards: list[Shard]) -> list[str]:
    return [shard.id for shard in shards]


@pytest.mark.parametrize(
    ("positions", "ended", "expected"),
    [
        pytest.param({}, {}, ["1"], id="the-root-first"),
        pytest.param({"1": 5}, {}, ["1"], id="while-it-is-read"),
        pytest.param({}, {"1": 9}, ["2", "3"], id="then-its-children"),
        pytest.param({"3": 7}, {"2": 12}, ["3", "4"], id="what-is-behind-an-ended-one"),
        pytest.param({"4": 0}, {}, ["3", "4"], id="what-comes-before-a-known-one-is-over-and-its-sisters-are-not"),
        pytest.param({}, {"3": 8, "4": 9}, [], id="all-over"),
    ],
)
def test_shards_are_read_after_their_parents(
    positions: dict[str, int], ended: dict[str, int], expected: list[str]
) -> None:
    progress = Progress("arn", positions, ended)

    assert names(readable(TREE, progress)) == expected
    assert names(readable(TREE, pruned(TREE, progress))) == expected


def test_parent_that_is_not_there_any_more_is_over() -> None:
    assert names(readable(TREE[1:], Progress("arn"))) == ["2", "3"]


def test_first_reader_begins_with_those_that_have_no_children() -> None:
    progress = from_now("arn", TREE, 1_795_192_436)

    assert progress == Progress("arn", {"3": -1_795_192_436, "4": -1_795_192_436})
    assert names(readable(TREE, progress)) == ["3", "4"]


def test_what_children_tell_is_not_kept_and_what_nobody_tells_is() -> None:
    progress = Progress("arn", {"3": 5, "9": 1}, {"1": 3, "2": 4})

    assert pruned(TREE, progress) == Progress("arn", {"3": 5}, {"2": 4})
    assert trimmed(TREE, progress) == ["9"]
