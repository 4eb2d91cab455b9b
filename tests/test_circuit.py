"""A bad day of DynamoDB: circuits, attempts that hang, keys that are replaced, tables of which one is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from graph.circuit import Circuit
from graph.client import MAX_TRIES, Client, Meter, Response
from graph.errors import CircuitOpen, DeadlineExceeded, RequestRefused, Throttled, Unavailable
from graph.loaders import Graph
from graph.requests import GetItem, Query
from graph.wire.transport import WireTransport
from resolvers.operation import Request
from resolvers.schema import Api
from resolvers.sdl import compile_model
from tests.clock import now, run
from tests.wire_server import Server, answer, say, serving

FRUIT = GetItem("fruit", (("id", "banana"),))
NUTS = GetItem("nuts", (("id", "almond"),))
ERROR = b'{"__type": "com.amazonaws.dynamodb.v20120810#%b", "message": "no"}'


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that circuits read."""
    time = [100.0]
    monkeypatch.setattr("graph.circuit.time.monotonic", lambda: time[0])
    monkeypatch.setattr("graph.circuit.random.uniform", lambda low, high: high)
    return time


def failing(circuit: Circuit, times: int) -> list[bool]:
    return [circuit.failed() for _ in range(times)]


def test_failures_in_a_row_open_a_circuit_and_an_answer_closes_it(clock: list[float]) -> None:
    circuit = Circuit("fruit")

    assert failing(circuit, 10) == [True] * 10
    circuit.enter()
    assert (circuit.failed(), circuit.is_open) == (False, True)
    with pytest.raises(CircuitOpen, match=r"is not asked before 0\.5 s from now") as refused:
        circuit.enter()
    assert refused.value.extensions == {"code": "STORE_UNAVAILABLE", "retryAfter": 0.5}

    clock[0] += 0.5
    circuit.enter()
    with pytest.raises(CircuitOpen):
        circuit.enter()
    circuit.answered()
    circuit.enter()
    assert not circuit.is_open


def test_a_circuit_is_open_for_twice_as_long_each_time_it_is_tried_in_vain(clock: list[float]) -> None:
    circuit = Circuit("fruit")
    failing(circuit, 11)
    waits = []
    for _ in range(6):
        with pytest.raises(CircuitOpen) as refused:
            circuit.enter()
        waits.append(refused.value.retry_after)
        clock[0] += refused.value.retry_after
        circuit.enter()
        # Those that were under way before say nothing new, and only the one that tries counts once.
        failing(circuit, 20)

    assert waits == [0.5, 1, 2, 4, 5, 5]


def test_one_who_tries_and_goes_away_does_not_keep_a_circuit_open_for_ever(clock: list[float]) -> None:
    circuit = Circuit("fruit")
    failing(circuit, 11)
    clock[0] += 0.5
    circuit.enter()

    clock[0] += 5
    circuit.enter()


def test_a_table_that_fails_now_and_then_is_asked_all_the_same() -> None:
    circuit = Circuit("fruit")

    for number in range(10_000):
        if number % 4 == 0:
            assert circuit.failed()
        else:
            circuit.answered()

    assert not circuit.is_open


def test_retries_are_so_many_at_once_and_are_earned_again() -> None:
    circuit = Circuit("fruit")
    allowed = 0
    for number in range(1000):
        # Just below what opens it.
        if number % 9 in (0, 1, 3, 5):
            allowed += circuit.failed()
        else:
            circuit.answered()

    assert not circuit.is_open
    failures = sum(number % 9 in (0, 1, 3, 5) for number in range(1000))
    assert allowed < failures - 100
    assert allowed <= 50 + (1000 - failures) / 2


def test_a_quiet_circuit_is_calm_again() -> None:
    circuit = Circuit("fruit")
    circuit.failed()
    assert not circuit.is_calm

    for _ in range(200):
        circuit.answered()

    assert circuit.is_calm


# --- the client ---------------------------------------------------------------------------------------------------


class Tables:
    """A transport of which each table does as it is told."""

    def __init__(self, **acts: Callable[[], Response]) -> None:
        self.acts = acts
        self.asked: list[str] = []

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> Response:
        self.asked.append(parameters["TableName"])
        return self.acts[parameters["TableName"]]()


def fail(error: Exception) -> Callable[[], Response]:
    def act() -> Response:
        raise error

    return act


def test_of_two_tables_the_one_that_answers_is_asked() -> None:
    async def main() -> None:
        tables = Tables(fruit=fail(Unavailable("down")), nuts=lambda: {"Item": {}})
        client = Client(tables)
        for _ in range(2):
            with pytest.raises(Unavailable):
                await client.send(FRUIT, Meter(deadline=now() + 1000))
        assert client.tables_down == ["fruit"]
        sent = len(tables.asked)

        with pytest.raises(CircuitOpen):
            await client.send(FRUIT, Meter(deadline=now() + 1000))

        assert len(tables.asked) == sent
        assert await client.send(NUTS, Meter(deadline=now() + 1000)) == {"Item": {}}

    run(main())


