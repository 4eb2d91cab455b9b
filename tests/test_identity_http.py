"""Who asks over HTTP, as events and over WebSockets, on a real server and with the clients that people have."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from graph.identity import ANONYMOUS
from server.identity import expiry
from tests.attacks import ATTACKS
from tests.counting import CountingApi, Running, running
from tests.issuer import AUDIENCE, ISSUER, Issuer, bearer, jwk, running_issuer, token
from tests.test_clients import CLIENTS, ENVIRONMENT
from tests.test_identity_tokens import until
from tests.test_readme import blocks
from tests.test_websocket import opened, subscribe

EVENTS = {"accept": "text/event-stream"}
HELLO = {"query": "{ hello }"}
WORLD = {"data": {"hello": "world"}}
KEYS = [
    {"name": "export", "sha256": hashlib.sha256(b"tg_known").hexdigest(), "roles": ["reader"]},
    {"name": "old", "sha256": hashlib.sha256(b"tg_expired").hexdigest(), "expires": "2020-01-01T00:00:00Z"},
]


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with running_issuer() as issuer:
        issuer.keys = [jwk("RS256", "one"), jwk("RS256", "other"), jwk("ES256", "two"), jwk("EdDSA", "ed")]
        yield issuer


@pytest.fixture
def settings(issuer: Issuer, tmp_path: Path) -> dict[str, Any]:
    """Every source at once; the proxy is elsewhere."""
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"keys": KEYS}))
    return {
        "jwt_keys": issuer.url,
        "jwt_issuer": ISSUER,
        "jwt_audience": AUDIENCE,
        "api_keys": keys,
        "proxy_headers": "subject=X-Auth-User, roles=X-Auth-Roles, claims=X-Auth-Claims",
        "trusted_proxies": "10.0.0.0/8",
    }


@pytest.fixture
async def api() -> CountingApi:
    return CountingApi()


@pytest.fixture
async def server(api: CountingApi, settings: dict[str, Any]) -> AsyncIterator[Running]:
    async with running(api, **settings) as started:
        yield started


@asynccontextmanager
async def asking(server: Running) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as client:
        yield client


@pytest.fixture
async def client(server: Running) -> AsyncIterator[httpx.AsyncClient]:
    async with asking(server) as client:
        yield client


# Over HTTP


@pytest.mark.parametrize(
    ("credential", "subject"),
    [
        pytest.param(lambda: token(), "ada", id="RS256"),
        pytest.param(lambda: token("ES256", "two", sub="bob"), "bob", id="ES256"),
        pytest.param(lambda: token("EdDSA", "ed"), "ada", id="EdDSA"),
        pytest.param(lambda: "tg_known", "export", id="API-key"),
    ],
)
async def test_the_api_is_told_who_asks(
    client: httpx.AsyncClient, api: CountingApi, credential: Any, subject: str
) -> None:
    headers = {"authorization": f"bearer {credential()}"}
    for method in ("GET", "POST"):
        arguments: Any = {"params": HELLO} if method == "GET" else {"json": HELLO}
        answer = await client.request(method, "/graphql", headers=headers, **arguments)

        assert (answer.status_code, answer.json()) == (200, WORLD)
        identity = api.requests[-1].identity
        assert (identity.subject, identity.roles) == (subject, frozenset(("reader",)))


async def test_every_attack_over_http_is_answered(
    client: httpx.AsyncClient, api: CountingApi, caplog: pytest.LogCaptureFixture
) -> None:
    for attack in ATTACKS:
        caplog.clear()
        caplog.set_level(logging.DEBUG)
        headers = attack.headers()

        answer = await client.post("/graphql", json=HELLO, headers=headers)

        told = (answer.status_code, answer.json()["errors"][0]["extensions"], answer.headers["www-authenticate"])
        challenge = "Bearer" if attack.reason == "MISSING" else 'Bearer error="invalid_token"'
        assert told == (401, {"code": "UNAUTHENTICATED", "reason": attack.reason}, challenge), attack.what
        logged = [record.fields for record in caplog.records if record.message == "unauthenticated"]  # type: ignore[attr-defined]
        assert [fields["reason"] for fields in logged] == [attack.reason], attack.what
        assert said(caplog, answer.text).isdisjoint(secrets_of(headers)), attack.what
    assert api.requests == []


def secrets_of(headers: dict[str, str]) -> set[str]:
    """What of credentials must be nowhere: the parts of them that are long enough to tell."""
    value = headers.get("authorization", "").partition(" ")[2]
    return {part for part in value.replace(",", ".").split(".") if len(part) > 12}


def said(caplog: pytest.LogCaptureFixture, answer: str) -> set[str]:
    """Every word that the server has said."""
    ours = [record for record in caplog.records if record.name.startswith("server")]
    text = answer + " ".join(record.getMessage() + str(getattr(record, "fields", "")) for record in ours)
    for separator in "'\":,{}()[].":
        text = text.replace(separator, " ")
    return set(text.split())


async def test_nobody_is_let_in_without_credentials_but_health_checks_and_the_page(
    client: httpx.AsyncClient, api: CountingApi
) -> None:
    page = await client.get("/graphql", headers={"accept": "text/html,*/*"})
    assert (page.status_code, "<!doctype html>" in page.text.lower()) == (200, True)
    for path in ("/healthz", "/readyz"):
        assert (await client.get(path)).status_code == 200

    introspection = {"query": "{ __schema { queryType { name } } }"}
    for headers in ({}, EVENTS, {"accept": "multipart/mixed"}, {"accept": "application/graphql-response+json"}):
        answer = await client.post("/graphql", json=introspection, headers=headers)
        assert (answer.status_code, answer.json()["errors"][0]["extensions"]["reason"]) == (401, "MISSING")
    assert api.requests == []


async def test_a_refusal_does_not_wait_for_the_body(server: Running) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(
        b"POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n"
    )

    assert (await reader.readline()).startswith(b"HTTP/1.1 401")
    writer.close()


async def test_the_log_has_the_subject_and_not_the_token(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    headers = bearer(token(sub="ada\nroot"))
    answer = await client.post("/graphql", json=HELLO, headers=headers)

    (line,) = [record for record in caplog.records if record.name == "server.logs"]
    assert line.fields["subject"] == "ada\nroot"  # type: ignore[attr-defined]
    assert said(caplog, answer.text).isdisjoint(secrets_of(headers))


async def test_without_any_source_everybody_is_served_and_nobody_known(api: CountingApi) -> None:
    async with running(api) as server, asking(server) as client:
        for headers in ({}, bearer(token()), {"authorization": "Basic x"}, {"x-auth-user": "root"}):
            assert (await client.post("/graphql", json=HELLO, headers=headers)).json() == WORLD

    assert all(request.identity is ANONYMOUS for request in api.requests)


async def test_anonymous_callers_are_served_where_that_is_wanted_but_no_wrong_credentials(
    api: CountingApi, settings: dict[str, Any]
) -> None:
    async with running(api, **settings, anonymous=True) as server, asking(server) as client:
        assert (await client.post("/graphql", json=HELLO)).json() == WORLD
        for attack in ATTACKS:
            if attack.reason != "MISSING":
                answer = await client.post("/graphql", json=HELLO, headers=attack.headers())
                assert answer.json()["errors"][0]["extensions"]["reason"] == attack.reason

    assert [request.identity for request in api.requests] == [ANONYMOUS]


async def test_while_no_keys_can_be_had_callers_are_asked_to_come_again(api: CountingApi) -> None:
    with running_issuer() as issuer:
        issuer.status = 500
        settings: Any = {"jwt_keys": issuer.url, "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}
        async with running(api, **settings) as server, asking(server) as client:
            answer = await client.post("/graphql", json=HELLO, headers=bearer(token()))
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
            assert answer.json()["errors"][0]["extensions"] == {"code": "IDENTITY_UNAVAILABLE"}
            async with opened(server) as socket:
                await socket.say({"type": "connection_init", "payload": bearer(token())})
                assert (await socket.closed())[0] == 1013


async def test_keys_are_fetched_at_start_before_any_token_comes(api: CountingApi) -> None:
    with running_issuer() as issuer:
        issuer.open.clear()
        settings: Any = {"jwt_keys": issuer.url, "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}
        async with running(api, **settings) as server, asking(server) as client:
            await until(lambda: issuer.fetches == 1)
            issuer.open.set()
            answers = [client.post("/graphql", json=HELLO, headers=bearer(token(jti=str(n)))) for n in range(5)]
            assert [answer.json() for answer in await asyncio.gather(*answers)] == [WORLD] * 5
        assert issuer.fetches == 1


# A proxy


@pytest.fixture
def behind(settings: dict[str, Any]) -> dict[str, Any]:
    """The proxy is this machine."""
    return {**settings, "trusted_proxies": "192.0.2.1, 127.0.0.0/8"}


async def test_a_trusted_proxy_says_who_asks(api: CountingApi, behind: dict[str, Any]) -> None:
    headers = {"x-auth-user": "adä", "x-auth-roles": "team a, b,", "x-auth-claims": '{"tenant": "acme"}'}
    async with running(api, **behind) as server, asking(server) as client:
        sent = {name: value.encode() for name, value in headers.items()}
        assert (await client.post("/graphql", json=HELLO, headers=sent)).json() == WORLD  # type: ignore[arg-type]
        assert (await client.post("/graphql", json=HELLO, headers={**bearer(token()), "x-auth-user": "eve"})).json()
        assert (await client.post("/graphql", json=HELLO, headers=bearer(token()))).json() == WORLD

    first, second, third = (request.identity for request in api.requests)
    assert (first.subject, first.roles) == ("adä", frozenset(("team a", "b")))
    assert first.claims == {"sub": "adä", "tenant": "acme"}
    assert (second.subject, third.subject) == ("eve", "ada")


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        pytest.param([("x-auth-roles", "admin")], "MALFORMED", id="no-subject"),
        pytest.param([("x-auth-user", "")], "MALFORMED", id="empty-subject"),
        pytest.param([("x-auth-user", "ada"), ("x-auth-user", "root")], "MALFORMED", id="two-subjects"),
        pytest.param([("x-auth-user", "a"), ("x-auth-roles", "r"), ("X-Auth-Roles", "root")], "MALFORMED", id="roles"),
        pytest.param([("x-auth-user", b"\xff")], "MALFORMED", id="no-utf-8"),
        pytest.param([("x-auth-user", "ada"), ("x-auth-claims", "[]")], "MALFORMED", id="claims-no-object"),
        pytest.param([("x-auth-user", "ada"), ("x-auth-claims", "{")], "MALFORMED", id="claims-no-json"),
        pytest.param([("x-auth-user", "ada"), ("x-auth-claims", '{"exp": 1}')], "EXPIRED", id="expired"),
        pytest.param([], "MISSING", id="nothing"),
    ],
)
async def test_what_a_proxy_says_must_be_clear(
    api: CountingApi, behind: dict[str, Any], headers: Any, reason: str
) -> None:
    async with running(api, **behind) as server, asking(server) as client:
        answer = await client.post("/graphql", json=HELLO, headers=httpx.Headers(headers))

    assert (answer.status_code, answer.json()["errors"][0]["extensions"]["reason"]) == (401, reason)


async def test_the_peer_is_the_sockets_and_not_what_a_header_says(api: CountingApi, behind: dict[str, Any]) -> None:
    headers = {"x-auth-user": "ada", "x-forwarded-for": "203.0.113.9", "forwarded": "for=203.0.113.9"}
    async with running(api, **behind) as server, asking(server) as client:
        assert (await client.post("/graphql", json=HELLO, headers=headers)).json() == WORLD


# Events


def never(to: int = 0) -> dict[str, Any]:
    return {"query": "subscription { never }", "variables": {"to": to}}


async def test_events_end_when_the_token_expires(
    client: httpx.AsyncClient, api: CountingApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    expiring = Expiring(monkeypatch)
    headers = {**EVENTS, **bearer(token())}
    async with client.stream("POST", "/graphql", json=never(to=1), headers=headers) as answer:
        chunks = answer.aiter_text()
        text = ""
        while "data: {" not in text or not text.endswith("\n\n"):
            text += await anext(chunks)
        expiring.expire()
        text += "".join([chunk async for chunk in chunks])

    first, last, complete = text.removeprefix(":\n\n").removesuffix("\n\n").split("\n\n")
    assert json.loads(first.partition("data: ")[2]) == {"data": {"never": 0}}
    (error,) = json.loads(last.partition("data: ")[2])["errors"]
    assert error["extensions"] == {"code": "UNAUTHENTICATED", "reason": "EXPIRED"}
    assert complete == "event: complete\ndata:"
    await api.until(under_way=0)


class Expiring:
    """Has identities expire when it is told, and not before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.limits: list[tuple[float, asyncio.Timeout]] = []
        monkeypatch.setattr(expiry, "asyncio", SimpleNamespace(timeout=self._timeout))

    def _timeout(self, secs: float) -> asyncio.Timeout:
        limit = asyncio.timeout(None)
        self.limits.append((secs, limit))
        return limit

    def expire(self) -> None:
        for secs, limit in self.limits:
            assert 600 < secs <= 630, "what the token says, and the leeway"
            limit.reschedule(asyncio.get_running_loop().time())


