"""A server that is open to others: what it refuses to start without, and that no answer of it tells of the table."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, get_args

import httpx
import pytest

from graph import errors
from graph.client import Meter, Response
from graph.errors import GraphError, ModelError, Problem
from graph.loaders import Graph
from graph.requests import Request as StoreRequest
from resolvers.operation import Events, Request
from resolvers.operation import Response as ApiResponse
from resolvers.schema import Api, Executor
from resolvers.sdl import compile_model
from server.app import build_app
from server.production import REQUIREMENTS, check_production
from server.settings import Settings, SettingsError, load_settings
from tests.conftest import BANANAS
from tests.counting import Running, running
from tests.test_app import client_of
from tests.test_lambda_http import Function, url, variables  # noqa: F401 - fixtures
from tests.test_websocket import acknowledged, subscribe

KEY = "k" * 43

# The start


def test_production_turns_off_what_tells_of_the_table() -> None:
    settings = load_settings({"TABLEGRAPH_PRODUCTION": "true", "TABLEGRAPH_SIGNING_KEYS": KEY})

    assert (settings.graphiql, settings.introspection, settings.cost) == (False, False, "never")


def test_what_is_set_counts_in_production_too() -> None:
    settings = load_settings({"TABLEGRAPH_COST": "always"}, {"production": "true", "graphiql": "on"})

    assert (settings.graphiql, settings.introspection, settings.cost) == (True, False, "always")


def test_what_is_missing_is_told_at_once() -> None:
    with pytest.raises(SettingsError) as refused:
        check_production(load_settings({}, {"production": "true"}))

    assert len(str(refused.value).splitlines()) == len(REQUIREMENTS)
    assert "TABLEGRAPH_SIGNING_KEYS: expected keys with --production" in str(refused.value)
    assert "TABLEGRAPH_ANONYMOUS: expected true" in str(refused.value)
    check_production(Settings())
    check_production(Settings(production=True, signing_keys=KEY, anonymous=True))


@pytest.mark.parametrize("command", ["serve", "demo"])
async def test_serve_refuses_to_start_without(command: str) -> None:
    arguments = [command, "--schema", str(BANANAS), "--production", "true"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "import sys; from server.cli import main; sys.exit(main())", *arguments),
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()

    assert process.returncode == 2
    assert b"make one by `tablegraph secret`" in said


# Keys


def test_keys_are_read_from_a_file_or_the_variable(tmp_path: Any) -> None:
    (tmp_path / "keys").write_text(f"{KEY}\n\n{'l' * 32}\n")

    for text in (f"@{tmp_path / 'keys'}", f"{KEY}, {'l' * 32}"):
        assert load_settings({"TABLEGRAPH_SIGNING_KEYS": text}).signing_keys == text


@pytest.mark.parametrize("text", ["short", f"{KEY},", f"{KEY},short", "@/no/such/file", "@pyproject.toml"])
def test_keys_that_cannot_be_used_are_refused_and_never_shown(text: str) -> None:
    with pytest.raises(SettingsError, match=r"TABLEGRAPH_SIGNING_KEYS: expected .*keys of at least 32") as refused:
        load_settings({"TABLEGRAPH_SIGNING_KEYS": text})

    assert "got" not in str(refused.value)
    assert KEY not in str(refused.value)


def test_keys_are_never_shown() -> None:
    assert KEY not in repr(Settings(signing_keys=KEY))


# What clients are told of errors

TABLE, INDEX, ATTRIBUTE, STORED_KEY = "banana-delivery", "reverse-lookup-index", "relatedObjectId", "CONTAINER_009998"
ARN = f"arn:aws:dynamodb:eu-central-1:123456789012:table/{TABLE}/index/{INDEX}"
MESSAGE = f"User AKIA234 may not Query {ARN}: {ATTRIBUTE} = {STORED_KEY} of {TABLE}"
PRIVATE = re.compile(f'{TABLE}|{INDEX}|{ATTRIBUTE}|CONTAINER_|arn:|AKIA|123456789012|Traceback|File "|banana', re.I)
ID = re.compile(r"id (?:in the log is )?([0-9a-f]{12,16})")


def subclasses(of: type[GraphError] = GraphError) -> Iterator[type[GraphError]]:
    yield of
    for below in of.__subclasses__():
        yield from subclasses(below)


def every_error() -> list[Exception]:
    """One of each class, and one that is none of ours."""
    found: list[Exception] = [ValueError(MESSAGE), KeyError(MESSAGE)]
    for kind in dict.fromkeys(subclasses()):
        if kind.__module__ == errors.__name__:
            found.append(ModelError([Problem(1, 1, MESSAGE)]) if kind is ModelError else kind(MESSAGE))
    return found


def test_every_class_of_errors_is_tried() -> None:
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or ""))

    assert drawn <= {type(error).__name__ for error in every_error()}


class Failing:
    """A client of DynamoDB that fails."""

    error: Exception = RuntimeError()

    async def send(self, request: StoreRequest, meter: Meter, parse: object = None) -> Response:
        raise self.error


class BreakingOff:
    """An API whose operations go on, and then do not."""

    error: Exception = RuntimeError()

    async def ready(self) -> None:
        raise self.error

    async def execute(self, request: Request) -> ApiResponse:
        raise self.error

    def goes_on(self, request: Request) -> bool:
        return True

    async def open(self, request: Request) -> ApiResponse | Events:
        return self._events()

    async def _events(self) -> AsyncGenerator[dict[str, Any], None]:
        yield {"data": {"count": 0}}
        raise self.error


QUERY = '{ container(number: "009998") { operator pallets { edges { cursor } } } containers { totalCount } }'
DEFERRED = '{ __typename ... @defer { container(number: "009998") { operator } } }'
STREAMED = "{ containers { edges @stream { cursor } } }"
MUTATION = 'mutation { createContainer(input: { number: "1" }) { container { number } } }'
TRANSACTION = 'mutation @transaction { createContainer(input: { number: "1" }) { container { number } } }'
LIVE = "query @live " + QUERY


def failing(executor: Executor, *, discreet: bool) -> tuple[Failing, Api]:
    store = Failing()
    model = compile_model(BANANAS.read_text())
    return store, Api(Graph(model, store), executor=executor, discreet=discreet, introspection=False)


async def answers_by_http(client: httpx.AsyncClient) -> list[str]:
    ways = [("application/json", query) for query in (QUERY, MUTATION, TRANSACTION, LIVE)]
    ways += [("multipart/mixed", DEFERRED), ("multipart/mixed", STREAMED), ("text/event-stream", QUERY)]
    asked = [client.post("/graphql", json={"query": query}, headers={"accept": accept}) for accept, query in ways]
    asked += [client.get("/graphql", params={"query": QUERY}), client.get("/readyz")]
    return [answer.text for answer in await asyncio.gather(*asked)]


async def answers_by_socket(server: Running, *queries: str) -> AsyncIterator[str]:
    async with acknowledged(server) as client:
        for query in queries:
            await client.say(subscribe("a", query))
            while (message := await client.hear())["type"] not in ("complete", "error"):
                yield json.dumps(message)
            yield json.dumps(message)


@pytest.mark.parametrize("executor", get_args(Executor))
async def test_no_answer_tells_of_the_table(executor: Executor, caplog: pytest.LogCaptureFixture) -> None:
    store, api = failing(executor, discreet=True)
    async with (
        running(api, production=True, signing_keys=KEY) as server,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as client,
    ):
        for store.error in every_error():
            caplog.clear()
            told = await answers_by_http(client)
            told += [text async for text in answers_by_socket(server, QUERY, MUTATION)]

            name = type(store.error).__name__
            assert not [text for text in told if PRIVATE.search(text)], name
            ids = set(ID.findall("".join(told)))
            logged = [record.getMessage() for record in caplog.records]
            assert ids, name
            for number in ids:
                # Once, under the id, or in a line of the request that has the id.
                assert sum(number in line for line in logged) <= 1, (name, number)
            assert any("banana" in line or record.exc_info for line, record in zip(logged, caplog.records, strict=True))


async def test_what_ends_a_stream_of_events_tells_nothing_of_the_table() -> None:
    api = BreakingOff()
    async with (
        running(api, production=True, signing_keys=KEY) as server,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as client,
    ):
        for api.error in every_error():
            events = {"accept": "text/event-stream"}
            told = [(await client.post("/graphql", json={"query": "{ a }"}, headers=events)).text]
            told += [(await client.post("/graphql", json={"query": "{ a }"})).text, (await client.get("/readyz")).text]
            told += [text async for text in answers_by_socket(server, "subscription { a }")]

            name = type(api.error).__name__
            assert not [text for text in told if PRIVATE.search(text)], name
            assert len(ID.findall("".join(told))) == 4, name


async def test_in_development_the_message_is_told() -> None:
    store, api = failing("plan", discreet=False)
    store.error = errors.AccessRefused(MESSAGE)
    async with running(api) as server, httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as client:
        answer = (await client.post("/graphql", json={"query": QUERY})).json()
        ready = (await client.get("/readyz")).json()

    assert {error["message"] for error in answer["errors"]} == {MESSAGE}
    assert ready["reason"] == MESSAGE


async def test_an_error_that_fails_many_fields_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    store, api = failing("plan", discreet=True)
    store.error = errors.Throttled(MESSAGE)
    fields = " ".join(f'c{number}: container(number: "{number}") {{ operator }}' for number in range(9))

    answer = await api.execute(Request(f"{{ {fields} }}"))

    assert len(answer.body["errors"]) == 9
    assert len({error["message"] for error in answer.body["errors"]}) == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("{ containers(first: 2000) { totalCount } }", "`first` must be from 0 to 1000", id="page"),
        pytest.param('{ node(id: "x") { id } }', "expected the `id` of a node of this API", id="id"),
        pytest.param('{ containers(after: "x") { totalCount } }', "`after` is not a cursor", id="cursor"),
    ],
)
async def test_what_a_client_can_mend_it_is_told_in_production_too(query: str, message: str) -> None:
    _, api = failing("plan", discreet=True)

    answer = await api.execute(Request(query))

    assert message in answer.body["errors"][0]["message"]


def test_a_function_tells_nothing_of_the_table_either(url: Function, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setenv("TABLEGRAPH_PRODUCTION", "true")
    monkeypatch.setenv("TABLEGRAPH_SIGNING_KEYS", KEY)
    monkeypatch.setenv("TABLEGRAPH_ANONYMOUS", "true")
    monkeypatch.setenv("TABLEGRAPH_TABLE", "no-banana-table")

    answer = url.post(QUERY)

    assert {error["extensions"]["code"] for error in answer["errors"]} == {"TABLE_MISSING"}
    assert not PRIVATE.search(url.body.decode()), url.body


# Suggestions

# Not among them: a selection that is missing, for which graphql-core suggests the field that the document itself names.
MISTAKES = [
    '{ contaner(number: "1") { operator } }',
    '{ container(numbr: "1") { operator } }',
    '{ container(number: "1") { operatr } }',
    "query ($a: Strin) { containers { totalCount } }",
    "{ containers { totalCount @skp(if: true) } }",
    "{ containers(where: { operatr: {} }) { totalCount } }",
]


@pytest.mark.parametrize("executor", get_args(Executor))
@pytest.mark.parametrize("query", MISTAKES)
async def test_without_introspection_nothing_is_suggested(executor: Executor, query: str) -> None:
    _, api = failing(executor, discreet=True)

    answer = await api.execute(Request(query))

    assert answer.outcome == "refused"
    assert "Did you mean" not in json.dumps(answer.body)


async def test_without_introspection_a_variable_s_mistake_suggests_nothing_either() -> None:
    query = "mutation M($input: CreateContainerInput!) { createContainer(input: $input) { container { number } } }"
    for executor in get_args(Executor):
        _, api = failing(executor, discreet=True)
        answer = await api.execute(Request(query, {"input": {"numbr": "1"}}, "M"))

        assert answer.outcome == "refused"
        assert "Did you mean" not in json.dumps(answer.body), executor


@pytest.mark.parametrize(("production", "told"), [(True, "It is in the log."), (False, MESSAGE)])
async def test_why_the_streams_are_not_followed_is_for_the_log(production: bool, told: str) -> None:
    class Stuck:
        def figures(self) -> dict[str, Any]:
            return {"reading": False, "problem": MESSAGE}

    app = build_app(BreakingOff(), Settings(production=production), following=Stuck())  # type: ignore[arg-type]
    async with client_of(app) as client:
        figures = (await client.get("/streamz")).json()

    assert figures["problem"] == told