@pytest.mark.parametrize("error", [Throttled("hot"), RequestRefused("no")])
def test_what_dynamodb_answers_opens_no_circuit(error: Exception) -> None:
    async def main() -> None:
        client = Client(Tables(fruit=fail(error)))
        for _ in range(5):
            with pytest.raises(type(error)):
                await client.send(FRUIT, Meter(deadline=now() + 1000))
        assert client.tables_down == []

    run(main())


def test_who_has_no_deadline_tries_as_long_as_he_may() -> None:
    async def main() -> None:
        tables = Tables(fruit=fail(Unavailable("down")))
        client = Client(tables)
        for _ in range(3):
            with pytest.raises(Unavailable, match="down"):
                await client.send(FRUIT, Meter())
        assert len(tables.asked) == 3 * MAX_TRIES

    run(main())


def test_an_operation_whose_time_is_over_says_how_much_it_had() -> None:
    async def main() -> None:
        async def hanging(operation: str, parameters: dict[str, Any]) -> Response:
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

        with pytest.raises(DeadlineExceeded) as refused:
            await Client(hanging).send(FRUIT, Meter(deadline=now() + 6, timeout_secs=6))

        assert refused.value.extensions == {"code": "DEADLINE_EXCEEDED", "limit": "time", "value": 6, "most": 6}

    run(main())


def test_one_failure_of_each_request_opens_no_circuit() -> None:
    """As when the first attempt is given up early, to be made again."""

    async def main() -> None:
        number = 0

        def act() -> Response:
            nonlocal number
            number += 1
            if number % 2:
                raise Unavailable("slow")
            return {}

        client = Client(Tables(fruit=act))
        for _ in range(100):
            await client.send(FRUIT, Meter(deadline=now() + 1000))
        assert client.tables_down == []

    run(main())


# --- over connections ---------------------------------------------------------------------------------------------


async def test_keys_that_are_refused_are_looked_for_again_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """As when a file of credentials is written anew, before the old ones would have expired."""
    file = tmp_path / "credentials"
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    file.write_text("[default]\naws_access_key_id = first\naws_secret_access_key = secret\n")
    expired = answer(ERROR % b"ExpiredTokenException", status=400)
    async with serving() as server:
        server.acts = [say(answer()), say(expired), say(answer(b'{"Item": {}}'))]
        transport = WireTransport(server.url, "eu-central-1")
        client = Client(transport)
        await client.send(FRUIT, Meter())
        file.write_text("[default]\naws_access_key_id = second\naws_secret_access_key = secret\n")

        assert await client.send(FRUIT, Meter()) == {"Item": {}}

        assert [b"Credential=second/" in request for request in server.requests] == [False, False, True]
        transport.close()


async def test_keys_of_which_there_are_no_others_are_refused_after_one_more_try(server: Server) -> None:
    server.acts = [say(answer(ERROR % b"UnrecognizedClientException", status=400))]
    transport = WireTransport(server.url, "eu-central-1", credentials=("key", "secret"))

    with pytest.raises(Exception, match="UnrecognizedClientException"):
        await Client(transport).send(FRUIT, Meter())

    assert len(server.requests) == 2
    transport.close()


@pytest.fixture
async def server() -> Any:
    async with serving() as script:
        yield script


TWO = """
extend schema
  @table(name: "one", partitionKey: "p", sortKey: "s")
  @table(name: "two", partitionKey: "p", sortKey: "s")
type Apple @node(key: "APPLE_{number}", table: "one") { number: ID! name: String }
type Pear @node(key: "PEAR_{number}", table: "two") { number: ID! name: String }
"""


@pytest.mark.parametrize("executor", ["plan", "reference"])
async def test_fields_of_a_table_that_answers_come_though_another_one_does_not(
    executor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.client.BASE_DELAY_SECS", 0)

    class Engine:
        async def __call__(self, operation: str, parameters: dict[str, Any]) -> Response:
            if "two" in (parameters.get("TableName"), *parameters.get("RequestItems", ())):
                raise Unavailable("two is down")
            key = parameters["Key"]
            return {"Item": {**key, "name": {"S": "Cox"}}}

    client = Client(Engine())
    api = Api(Graph(compile_model(TWO), client), executor=executor, timeout_secs=20)
    query = '{ apple(number: "1") { name } pear(number: "1") { name } }'
    for _ in range(2):
        await api.execute(Request(query))

    body = (await api.execute(Request(query))).body

    assert body["data"] == {"apple": {"name": "Cox"}, "pear": None}
    (error,) = body["errors"]
    assert error["path"] == ["pear"]
    assert error["extensions"]["code"] == "STORE_UNAVAILABLE"
    assert 0 <= error["extensions"]["retryAfter"] <= 5
    assert client.tables_down == ["two"]


def test_a_query_and_its_table() -> None:
    """What is asked for of an index concerns its table."""

    async def main() -> None:
        client = Client(Tables(fruit=fail(Unavailable("down"))))
        for _ in range(2):
            with pytest.raises(Unavailable):
                await client.send(Query("fruit", "by-colour", (("c", "red"),)), Meter(deadline=now() + 1000))
        assert client.tables_down == ["fruit"]

    run(main())