# WebSockets


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(lambda given: given, id="plain"),
        pytest.param(lambda given: {"Authorization": given["authorization"]}, id="capital"),
        pytest.param(lambda given: {"AUTHORIZATION": given["authorization"]}, id="capitals"),
        pytest.param(lambda given: {"headers": given}, id="headers"),
        pytest.param(lambda given: {"Headers": {"Authorization": given["authorization"]}}, id="capital-headers"),
        pytest.param(lambda given: {**given, "headers": given}, id="both"),
    ],
)
@pytest.mark.parametrize("credential", [lambda: token(), lambda: "tg_known"], ids=["token", "API-key"])
async def test_a_socket_is_told_who_asks_by_connection_init(
    server: Running, api: CountingApi, payload: Any, credential: Any
) -> None:
    async with opened(server) as socket:
        await socket.say({"type": "connection_init", "payload": payload(bearer(credential()))})
        assert await socket.hear() == {"type": "connection_ack"}
        await socket.say(subscribe("1", "{ hello }"))
        assert (await socket.hear())["payload"] == WORLD

    assert api.requests[0].identity.subject in ("ada", "export")


async def test_a_socket_is_told_who_asks_by_its_upgrade(
    server: Running, api: CountingApi, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with opened(server, bearer(token())) as socket:
        await socket.say({"type": "connection_init"}, subscribe("1", "{ hello }"))
        assert [(await socket.hear())["type"] for _ in range(3)] == ["connection_ack", "next", "complete"]
    async with opened(server, bearer(token())) as socket:
        await socket.say({"type": "connection_init", "payload": bearer(token(sub="bob"))}, subscribe("1", "{ hello }"))
        assert [(await socket.hear())["type"] for _ in range(3)] == ["connection_ack", "next", "complete"]

    assert [request.identity.subject for request in api.requests] == ["ada", "bob"], "what is said last"
    operations = [record.fields for record in caplog.records if "socket" in getattr(record, "fields", {})]  # type: ignore[attr-defined]
    assert [fields["subject"] for fields in operations] == ["ada", "bob"]


async def test_every_attack_by_the_upgrade_of_a_socket_is_answered(server: Running) -> None:
    for attack in ATTACKS:
        headers = attack.headers()
        if attack.reason == "MISSING":
            continue
        with pytest.raises(InvalidStatus) as refused:
            async with opened(server, headers):
                pass

        answer = refused.value.response
        if len(str(headers)) > 8192:
            assert answer.status_code == 431, "a WebSocket's headers end there"
            continue
        assert (answer.status_code, "Bearer" in answer.headers["www-authenticate"]) == (401, True), attack.what
        (error,) = json.loads(answer.body or b"")["errors"]
        assert error["extensions"] == {"code": "UNAUTHENTICATED", "reason": attack.reason}, attack.what


async def test_every_attack_by_connection_init_is_answered(server: Running, api: CountingApi) -> None:
    for attack in ATTACKS:
        async with opened(server) as socket:
            await socket.say({"type": "connection_init", "payload": attack.headers()}, subscribe("1", "{ hello }"))
            if "good token" in attack.what:
                assert (await socket.hear())["type"] == "connection_ack", "no proxy speaks by connection_init"
                assert (await socket.hear())["payload"] == WORLD
            else:
                assert await socket.closed() == (4403, "Forbidden"), attack.what

    (good,) = api.requests
    assert (good.identity.subject, good.identity.roles) == ("ada", frozenset(("reader",)))


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(None, id="none"),
        pytest.param({}, id="empty"),
        pytest.param({"authorization": None}, id="null"),
        pytest.param({"authorization": 7}, id="number"),
        pytest.param({"authorization": {"Bearer": "x"}}, id="object"),
        pytest.param({"headers": "authorization"}, id="headers-no-object"),
        pytest.param({"headers": {"x-auth-user": "root"}}, id="proxy"),
        pytest.param({"x-auth-user": "root"}, id="proxy-plain"),
        pytest.param({"authorization": "Bearer tg_known", "Authorization": "Bearer tg_other"}, id="two"),
        pytest.param({"authorization": "Bearer tg_known", "headers": {"authorization": "Bearer x"}}, id="two-places"),
    ],
)
async def test_a_socket_without_clear_credentials_is_closed(
    api: CountingApi, behind: dict[str, Any], payload: Any
) -> None:
    async with running(api, **behind) as server, opened(server) as socket:
        await socket.say({"type": "connection_init", "payload": payload}, subscribe("1", "{ hello }"))
        assert await socket.closed() == (4403, "Forbidden")
    assert api.requests == []


