"""Several tags at once, as a property: random tags on random subjects, walked both ways in pages of any size."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from graph.loaders import Graph, Limits
from graph.requests import Item
from resolvers.schema import Api
from resolvers.sdl import compile_model
from tests.conftest import ROOT, Served
from tests.memory import Memory

MODEL = compile_model((ROOT / "examples/b2b/schema.graphql").read_text())
MEMORY = Memory(MODEL)
GRAPH = Graph(MODEL, MEMORY)
SERVED = Served(Api(GRAPH), GRAPH, "Entity")

TAGS = ("art", "book", "film", "music")
SUBJECTS = [f"{kind}#{number}" for kind in ("business", "customer", "order", "store") for number in ("1", "2", "10")]
PAGE = """query Tagged($tag: [ID!]!, $match: Match, $first: Int, $after: String, $last: Int, $before: String) {
  tagged(tag: $tag, match: $match, first: $first, after: $after, last: $last, before: $before) {
    nodes {
      __typename ... on Business { number } ... on Customer { number }
      ... on Order { number } ... on Store { number }
    }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}"""


def links(tagged: dict[str, set[str]]) -> list[Item]:
    """The items that put tags on subjects: nothing but their keys."""
    return [{"id": {"S": f"tag#{tag}"}, "type": {"S": subject}} for tag in tagged for subject in tagged[tag]]


async def walk(tags: list[str], match: str, size: int, *, backward: bool) -> list[str]:
    """Read all pages and give the subjects in the connection's order."""
    found: list[str] = []
    place: dict[str, Any] = {}
    for _ in range(500):
        asked = {"tag": tags, "match": match, ("last" if backward else "first"): size} | place
        connection = (await SERVED.data(PAGE, asked))["tagged"]
        subjects = [f"{node['__typename'].lower()}#{node['number']}" for node in connection["nodes"]]
        found = subjects + found if backward else found + subjects
        info = connection["pageInfo"]
        if not info["hasPreviousPage" if backward else "hasNextPage"]:
            return found
        place = {"before": info["startCursor"]} if backward else {"after": info["endCursor"]}
    raise AssertionError("the walk goes round in a circle")


@given(
    tagged=st.fixed_dictionaries({tag: st.sets(st.sampled_from(SUBJECTS)) for tag in TAGS}),
    tags=st.lists(st.sampled_from(TAGS), min_size=1, max_size=5),
    match=st.sampled_from(["ANY", "ALL"]),
    size=st.integers(1, 13),
    backward=st.booleans(),
    page_items=st.integers(1, 5) | st.just(1000),
    budget=st.integers(1, 20) | st.just(5000),
)
@settings(max_examples=300, deadline=None)
async def test_every_subject_under_any_or_all_of_some_tags_is_met_once_and_in_order(
    tagged: dict[str, set[str]],
    tags: list[str],
    match: str,
    size: int,
    backward: bool,
    page_items: int,
    budget: int,
) -> None:
    """However early DynamoDB cuts its pages, and however small the read budget is."""
    MEMORY.items.clear()
    MEMORY.page_items = page_items
    MEMORY.put(links(tagged))
    GRAPH.limits = Limits(read_budget=budget)
    chosen = [tagged[tag] for tag in tags]

    found = await walk(tags, match, size, backward=backward)

    wanted = sorted(set.intersection(*chosen) if match == "ALL" else set.union(*chosen))
    assert found == wanted
