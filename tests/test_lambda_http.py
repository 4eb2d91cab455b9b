"""The HTTP API on AWS Lambda, on the engine: events as the three kinds of front send them, and containers."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from anyio.from_thread import start_blocking_portal

from server import container, lambda_http
from server.negotiation import EVENT_STREAM, GRAPHQL_RESPONSE, JSON
from tests.conftest import BANANAS, ROOT, make_table
from tests.issuer import AUDIENCE, ISSUER, running_issuer, token

CONTEXT: Any = SimpleNamespace(aws_request_id="c6af9ac6-7b61-11e6-9a41-93e8deadbeef")
QUERY = 'query Container { container(number: "009998") { number operator } }'
FOUND = {"data": {"container": {"number": "009998", "operator": "TheBoatingCompany"}}}
BOXES = '{ container(number: "000001") { boxes(first: 100) { nodes { number weightInKg } } } }'

Event = dict[str, Any]


def rest(
    method: str, path: str, headers: Mapping[str, str], query: Mapping[str, str], body: str | None, is_base64: bool
) -> Event:
    """Make the event of a REST API, its resource a proxy below a stage that the path does not name."""
    names = {"Host": "70ixmpl4fl.execute-api.us-east-2.amazonaws.com", "X-Forwarded-Proto": "https", **headers}
    return {
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": method,
        "headers": names,
        "multiValueHeaders": {name: [value] for name, value in names.items()},
        "queryStringParameters": dict(query) or None,
        "multiValueQueryStringParameters": {name: [value] for name, value in query.items()} or None,
        "pathParameters": {"proxy": path.lstrip("/")},
        "stageVariables": None,
        "requestContext": {
            "resourceId": "2gxmpl",
            "resourcePath": "/{proxy+}",
            "httpMethod": method,
            "path": f"/Prod{path}",
            "accountId": "123456789012",
            "protocol": "HTTP/1.1",
            "stage": "Prod",
            "domainPrefix": "70ixmpl4fl",
            "requestId": "e48cxmpl",
            "identity": {"sourceIp": "192.0.2.1", "userAgent": "curl"},
            "domainName": "70ixmpl4fl.execute-api.us-east-2.amazonaws.com",
            "apiId": "70ixmpl4fl",
        },
        "body": body,
        "isBase64Encoded": is_base64,
    }


def http_2(stage: str, host: str) -> Callable[..., Event]:
    """Make events of version 2.0, whose paths begin with the stage, and which have no body rather than null."""

    def made(
        method: str, path: str, headers: Mapping[str, str], query: Mapping[str, str], body: str | None, is_base64: bool
    ) -> Event:
        whole = path if stage == "$default" else f"/{stage}{path}"
        return {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": whole,
            "rawQueryString": urlencode(query),
            "headers": {name.lower(): value for name, value in headers.items()} | {"host": host},
            **({"queryStringParameters": dict(query)} if query else {}),
            "requestContext": {
                "accountId": "anonymous",
                "apiId": host.split(".")[0],
                "domainName": host,
                "domainPrefix": host.split(".")[0],
                "http": {
                    "method": method,
                    "path": whole,
                    "protocol": "HTTP/1.1",
                    "sourceIp": "192.0.2.1",
                    "userAgent": "curl",
                },
                "requestId": "e48cxmpl",
                "routeKey": "$default",
                "stage": stage,
                "time": "20/Nov/2026:18:00:00 +0000",
                "timeEpoch": 1795197600000,
            },
            **({"body": body} if body is not None else {}),
            "isBase64Encoded": is_base64,
        }

    return made


FRONTS: dict[str, Callable[..., Event]] = {
    "REST API": rest,
    "HTTP API": http_2("$default", "1234567890.execute-api.us-east-2.amazonaws.com"),
    "HTTP API with a stage": http_2("live", "1234567890.execute-api.us-east-2.amazonaws.com"),
    "function URL": http_2("$default", "abcdefg.lambda-url.us-east-2.on.aws"),
}


class Function:
    """A function behind a front: sends it events, and reads what it gives back as the front would."""

    def __init__(self, front: Callable[..., Event]) -> None:
        self._front = front
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.is_base64 = False

    def post(self, query: str, accept: str = JSON, *, encoding: str = "", is_base64: bool = False, **more: Any) -> Any:
        body = json.dumps({"query": query, **more})
        content = base64.b64encode(body.encode()).decode() if is_base64 else body
        headers = {"Accept": accept, "Content-Type": JSON, **({"Accept-Encoding": encoding} if encoding else {})}
        return self.ask(self._front("POST", "/graphql", headers, {}, content, is_base64))

    def event(self, query: str) -> Event:
        """Make the event of a query by POST."""
        return self._front(
            "POST", "/graphql", {"Accept": JSON, "Content-Type": JSON}, {}, json.dumps({"query": query}), False
        )

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> Any:
        return self.ask(self._front("GET", path, {"Accept": accept}, query or {}, None, False))

    def ask(self, event: Event) -> Any:
        """Send an event, which Lambda brings and takes as JSON."""
        answer = json.loads(json.dumps(lambda_http.handler(json.loads(json.dumps(event)), CONTEXT)))
        self.status, self.headers, self.is_base64 = answer["statusCode"], answer["headers"], answer["isBase64Encoded"]
        self.body = base64.b64decode(answer["body"]) if self.is_base64 else answer["body"].encode()
        if self.headers.get("content-encoding") == "gzip":
            self.body = gzip.decompress(self.body)
        return json.loads(self.body) if "json" in self.headers.get("content-type", "") else self.body


@pytest.fixture
def variables(engine: str, banana_table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment of a function whose container has not started."""
    schema = tmp_path / "schema.graphql"
    schema.write_text(BANANAS.read_text())
    for name, value in {
        "TABLEGRAPH_SCHEMA": str(schema),
        "TABLEGRAPH_TABLE": banana_table,
        "TABLEGRAPH_ENDPOINT_URL": engine,
        "AWS_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }.items():
        monkeypatch.setenv(name, value)
    # The log of the tests stays theirs.
    monkeypatch.setattr(container, "configure_logging", lambda *_: None)
    lambda_http._made.cache_clear()
    yield
    if lambda_http._made.cache_info().currsize:
        lambda_http._made()[0].close()
    lambda_http._made.cache_clear()


@pytest.fixture(params=FRONTS)
def function(request: pytest.FixtureRequest, variables: None) -> Function:
    return Function(FRONTS[request.param])


@pytest.fixture
def url(variables: None) -> Function:
    return Function(FRONTS["function URL"])


# What is asked, and how


def test_a_query_is_answered(function: Function) -> None:
    assert function.post(QUERY) == FOUND

    assert (function.status, function.is_base64) == (200, False)
    assert function.headers["content-type"] == "application/json; charset=utf-8"
    assert function.headers["x-request-id"] == CONTEXT.aws_request_id


def test_a_body_in_base64_is_read(function: Function) -> None:
    variables = {"number": "009998"}
    query = "query ($number: ID!) { container(number: $number) { number operator } }"

    assert function.post(query, is_base64=True, variables=variables) == FOUND


def test_a_query_by_get_is_answered_and_a_mutation_refused(function: Function) -> None:
    mutation = 'mutation { deleteContainer(key: {number: "009998"}) { __typename } }'

    assert function.get("/graphql", {"query": QUERY, "operationName": "Container"}) == FOUND
    assert function.get("/graphql", {"query": mutation})["errors"][0]["extensions"]["code"] == "METHOD_NOT_ALLOWED"
    assert (function.status, function.headers["allow"]) == (405, "POST")


def test_errors_come_as_they_do_from_the_server(function: Function) -> None:
    assert function.post("{ nothing }", GRAPHQL_RESPONSE)["errors"]
    assert (function.status, function.is_base64) == (400, False)

    assert function.get("/nowhere") == b"Not Found"
    assert function.status == 404

    assert function.get("/graphql", accept="image/png")["errors"][0]["extensions"]["code"] == "NOT_ACCEPTABLE"
    assert function.status == 406


def test_answers_are_compressed_but_for_rest_apis_which_do_it_by_themselves(function: Function) -> None:
    boxes = function.post(BOXES, encoding="gzip, br")["data"]["container"]["boxes"]["nodes"]

    assert len(boxes) > 20
    is_rest = function._front is rest
    assert function.is_base64 is not is_rest
    assert function.headers.get("content-encoding") == (None if is_rest else "gzip")


def test_health_is_told_and_no_page_shown(function: Function) -> None:
    assert function.get("/healthz") == {"status": "ok"}
    assert function.get("/readyz") == {"status": "ok"}
    assert function.get("/streamz")["reason"] == "This server follows no streams."
    refused = function.get("/graphql", accept="text/html,*/*;q=0.8")

    assert refused["errors"][0]["extensions"]["code"] == "INVALID_REQUEST", "a browser gets no GraphiQL"


def test_a_page_is_shown_where_it_is_asked_for(url: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLEGRAPH_GRAPHIQL", "true")

    assert b"<!doctype html>" in url.get("/graphql", accept="text/html").lower()


def test_mutations_write(
    engine: str, variables: None, function: Function, monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    table = make_table(engine, f"lambda-{request.node.callspec.id.replace(' ', '-')}", BANANAS.read_text(), ())
    monkeypatch.setenv("TABLEGRAPH_TABLE", table)

    made = function.post('mutation { createContainer(input: {number: "1"}) { container { number } } }')

    assert made == {"data": {"createContainer": {"container": {"number": "1"}}}}
    assert function.post('{ container(number: "1") { number } }') == {"data": {"container": {"number": "1"}}}


# Who asks


def test_an_authorizer_in_front_says_who_asks(
    function: Function, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TABLEGRAPH_AWS_AUTHORIZER", "true")
    caplog.set_level(logging.INFO)
    event = function.event(QUERY)

    for authorizer in ({"jwt": {"claims": {"sub": "ada"}}}, {"claims": {"sub": "ada"}}, {"principalId": "ada"}):
        event["requestContext"]["authorizer"] = authorizer
        assert function.ask(event) == FOUND
    del event["requestContext"]["authorizer"]
    event["headers"]["authorization"] = "Bearer x"
    (error,) = function.ask(event)["errors"]

    assert (function.status, error["extensions"]) == (401, {"code": "UNAUTHENTICATED", "reason": "MISSING"})
    lines = [record.fields for record in caplog.records if record.name == "server.logs"]  # type: ignore[attr-defined]
    assert [line.get("subject") for line in lines] == ["ada", "ada", "ada", None]


def test_a_token_says_who_asks_and_keys_outlive_an_invocation(url: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    event = url.event(QUERY)
    with running_issuer() as issuer:
        for name, value in {"KEYS": issuer.url, "ISSUER": ISSUER, "AUDIENCE": AUDIENCE}.items():
            monkeypatch.setenv(f"TABLEGRAPH_JWT_{name}", value)

        for number in range(3):
            event["headers"]["authorization"] = f"Bearer {token(jti=str(number))}"
            assert url.ask(event) == FOUND
        event["headers"]["authorization"] = f"Bearer {token(aud='payroll')}"
        (error,) = url.ask(event)["errors"]

        assert (url.status, error["extensions"]["reason"]) == (401, "WRONG_AUDIENCE")
        assert issuer.fetches == 1


# What would go on


SUBSCRIPTION = "subscription { containerChanged { __typename } }"


@pytest.mark.parametrize("accept", [JSON, GRAPHQL_RESPONSE, f"{EVENT_STREAM}, {JSON};q=0.5"])
def test_a_subscription_is_refused_with_the_way_to_have_it(url: Function, accept: str) -> None:
    answer = url.post(SUBSCRIPTION, accept)
    if accept.startswith(EVENT_STREAM):
        assert answer.endswith(b"event: complete\ndata:\n\n")
        answer = json.loads(answer.split(b"data: ")[1].split(b"\n")[0])

    (error,) = answer["errors"]
    assert error["extensions"]["code"] == "SUBSCRIPTION_TRANSPORT"
    assert "AWS Lambda answers once" in error["message"]
    assert "data" not in answer


def test_a_live_query_is_answered_once(url: Function) -> None:
    live = QUERY.replace("Container {", "Container @live {", 1)

    assert url.post(live) == FOUND
    event = url.post(live, EVENT_STREAM)
    assert event == b"event: next\ndata: " + json.dumps(FOUND, separators=(",", ":")).encode() + (
        b"\n\nevent: complete\ndata:\n\n"
    )
    assert not url.is_base64


def test_an_answer_in_parts_comes_whole(url: Function) -> None:
    deferred = '{ container(number: "009998") { number ... @defer { operator } } }'

    assert url.post(deferred, f"multipart/mixed, {JSON}") == FOUND
    parts = url.post(deferred, "multipart/mixed")
    assert parts.count(b"Content-Type: ") == 1
    assert b'"hasNext":false' in parts
    assert not url.is_base64


# Containers


def test_a_container_is_made_once_and_answers_a_thousand_times(url: Function) -> None:
    assert all(url.post(QUERY) == FOUND for _ in range(1000))

    made, _ = lambda_http._made()
    (pool,) = made.transport._pools.values()  # type: ignore[union-attr]
    assert len(pool._idle) == 1, "one connection served them all"
    assert lambda_http._made.cache_info().misses == 1
    assert asyncio.all_tasks(made.runner.get_loop()) == set(), "no invocation leaves anything behind"


class Gate:
    """Stands between a function and the engine, and can close every connection."""

    def __init__(self, engine: str) -> None:
        self._host, self._port = urlsplit(engine).hostname, urlsplit(engine).port
        self._writers: list[asyncio.StreamWriter] = []
        self.opened = 0
        self.url = ""

    @asynccontextmanager
    async def standing(self) -> AsyncIterator[None]:
        listening = await asyncio.start_server(self._let_through, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield
        listening.close()
        await self.close_all()

    async def close_all(self) -> None:
        for writer in self._writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        self._writers = []

    async def _let_through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        back, there = await asyncio.open_connection(self._host, self._port)
        self._writers += [writer, there]
        await asyncio.gather(self._copy(reader, there), self._copy(back, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
            writer.close()


def test_a_connection_that_was_closed_while_the_container_stood_still_is_made_anew(
    engine: str, url: Function, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate(engine)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(gate.standing()):
        monkeypatch.setenv("TABLEGRAPH_ENDPOINT_URL", gate.url)
        for times in (1, 2, 3):
            assert url.post(QUERY) == FOUND
            assert url.post(QUERY) == FOUND
            assert gate.opened == times
            # The loop, which does not run now, hears of it only within the next invocation.
            portal.call(gate.close_all)

    assert not [entry for entry in caplog.records if entry.levelno >= logging.WARNING]


def test_what_one_invocation_left_behind_does_not_harm_the_next(url: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLEGRAPH_OPERATION_TIMEOUT_SECS", "0.000001")

    for _ in range(3):
        (error,) = url.post(QUERY)["errors"]
        assert error["extensions"]["code"] == "DEADLINE_EXCEEDED"
    assert url.get("/healthz") == {"status": "ok"}


def test_an_answer_larger_than_lambda_sends_is_refused(url: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lambda_http, "SURELY_FITS", 1000)
    monkeypatch.setattr(lambda_http, "MAX_ANSWER_BYTES", 4000)

    (error,) = url.post(BOXES)["errors"]
    assert (url.status, error["extensions"]["code"]) == (500, "ANSWER_TOO_LARGE")

    assert url.post(BOXES, encoding="gzip")["data"], "compressed it is smaller"
    assert url.post(QUERY) == FOUND


def test_an_event_that_is_no_request_is_refused(url: Function) -> None:
    with pytest.raises(RuntimeError, match="unable to infer a handler"):
        url.ask({"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}})


def test_a_container_is_ready_before_the_first_event_comes(variables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "tablegraph")
    program = """
import logging
class LambdaLoggerHandler(logging.StreamHandler): ...
logging.getLogger().addHandler(LambdaLoggerHandler())
from server import container, lambda_http
print(lambda_http._made.cache_info().currsize, *[type(one).__name__ for one in logging.getLogger().handlers])
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["1", "_Handler"], "the runtime's handler would write each line again"


def test_a_function_keeps_the_limits_of_the_server(url: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLEGRAPH_MAX_DEPTH", "2")

    (error,) = url.post(BOXES)["errors"]
    assert (error["extensions"]["limit"], error["extensions"]["most"]) == ("depth", 2)