async def test_a_socket_of_a_proxy_is_whom_the_proxy_names(api: CountingApi, behind: dict[str, Any]) -> None:
    async with running(api, **behind) as server, opened(server, {"x-auth-user": "ada"}) as socket:
        payload = {"headers": {"x-auth-user": "root", "x-auth-roles": "admin"}}
        await socket.say({"type": "connection_init", "payload": payload}, subscribe("1", "{ hello }"))
        assert [(await socket.hear())["type"] for _ in range(3)] == ["connection_ack", "next", "complete"]

    assert (api.requests[0].identity.subject, api.requests[0].identity.roles) == ("ada", frozenset())


async def test_a_socket_is_closed_when_the_token_expires_and_lets_queries_finish(
    server: Running, api: CountingApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    expiring = Expiring(monkeypatch)
    async with opened(server) as socket:
        await socket.say({"type": "connection_init", "payload": bearer(token())})
        assert await socket.hear() == {"type": "connection_ack"}
        await socket.say(subscribe("1", "subscription { never }", to=1), subscribe("2", "{ slow }"))
        assert await socket.hear() == {"id": "1", "type": "next", "payload": {"data": {"never": 0}}}
        await api.until(under_way=2)
        expiring.expire()
        await api.until(under_way=1)
        api.released.set()

        assert await socket.hear() == {"id": "2", "type": "next", "payload": {"data": {"slow": "done"}}}
        assert await socket.hear() == {"id": "2", "type": "complete"}, "of the subscription nothing: it goes on later"
        assert await socket.closed() == (4403, "Forbidden")
    await api.until(under_way=0)


# The client that people have

FOLLOW = """
const tokens = process.argv.slice(1);
const say = (word, value = null) => console.log(JSON.stringify([word, value]));
globalThis.freshToken = async () => tokens.shift();
socket.on('closed', ({ code }) => say('closed', code));
socket.subscribe(
  { query: 'subscription { never }', variables: { to: 1 } },
  { next: (result) => say('next', result), error: ({ code }) => say('error', code), complete: () => say('complete') },
);
"""
"""What the client of the README does."""


@asynccontextmanager
async def following(server: Running, *tokens: str) -> AsyncIterator[asyncio.subprocess.Process]:
    (example,) = (block for block in blocks("js") if "connectionParams" in block)
    # Unless told it waits a second before it comes again, and twice as long the next time.
    example = example.replace("shouldRetry", "retryWait: async () => {}, shouldRetry")
    program = example.replace("wss://api.example.com/graphql", server.socket_url) + FOLLOW
    process = await asyncio.create_subprocess_exec(
        *["node", "--no-warnings", "--import", "./browser.mjs", "--input-type=module", "--eval", program, *tokens],
        cwd=CLIENTS,
        env=ENVIRONMENT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def told(process: asyncio.subprocess.Process) -> Any:
    assert process.stdout
    return json.loads(await process.stdout.readline())


needs_clients = pytest.mark.skipif(
    not (CLIENTS / "node_modules").is_dir(), reason="the clients from npm are not there: make test brings them"
)


@needs_clients
async def test_graphql_ws_comes_again_with_a_new_token_when_its_own_expires(server: Running, api: CountingApi) -> None:
    soon = token(exp=int(time.time()) - 28, sub="before")
    async with following(server, soon, token(sub="after")) as process:
        happened = [await told(process) for _ in range(3)]

    event = ["next", {"data": {"never": 0}}]
    assert happened == [event, ["closed", 4403], event]
    assert [request.identity.subject for request in api.requests] == ["before", "after"]


@needs_clients
async def test_graphql_ws_comes_again_when_it_was_refused(server: Running, api: CountingApi) -> None:
    async with following(server, token(aud="payroll"), token()) as process:
        happened = [await told(process) for _ in range(2)]

    assert happened == [["closed", 4403], ["next", {"data": {"never": 0}}]]
    assert len(api.requests) == 1
