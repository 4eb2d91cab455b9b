"""Clients that name documents by their hash, and the tools that write the documents of a frontend, all from npm."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from resolvers.persisted import Persistence
from resolvers.schema import Api
from server.api import api_of
from server.documents import read_trusted
from server.settings import Settings
from tests.conftest import Served
from tests.counting import running
from tests.test_clients import CLIENTS, ENVIRONMENT
from tests.test_readme import blocks

QUERY = """query Find($number: ID!) {
  container(number: $number) {
    __typename
    number
    operator
  }
}"""
NUMBER = {"number": "009998"}
FOUND = {"container": {"__typename": "Container", "number": "009998", "operator": "TheBoatingCompany"}}

pytestmark = pytest.mark.skipif(
    not (CLIENTS / "node_modules").is_dir(), reason="the clients from npm are not there: make test brings them"
)


async def asked_twice(kind: str, api: Api) -> list[Any]:
    """What a client sends and gets, when it asks the same twice."""
    async with running(api) as server:
        process = await asyncio.create_subprocess_exec(
            *["node", "persisted.mjs", kind, server.url, QUERY, json.dumps(NUMBER)],
            cwd=CLIENTS,
            env=ENVIRONMENT,
            stdout=asyncio.subprocess.PIPE,
        )
        told, _ = await process.communicate()
    assert process.returncode == 0
    return [json.loads(line) for line in told.splitlines()]


@pytest.mark.parametrize(("kind", "named", "sent"), [("apollo", "POST", "POST"), ("apollo-get", "GET", "POST")])
async def test_apollo_sends_the_text_once(kind: str, named: str, sent: str, bananas: Served) -> None:
    told = await asked_twice(kind, bananas.api)

    assert told == [[named, False], [sent, True], FOUND, [named, False], FOUND]


async def test_urql_sends_the_text_once(bananas: Served) -> None:
    told = await asked_twice("urql", bananas.api)

    assert told == [["GET", False], ["GET", True], FOUND, ["GET", False], FOUND]


@pytest.mark.parametrize("kind", ["apollo", "apollo-get", "urql"])
async def test_a_client_goes_on_without_hashes_where_none_are_kept(kind: str, bananas: Served) -> None:
    told = await asked_twice(kind, api_of(bananas.graph, Settings(max_persisted_bytes=0)))

    named, *again = [call for call in told if isinstance(call, list)]
    assert named[1] is False
    assert [is_told for _, is_told in again] == [True, True]
    assert [answer for answer in told if isinstance(answer, dict)] == [FOUND, FOUND]


USES = {
    "@apollo/client": """
        const { gql } = await import('@apollo/client');
        console.log(JSON.stringify((await client.query({ query: gql(QUERY) })).data));
    """,
    "relay-runtime": """
        const found = (answer) => console.log(JSON.stringify(answer.data));
        const operation = { id: 'find', text: null, name: 'Find', operationKind: 'query' };
        environment.getNetwork().execute(operation, {}, {}).subscribe({ next: found });
    """,
}


@pytest.mark.parametrize("uses", USES)
async def test_an_example_of_the_readme_asks_by_name(uses: str, bananas: Served) -> None:
    query = 'query Find { container(number: "009998") { number operator __typename } }'
    (example,) = (block for block in blocks("javascript") if uses in block)
    async with running(Api(bananas.graph, persistence=Persistence({"find": query}))) as server:
        program = f"const QUERY = `{query}`;" + example.replace("https://api.example.com/graphql", server.url)
        process = await asyncio.create_subprocess_exec(
            *["node", "--input-type=module"],
            cwd=CLIENTS,
            env=ENVIRONMENT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        told, _ = await process.communicate((program + USES[uses]).encode())

    assert json.loads(told) == FOUND


# Build tools


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the tools have written documents of the demo's frontend."""
    folder = tmp_path_factory.mktemp("frontend")
    (folder / "schema.graphql").write_text((CLIENTS.parent / "golden/bananas.graphql").read_text())
    subprocess.run(["node", CLIENTS / "documents.mjs"], cwd=folder, check=True, env=ENVIRONMENT)
    return folder


@pytest.mark.parametrize(
    ("file", "name"), [("relay.json", "Relay"), ("gql/persisted-documents.json", "Other"), ("manifest.json", "Other")]
)
async def test_what_a_tool_has_written_is_served_and_nothing_else(
    file: str, name: str, written: Path, bananas: Served
) -> None:
    path = written / file
    (document,) = read_trusted(path)
    api = api_of(bananas.graph, Settings(trusted_documents=path, only_trusted=True))
    asked: Mapping[str, Any] = {"documentId": document.id, "operationName": f"{name}Query", "variables": NUMBER}

    async with running(api) as server, httpx.AsyncClient() as client:
        found = (await client.post(server.url, json=asked)).json()
        by_text = (await client.post(server.url, json={**asked, "documentId": None, "query": document.text})).json()
        other = (await client.post(server.url, json={"query": QUERY, "variables": NUMBER})).json()

    assert found["data"]["container"].items() >= {"number": "009998", "operator": "TheBoatingCompany"}.items()
    assert by_text == found
    assert [error["extensions"]["code"] for error in other["errors"]] == ["DOCUMENT_NOT_TRUSTED"]
