"""Answers are compressed for the clients that accept it, where that pays."""

import zlib

import httpx
import pytest

from resolvers.operation import Request, Response
from server.app import build_app
from server.compression import LEAST_BYTES, MOST_BYTES_IN_LOOP, accepts_gzip
from server.settings import Settings
from tests.test_app import HELLO, ScriptedApi, client_of


def api_of(size: int) -> ScriptedApi:
    """An API whose answers have a text of so many characters."""

    async def execute(_: Request) -> Response:
        return Response({"data": {"hello": "x" * size}}, "executed")

    return ScriptedApi(execute)


@pytest.mark.parametrize(
    ("accept_encoding", "accepted"),
    [
        pytest.param("gzip", True, id="gzip"),
        pytest.param("deflate, GZIP;q=0.5, br", True, id="among-others-in-any-case"),
        pytest.param("x-gzip", True, id="old-name"),
        pytest.param("*", True, id="wildcard"),
        pytest.param("gzip;q=0.001", True, id="hardly"),
        pytest.param("", False, id="none"),
        pytest.param("br, zstd", False, id="others-only"),
        pytest.param("gzip;q=0", False, id="quality-0"),
        pytest.param("gzip; q=0.000, *", False, id="name-over-wildcard"),
        pytest.param("gzip;q=0.4, identity;q=0.5", False, id="identity-is-liked-more"),
        pytest.param("gzip;q=0.5, *;q=0", True, id="all-else-excluded"),
        pytest.param("gzip;q=high", False, id="damaged-quality"),
        pytest.param("gzip;q=2", False, id="quality-above-1"),
    ],
)
def test_quality_values_decide(accept_encoding: str, accepted: bool) -> None:
    assert accepts_gzip(accept_encoding.encode()) is accepted


@pytest.mark.parametrize("size", [LEAST_BYTES, MOST_BYTES_IN_LOOP + 1], ids=["in-the-loop", "in-a-thread"])
async def test_a_large_answer_is_compressed(size: int) -> None:
    app = build_app(api_of(size), Settings())

    async with client_of(app) as client, client.stream("POST", "/graphql", json=HELLO) as answer:
        raw = b"".join([chunk async for chunk in answer.aiter_raw()])

    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-length"] == str(len(raw))
    assert len(raw) < size / 10
    assert zlib.decompress(raw, 31) == b'{"data":{"hello":"%b"}}' % (b"x" * size)


@pytest.mark.parametrize(
    ("size", "settings", "accept_encoding"),
    [
        pytest.param(LEAST_BYTES - 23, Settings(), "gzip", id="small"),
        pytest.param(5000, Settings(compress=False), "gzip", id="switched-off"),
        pytest.param(5000, Settings(), "identity", id="not-accepted"),
    ],
)
async def test_an_answer_goes_out_as_it_is(size: int, settings: Settings, accept_encoding: str) -> None:
    async with client_of(build_app(api_of(size), settings)) as client:
        answer = await client.post("/graphql", json=HELLO, headers={"accept-encoding": accept_encoding})

    assert "content-encoding" not in answer.headers
    assert answer.json() == {"data": {"hello": "x" * size}}


async def test_caches_are_told_that_the_answer_depends_on_accept_encoding() -> None:
    async with client_of(build_app(api_of(5000), Settings())) as client:
        answers: list[httpx.Response] = [
            await client.post("/graphql", json=HELLO, headers={"accept-encoding": coding})
            for coding in ("gzip", "identity")
        ]

    assert {answer.headers["vary"] for answer in answers} == {"Accept, Accept-Encoding"}
