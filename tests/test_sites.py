"""Pages of other sites: what browsers send for them unasked is refused, and what they may do is told to browsers.

That browsers keep to it is tested by a browser, in server/ide/test/sites.test.mjs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from server.settings import SettingsError, load_settings
from tests.counting import CountingApi, running

APP, STRANGER = "https://app.example", "https://stranger.example"
HELLO = {"query": "{ hello }"}
GET = f"/graphql?query={quote('{ hello }')}"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "content-type, authorization"}


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        running(CountingApi(), **settings) as server,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as client,
    ):
        yield client


# GETs that nobody was asked about


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="curl"),
        pytest.param({"sec-fetch-site": "same-origin", "accept": "*/*"}, id="own-page"),
        pytest.param({"sec-fetch-site": "same-origin", "accept": "text/event-stream"}, id="own-event-source"),
        pytest.param({"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}, id="address-bar"),
        pytest.param(
            {"sec-fetch-site": "cross-site", "graphql-require-preflight": "1"}, id="graphql-require-preflight"
        ),
        pytest.param(
            {"sec-fetch-site": "cross-site", "apollo-require-preflight": "true"}, id="apollo-require-preflight"
        ),
        pytest.param({"sec-fetch-site": "cross-site", "x-apollo-operation-name": "Hello"}, id="apollo-operation-name"),
        pytest.param(
            {"sec-fetch-site": "cross-site", "content-type": "application/json"}, id="type-that-is-asked-about"
        ),
        pytest.param({"sec-fetch-site": "cross-site", "origin": APP}, id="page-of-a-site-that-is-named"),
    ],
)
async def test_a_get_is_answered(headers: Mapping[str, str]) -> None:
    async with serving(cors_origins=APP, graphiql=False) as client:
        answer = await client.get(GET, headers=headers)

    assert answer.status_code == 200
    assert "world" in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"sec-fetch-site": "cross-site", "accept": "*/*"}, id="script"),
        pytest.param({"sec-fetch-site": "cross-site", "accept": "image/avif,*/*", "cookie": "s=1"}, id="image"),
        pytest.param({"sec-fetch-site": "same-site", "accept": "*/*"}, id="another-port-or-subdomain"),
        pytest.param({"sec-fetch-site": "cross-site", "origin": STRANGER}, id="page-of-a-stranger"),
        pytest.param({"sec-fetch-site": "cross-site", "accept": "text/event-stream"}, id="event-source"),
        pytest.param({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, id="link"),
        pytest.param({"sec-fetch-site": "cross-site", "content-type": "text/plain; a=json"}, id="form"),
        pytest.param({"sec-fetch-site": "same-orígin"}, id="unheard-of"),
    ],
)
async def test_a_get_for_another_site_is_refused(headers: Mapping[str, str]) -> None:
    async with serving(cors_origins=APP, graphiql=False) as client:
        answer = await client.get(GET, headers=[(name.encode(), value.encode()) for name, value in headers.items()])

    assert answer.status_code == 403
    assert answer.json()["errors"][0]["extensions"]["code"] == "CROSS_SITE_REQUEST"


async def test_a_link_from_elsewhere_opens_graphiql() -> None:
    async with serving() as client:
        headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "accept": "text/html,*/*;q=0.8"}
        page = await client.get("/graphql", headers=headers)

    assert page.headers["content-type"].startswith("text/html")


async def test_a_form_of_another_site_is_no_request() -> None:
    async with serving(cors_origins="*") as client:
        for type_ in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            answer = await client.post("/graphql", content=b'{"query":"{ hello }"}', headers={"content-type": type_})
            assert answer.status_code == 415


# CORS


def access(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


async def test_until_it_is_configured_no_page_of_another_site_is_told_anything() -> None:
    async with serving() as client:
        preflight = await client.options("/graphql", headers={"origin": APP, **PREFLIGHT})
        answer = await client.post("/graphql", json=HELLO, headers={"origin": APP})

    assert (preflight.status_code, access(preflight), access(answer)) == (405, {}, {})


async def test_a_page_of_a_site_that_is_named_may_ask_and_read() -> None:
    async with serving(cors_origins=f"https://other.example, {APP}") as client:
        preflight = await client.options("/graphql", headers={"origin": APP, **PREFLIGHT})
        answer = await client.post("/graphql", json=HELLO, headers={"origin": APP})

    assert preflight.status_code == 204
    assert preflight.content == b""
    assert "content-length" not in preflight.headers
    assert preflight.headers["access-control-max-age"] == "7200"
    assert preflight.headers["access-control-allow-methods"] == "GET, POST"
    allowed = preflight.headers["access-control-allow-headers"].split(", ")
    assert {"authorization", "content-type", "idempotency-key", "tablegraph-cost", "x-api-key"} <= set(allowed)
    for one in (preflight, answer):
        assert one.headers["access-control-allow-origin"] == APP
        assert "Origin" in one.headers["vary"]
        assert "access-control-allow-credentials" not in one.headers
    assert {"X-Request-Id", "Retry-After", "RateLimit"} <= set(
        answer.headers["access-control-expose-headers"].split(", ")
    )


@pytest.mark.parametrize(
    ("method", "path", "headers", "content"),
    [
        pytest.param("POST", "/graphql", {"content-type": "application/json"}, b'{"query":"{ breaks }"}', id="500"),
        pytest.param("POST", "/graphql", {"content-type": "application/json"}, b"{", id="400"),
        pytest.param("POST", "/graphql", {"content-type": "text/plain"}, b"{}", id="415"),
        pytest.param("PUT", "/graphql", {}, b"", id="405"),
        pytest.param("GET", GET, {"accept": "text/event-stream"}, b"", id="one-event"),
        pytest.param("GET", GET.replace("%7B", "subscription%7B"), {"accept": "text/event-stream"}, b"", id="events"),
        pytest.param("GET", GET, {"accept": "multipart/mixed"}, b"", id="parts"),
        pytest.param("GET", "/healthz", {}, b"", id="health"),
        pytest.param("GET", "/nowhere", {}, b"", id="404"),
    ],
)
async def test_every_answer_says_who_may_read_it(
    method: str, path: str, headers: dict[str, str], content: bytes
) -> None:
    async with serving(cors_origins=APP) as client:
        named, strange, unnamed = [
            await client.request(method, path, headers=headers | more, content=content)
            for more in ({"origin": APP}, {"origin": STRANGER}, {})
        ]

    assert named.headers["access-control-allow-origin"] == APP
    assert (access(strange), access(unnamed)) == ({}, {})
    # A cache must not give one of these to who gets another.
    assert all("Origin" in answer.headers["vary"] for answer in (named, strange, unnamed))


async def test_a_page_of_a_stranger_is_refused_before_it_asks() -> None:
    async with serving(cors_origins=APP) as client:
        for origin in (STRANGER, "null", f"{APP}.stranger.example", "http://app.example"):
            preflight = await client.options("/graphql", headers={"origin": origin, **PREFLIGHT})

            assert (preflight.status_code, access(preflight)) == (403, {})


async def test_any_site_gets_the_star_and_never_credentials() -> None:
    async with serving(cors_origins="*") as client:
        answer = await client.post("/graphql", json=HELLO, headers={"origin": STRANGER, "cookie": "session=1"})

    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
    assert "Origin" not in answer.headers["vary"]


async def test_credentials_are_for_the_sites_that_are_named() -> None:
    async with serving(cors_origins=APP, cors_credentials=True) as client:
        named = await client.post("/graphql", json=HELLO, headers={"origin": APP})
        strange = await client.post("/graphql", json=HELLO, headers={"origin": STRANGER})

    assert named.headers["access-control-allow-credentials"] == "true"
    assert access(strange) == {}


def test_credentials_for_any_site_are_refused_at_the_start() -> None:
    with pytest.raises(SettingsError, match=r"TABLEGRAPH_CORS_CREDENTIALS: expected false where .* has \*"):
        load_settings({"TABLEGRAPH_CORS_ORIGINS": f"{APP}, *", "TABLEGRAPH_CORS_CREDENTIALS": "true"})


# Sockets


@pytest.mark.parametrize(
    ("origins", "headers", "is_opened"),
    [
        pytest.param(APP, {"origin": APP, "cookie": "s=1"}, True, id="named"),
        pytest.param(APP, {"origin": STRANGER}, False, id="stranger"),
        pytest.param("*", {"origin": STRANGER}, True, id="any"),
        pytest.param("*", {"origin": STRANGER, "cookie": "s=1"}, False, id="any-with-cookies"),
        pytest.param("*", {"cookie": "s=1"}, True, id="no-browser"),
        pytest.param(f"*, {APP}", {"origin": APP, "cookie": "s=1"}, True, id="any-and-named"),
    ],
)
async def test_sockets_are_opened_for_the_same_sites(origins: str, headers: Mapping[str, str], is_opened: bool) -> None:
    async with running(CountingApi(), cors_origins=origins) as server:
        try:
            async with connect(server.socket_url, additional_headers=headers) as connection:
                status = connection.response.status_code if connection.response else 0
        except InvalidStatus as refused:
            status = refused.response.status_code

    assert status == (101 if is_opened else 403)


# Headers of all answers


@pytest.mark.parametrize("path", [GET, "/graphql", "/healthz", "/nowhere", "/graphql-ide/index.html"])
async def test_every_answer_is_safe_in_a_browser(path: str) -> None:
    async with serving() as client:
        answer = await client.get(path)

    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert "strict-transport-security" not in answer.headers


@pytest.mark.parametrize(
    ("trusted", "proto", "is_strict"),
    [
        pytest.param("127.0.0.1", "https", True, id="trusted"),
        pytest.param("127.0.0.1", "http", False, id="not-encrypted"),
        pytest.param("", "https", False, id="anybody-may-say-so"),
    ],
)
async def test_tls_is_asked_for_where_it_is_known(trusted: str, proto: str, is_strict: bool) -> None:
    async with serving(trusted_proxies=trusted) as client:
        answer = await client.post("/graphql", json=HELLO, headers={"x-forwarded-proto": proto})

    assert ("strict-transport-security" in answer.headers) is is_strict
