"""How often one client may ask, and who counts as one."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.identity import ANONYMOUS, Identity
from server.gate import Gate
from server.logs import Exchange
from server.peers import Peers, read_networks
from server.rates import Rate, RateLimiter
from server.settings import Settings, SettingsError, load_settings
from server.view import Refusal
from tests.counting import CountingApi, running
from tests.test_websocket import acknowledged, subscribe

HELLO = {"query": "{ hello }"}


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def asks(limiter: RateLimiter, client: str = "a") -> int | None:
    """Ask once, and give what is left; None when it is refused."""
    try:
        return limiter.take(client).remaining
    except Refusal:
        return None


def test_a_client_may_ask_for_all_at_once_and_again_by_and_by() -> None:
    clock = Clock()
    limiter = RateLimiter(Rate(3, 60), clock)

    assert [asks(limiter) for _ in range(4)] == [2, 1, 0, None]
    clock.now += 19.9
    assert asks(limiter) is None
    clock.now += 0.1
    assert [asks(limiter), asks(limiter)] == [0, None]
    clock.now += 60
    assert [asks(limiter) for _ in range(4)] == [2, 1, 0, None]


def test_each_client_is_counted_by_itself() -> None:
    limiter = RateLimiter(Rate(1, 60), Clock())

    assert [asks(limiter, client) for client in ("a", "b", "a", "b")] == [0, 0, None, None]


@given(st.lists(st.floats(0, 5), max_size=60), st.integers(1, 6), st.integers(1, 9))
def test_no_window_holds_more_than_twice_what_is_allowed(waits: list[float], most: int, window_secs: int) -> None:
    """What a bucket gives at once, and what it gets back meanwhile."""
    clock = Clock()
    limiter = RateLimiter(Rate(most, window_secs), clock)
    answered: list[float] = []
    for wait in waits:
        clock.now += wait
        if asks(limiter) is not None:
            answered.append(clock.now)

    for begin in answered:
        assert sum(begin <= moment <= begin + window_secs for moment in answered) <= 2 * most


def test_who_waits_as_long_as_it_is_told_is_answered() -> None:
    clock = Clock()
    limiter = RateLimiter(Rate(7, 3), clock)
    for _ in range(50):
        try:
            limiter.take("a")
        except Refusal as refusal:
            clock.now += int(dict(refusal.headers)[b"retry-after"])
            limiter.take("a")


def test_the_client_heard_of_longest_ago_is_forgotten_first() -> None:
    limiter = RateLimiter(Rate(1, 60), Clock(), most_clients=2)

    assert [asks(limiter, client) for client in ("a", "b", "a", "c", "a", "b")] == [0, 0, None, 0, None, 0]
    for number in range(1000):
        asks(limiter, str(number))
    assert len(limiter) == 2


# Who is one client


def scope(address: str) -> dict[str, object]:
    return {"type": "http", "client": (address, 4711)}


@pytest.mark.parametrize(
    ("trusted", "address", "forwarded", "client"),
    [
        pytest.param("", "192.0.2.1", None, "192.0.2.1", id="direct"),
        pytest.param("", "192.0.2.1", "198.51.100.7", "192.0.2.1", id="anybody-may-say-so"),
        pytest.param("10.0.0.0/8", "10.1.2.3", "198.51.100.7", "198.51.100.7", id="proxy"),
        pytest.param("10.0.0.0/8", "10.1.2.3", "1.1.1.1, 198.51.100.7", "198.51.100.7", id="made-up-before-it"),
        pytest.param("10.0.0.0/8", "10.1.2.3", "198.51.100.7, 10.9.9.9", "198.51.100.7", id="two-proxies"),
        pytest.param("10.0.0.0/8", "10.1.2.3", "10.7.7.7, 10.9.9.9", "10.7.7.7", id="proxies-alone"),
        pytest.param("10.0.0.0/8", "10.1.2.3", "198.51.100.7:443", "198.51.100.7", id="with-port"),
        pytest.param("10.0.0.0/8", "10.1.2.3", "[2001:db8:1:2:3::4]:443", "2001:db8:1:2::/64", id="ipv6-with-port"),
        pytest.param("10.0.0.0/8", "10.1.2.3", "unknown", "unknown", id="obfuscated"),
        pytest.param("10.0.0.0/8", "10.1.2.3", "x" * 9000, "x" * 64, id="long"),
        pytest.param("::1", "::1", "198.51.100.7", "198.51.100.7", id="proxy-by-ipv6"),
        pytest.param("10.0.0.0/8", "::ffff:10.1.2.3", "198.51.100.7", "198.51.100.7", id="ipv4-in-ipv6"),
        pytest.param("", "2001:db8:1:2:3:4:5:6", None, "2001:db8:1:2::/64", id="ipv6-is-a-network"),
    ],
)
def test_a_client_is_an_address_that_a_trusted_peer_names(
    trusted: str, address: str, forwarded: str | None, client: str
) -> None:
    headers = {} if forwarded is None else {b"x-forwarded-for": forwarded.encode()}

    assert Peers(trusted).client(scope(address), headers) == client


def test_without_an_address_there_is_one_client() -> None:
    assert Peers("").client({"type": "http", "client": None}, {}) == ""


@pytest.mark.parametrize("text", ["10.0.0.0/33", "localhost", "10.0.0.1/8", "10.0.0.0/8,"])
def test_proxies_are_addresses_and_networks(text: str) -> None:
    with pytest.raises(SettingsError, match="TABLEGRAPH_TRUSTED_PROXIES: expected addresses or networks"):
        load_settings({"TABLEGRAPH_TRUSTED_PROXIES": text})
    assert len(read_networks("10.0.0.0/8, ::1")) == 2


@pytest.mark.parametrize("text", ["600", "0/60", "600/0", "-1/60", "1.5/60", "many/60", "1/60/60"])
def test_a_rate_is_operations_and_seconds(text: str) -> None:
    with pytest.raises(SettingsError, match="TABLEGRAPH_RATE_LIMIT: expected operations and seconds"):
        load_settings({"TABLEGRAPH_RATE_LIMIT": text})


def test_who_is_known_is_counted_wherever_they_are() -> None:
    gate = Gate(Settings(rate_limit="1/60"))
    gate.count(Identity("ann"), Exchange({}), scope("192.0.2.1"))
    gate.count(ANONYMOUS, Exchange({}), scope("192.0.2.1"))
    gate.count(Identity("192.0.2.1"), Exchange({}), scope("192.0.2.1"))

    with pytest.raises(Refusal, match="at most 1 operations in 60 s"):
        gate.count(Identity("ann"), Exchange({}), scope("192.0.2.2"))


# Over HTTP and WebSocket


async def test_who_asks_too_often_is_told_when_to_ask_again() -> None:
    async with (
        running(CountingApi(), rate_limit="2/3600") as server,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as client,
    ):
        answers = [await client.post("/graphql", json=HELLO) for _ in range(3)]
        page = await client.get("/graphql", headers={"accept": "text/html"})
        health = await client.get("/healthz")

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer.headers["ratelimit-policy"] for answer in answers] == ['"default";q=2;w=3600'] * 3
    assert [answer.headers["ratelimit"].split(";")[1] for answer in answers] == ["r=1", "r=0", "r=0"]
    assert 1 <= int(answers[2].headers["retry-after"]) <= 1800
    (error,) = answers[2].json()["errors"]
    assert error["extensions"]["code"] == "RATE_LIMITED"
    assert error["extensions"]["limit"] == 2
    # What is no operation is not counted.
    assert (page.status_code, health.status_code) == (200, 200)


@pytest.mark.parametrize(
    ("trusted", "statuses"),
    [pytest.param("127.0.0.1", [200, 200, 429], id="trusted"), pytest.param("", [200, 429, 429], id="made-up")],
)
async def test_behind_a_proxy_its_clients_are_counted(trusted: str, statuses: list[int]) -> None:
    async with (
        running(CountingApi(), rate_limit="1/3600", trusted_proxies=trusted) as server,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as client,
    ):
        found = [
            (await client.post("/graphql", json=HELLO, headers={"x-forwarded-for": address})).status_code
            for address in ("192.0.2.1", "192.0.2.2", "192.0.2.1")
        ]

    assert found == statuses


async def test_operations_of_a_socket_count_too_and_it_stays_open() -> None:
    async with running(CountingApi(), rate_limit="1/3600") as server, acknowledged(server) as client:
        await client.say(subscribe("a", "{ hello }"))
        heard: list[Mapping[str, object]] = [await client.hear(), await client.hear()]
        await client.say(subscribe("b", "{ hello }"), {"type": "ping"})
        refused, pong = await client.hear(), await client.hear()

    assert [message["type"] for message in heard] == ["next", "complete"]
    assert (refused["type"], refused["id"], pong["type"]) == ("error", "b", "pong")
    assert refused["payload"][0]["extensions"]["code"] == "RATE_LIMITED"
    assert refused["payload"][0]["extensions"]["retryAfterSecs"] > 0, json.dumps(refused)
