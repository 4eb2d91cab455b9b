"""An API without mutations: for a table that others write."""

from __future__ import annotations

from graph.loaders import Graph
from resolvers.operation import Request
from resolvers.schema import Api
from tests.conftest import Served


async def test_without_mutations_the_api_only_reads(bananas: Served) -> None:
    api = Api(bananas.graph, mutations=False)

    read = await api.execute(Request('{ container(number: "009998") { operator } }'))
    write = await api.execute(Request('mutation { deleteBox(key: { number: "A03828" }) { deletedId } }'))

    assert read.body == {"data": {"container": {"operator": "TheBoatingCompany"}}}
    assert [error["extensions"]["code"] for error in write.body["errors"]] == ["GRAPHQL_VALIDATION_FAILED"]
    assert "Mutation" not in api.sdl()
    assert "@transaction" not in api.sdl()
    assert "directive @transaction on MUTATION" in Api(Graph(bananas.graph.model, bananas.graph._client)).sdl()
