"""Both ways, the wire's and boto3's: what a server may answer and what becomes of it, credentials and region."""

from __future__ import annotations

import asyncio
import json
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from graph.boto import BotoTransport
from graph.client import Client, Meter
from graph.errors import (
    AccessRefused,
    DeadlineExceeded,
    KeysRefused,
    RequestRefused,
    StoreError,
    TableMissing,
    Throttled,
    Unavailable,
)
from graph.requests import BatchGetItem, DescribeTable, GetItem, Query, Request, Scan
from graph.wire.transport import WireTransport
from server.transports import Way
from tests.clock import turns

KEYS = ("local", "local")
GET = GetItem("fruit", (("id", "banana"),))
BATCH = BatchGetItem("fruit", (GET.key,))
QUERY = Query("fruit", None, (("id", "banana"),))
REQUESTS: dict[str, Request] = {
    request.operation: request for request in (GET, BATCH, QUERY, Scan("fruit", 0, 1), DescribeTable("fruit"))
}
ITEM = {"id": {"S": "banana"}, "name": {"S": "Banane \U0001f34c"}}


@dataclass(frozen=True)
class Answer:
    """What the server answers: `length` cuts the connection there, a `crc32` of None is left out."""

    body: bytes
    status: int = 200
    crc32: int | None = None
    length: int | None = None


def ok(content: object) -> Answer:
    body = json.dumps(content).encode()
    return Answer(body, crc32=zlib.crc32(body))


def error(code: str, message: str = "no", status: int = 400) -> Answer:
    content = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message}
    return Answer(json.dumps(content).encode(), status)


@dataclass
class Dynamo:
    """A server that answers as it is told, the last answer for good, and remembers what it was asked."""

    url: str
    answers: list[Answer] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    gate: threading.Event = field(default_factory=threading.Event)
    """While it is clear, nothing is answered."""

    def next(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture(scope="module")
def server() -> Iterator[list[Dynamo]]:
    """A server that does as the last of these says: made once, as boto3's clients are slow to make."""
    scripts: list[Dynamo] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            script = scripts[-1]
            self.rfile.read(int(self.headers["content-length"]))
            script.asked.append({name.lower(): value for name, value in self.headers.items()})
            script.arrived.release()
            script.gate.wait()
            answer = script.next()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.body)))
            if answer.crc32 is not None:
                self.send_header("X-Amz-Crc32", str(answer.crc32))
            self.end_headers()
            self.wfile.write(answer.body[: answer.length])
            self.close_connection = answer.length is not None

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        scripts.append(Dynamo(f"http://127.0.0.1:{http.server_address[1]}"))
        yield scripts
        http.shutdown()
        thread.join()


@pytest.fixture
def dynamo(server: list[Dynamo]) -> Iterator[Dynamo]:
    script = Dynamo(server[0].url)
    script.gate.set()
    server.append(script)
    yield script
    script.gate.set()


KINDS: list[type[Way]] = [WireTransport, BotoTransport]


@pytest.fixture(params=KINDS, scope="module")
def kind(request: pytest.FixtureRequest) -> type[Way]:
    chosen: type[Way] = request.param
    return chosen


@pytest.fixture(scope="module")
def way(server: list[Dynamo], kind: type[Way]) -> Iterator[Way]:
    with closing(kind(server[0].url, "eu-central-1", 4, credentials=KEYS)) as transport:
        yield transport


@pytest.fixture(scope="module")
def boto(server: list[Dynamo]) -> Iterator[BotoTransport]:
    with closing(BotoTransport(server[0].url, "eu-central-1", threads=4, credentials=KEYS)) as transport:
        yield transport


async def test_answer_is_dynamodbs_own_json(dynamo: Dynamo, way: Way) -> None:
    dynamo.answers = [ok({"Item": ITEM, "Unknown": {"kept": [1, None]}})]

    assert await way("GetItem", GET.parameters()) == {"Item": ITEM, "Unknown": {"kept": [1, None]}}


async def test_no_compression_is_asked_for(dynamo: Dynamo, way: Way) -> None:
    """DynamoDB's checksum is that of the compressed bytes, which we would never see."""
    dynamo.answers = [ok({})]

    await way("GetItem", GET.parameters())

    assert dynamo.asked[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("operation", "answer", "message"),
    [
        pytest.param("GetItem", Answer(b"{}", crc32=1), "does not match its checksum", id="wrong-checksum"),
        pytest.param("GetItem", Answer(b'{"Item": '), "damaged", id="json-that-stops"),
        pytest.param("GetItem", Answer(b""), "damaged", id="no-body"),
        pytest.param("GetItem", Answer(b"<html>"), "damaged", id="a-page-of-a-proxy"),
        pytest.param("GetItem", Answer(b"[]"), "not a JSON object", id="a-list"),
        pytest.param("GetItem", Answer(b'{"Item": {}}', length=5), "cannot be reached or", id="connection-cut-off"),
        pytest.param("Query", ok({}), "the answer to Query has no Count", id="query-without-count"),
        pytest.param("Scan", ok({"Items": []}), "the answer to Scan has no Count", id="scan-without-count"),
        pytest.param(
            "BatchGetItem", ok({}), "the answer to BatchGetItem has no Responses", id="batch-without-responses"
        ),
        pytest.param(
            "DescribeTable", ok({}), "the answer to DescribeTable has no Table", id="table-without-description"
        ),
        pytest.param("GetItem", error("InternalServerError", status=500), "InternalServerError: no", id="fault"),
        pytest.param("GetItem", error("Surprise", status=503), "DynamoDB answered Surprise: no", id="unknown-fault"),
        pytest.param("GetItem", Answer(b"<html>", 502), "DynamoDB answered 502", id="gateway"),
        pytest.param("GetItem", Answer(b"", 500), "DynamoDB answered 500", id="fault-without-body"),
    ],
)
async def test_damaged_answer_is_unavailable(
    dynamo: Dynamo, way: Way, operation: str, answer: Answer, message: str
) -> None:
    dynamo.answers = [answer]

    with pytest.raises(Unavailable, match=message):
        await way(operation, REQUESTS[operation].parameters())

    # Retries are the client's: no transport makes any.
    assert len(dynamo.asked) == 1


@pytest.mark.parametrize(
    ("answer", "error_kind", "message"),
    [
        pytest.param(
            error("ProvisionedThroughputExceededException"),
            Throttled,
            "DynamoDB answered ProvisionedThroughputExceededException: no",
            id="throttled",
        ),
        pytest.param(
            error("ThrottlingException", ""), Throttled, "answered ThrottlingException$", id="without-message"
        ),
        pytest.param(error("TooManyRequests", status=429), Throttled, "TooManyRequests", id="throttled-by-a-proxy"),
        pytest.param(
            error("ResourceNotFoundException"),
            TableMissing,
            r"^the table 'fruit', or an index of it that the model names, does not exist \(ResourceNotFoundException\)",
            id="no-table",
        ),
        pytest.param(error("AccessDeniedException"), AccessRefused, "AccessDeniedException: no", id="not-allowed"),
        pytest.param(error("ExpiredTokenException"), KeysRefused, "ExpiredTokenException: no", id="expired"),
        pytest.param(error("ValidationException", "é"), RequestRefused, "ValidationException: é", id="refused"),
        pytest.param(error("Surprise"), RequestRefused, "DynamoDB answered Surprise: no", id="unknown"),
    ],
)
async def test_error_of_dynamodb_has_its_class(
    dynamo: Dynamo, way: Way, answer: Answer, error_kind: type[StoreError], message: str
) -> None:
    dynamo.answers = [answer]

    with pytest.raises(error_kind, match=message) as refused:
        await way("GetItem", GET.parameters())

    assert type(refused.value) is error_kind


async def test_missing_table_of_a_batch_is_named(dynamo: Dynamo, way: Way) -> None:
    dynamo.answers = [error("ResourceNotFoundException")]

    with pytest.raises(TableMissing, match=r"^the table 'fruit'"):
        await way("BatchGetItem", BATCH.parameters())


async def test_client_retries_what_passes(dynamo: Dynamo, way: Way) -> None:
    damaged = Answer(b"{}", crc32=1)
    dynamo.answers = [error("ThrottlingException"), Answer(b"", 500), damaged, ok({"Item": ITEM})]
    meter = Meter()

    assert await Client(way).send(GET, meter) == {"Item": ITEM}

    assert len(dynamo.asked) == 4
    assert meter.retries == 3


async def test_refused_connection_says_where(dynamo: Dynamo, kind: type[Way]) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as gone:
        url = f"http://127.0.0.1:{gone.server_address[1]}"

    with (
        closing(kind(url, "eu-central-1", credentials=KEYS)) as transport,
        pytest.raises(Unavailable, match=f"DynamoDB cannot be reached .*{url}"),
    ):
        await transport("GetItem", GET.parameters())


# --- credentials and region ---------------------------------------------------------------------------------------


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Leave boto3 nothing to find, neither on this machine nor on the network."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE", "REGION", "DEFAULT_REGION"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.delenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


async def test_missing_credentials_are_named_with_their_cure(
    dynamo: Dynamo, kind: type[Way], no_settings: object
) -> None:
    with (
        closing(kind(dynamo.url, "eu-central-1")) as transport,
        pytest.raises(AccessRefused, match=r"no AWS credentials can be had .*: set AWS_PROFILE or"),
    ):
        await transport("GetItem", GET.parameters())

    assert dynamo.asked == []


def test_half_of_the_credentials_is_none(dynamo: Dynamo, kind: type[Way], no_settings: pytest.MonkeyPatch) -> None:
    no_settings.setenv("AWS_ACCESS_KEY_ID", "half")

    with pytest.raises(AccessRefused, match=r"no AWS credentials can be had .*AWS_SECRET_ACCESS_KEY"):
        kind(dynamo.url, "eu-central-1")


def test_missing_profile_is_named(kind: type[Way], no_settings: pytest.MonkeyPatch) -> None:
    no_settings.setenv("AWS_PROFILE", "fruit-trader")

    with pytest.raises(AccessRefused, match="fruit-trader"):
        kind("http://127.0.0.1:1", "eu-central-1")


def test_missing_region_is_named_with_its_cure(kind: type[Way], no_settings: object) -> None:
    with pytest.raises(AccessRefused, match=r"^no AWS region is set: set AWS_REGION"):
        kind(credentials=KEYS)


@pytest.mark.parametrize(
    ("variable", "given", "used"),
    [
        pytest.param("AWS_REGION", None, "ap-south-1", id="AWS_REGION"),
        pytest.param("AWS_DEFAULT_REGION", None, "ap-south-1", id="AWS_DEFAULT_REGION"),
        pytest.param("AWS_REGION", "eu-west-3", "eu-west-3", id="given-wins"),
    ],
)
async def test_requests_are_signed_for_the_region(
    dynamo: Dynamo, kind: type[Way], no_settings: pytest.MonkeyPatch, variable: str, given: str | None, used: str
) -> None:
    no_settings.setenv(variable, "ap-south-1")
    dynamo.answers = [ok({})]

    with closing(kind(dynamo.url, given, credentials=KEYS)) as transport:
        await transport("GetItem", GET.parameters())

    assert f"/{used}/dynamodb/aws4_request" in dynamo.asked[0]["authorization"]


# --- threads ------------------------------------------------------------------------------------------------------


async def in_thread(wait: Callable[[], object]) -> None:
    await asyncio.get_running_loop().run_in_executor(None, wait)


async def test_as_many_calls_are_under_way_as_there_are_threads(dynamo: Dynamo, boto: BotoTransport) -> None:
    dynamo.answers = [ok({"Item": ITEM})]
    dynamo.gate.clear()
    client = Client(boto, max_in_flight=4)
    sent = [asyncio.ensure_future(client.send(GET, Meter())) for _ in range(8)]

    for _ in range(4):
        await in_thread(dynamo.arrived.acquire)
    await turns()
    assert len(dynamo.asked) == 4
    dynamo.gate.set()

    assert await asyncio.gather(*sent) == [{"Item": ITEM}] * 8


async def test_cancelled_call_keeps_its_slot_until_its_thread_is_free(dynamo: Dynamo) -> None:
    dynamo.answers = [ok({}), ok({"Item": ITEM})]
    dynamo.gate.clear()
    with closing(BotoTransport(dynamo.url, "eu-central-1", threads=1, credentials=KEYS)) as transport:
        client = Client(transport, max_in_flight=1)
        first = asyncio.ensure_future(client.send(GET, Meter()))
        await in_thread(dynamo.arrived.acquire)
        first.cancel()
        meter = Meter()
        second = asyncio.ensure_future(client.send(GET, meter))
        await turns()

        # The caller has gone at once, and the next one waits for a slot rather than in the threads' queue.
        assert first.cancelled()
        assert meter.requests == []
        dynamo.gate.set()
        assert await second == {"Item": ITEM}


async def test_deadline_does_not_wait_for_the_thread(dynamo: Dynamo, boto: BotoTransport) -> None:
    dynamo.answers = [ok({})]
    dynamo.gate.clear()
    deadline = asyncio.get_running_loop().time() + 0.05
    meter = Meter(deadline=deadline)

    with pytest.raises(DeadlineExceeded):
        await Client(boto).send(GET, meter)

    # boto3 itself would have waited for 20 s.
    assert asyncio.get_running_loop().time() - deadline < 5


def test_loop_that_ends_before_its_threads_says_nothing(dynamo: Dynamo, caplog: pytest.LogCaptureFixture) -> None:
    """As when the server is stopped while DynamoDB does not answer."""
    dynamo.answers = [ok({})]
    dynamo.gate.clear()
    with closing(BotoTransport(dynamo.url, "eu-central-1", threads=1, credentials=KEYS)) as transport:

        async def leave() -> None:
            caller = asyncio.ensure_future(Client(transport).send(GET, Meter()))
            await in_thread(dynamo.arrived.acquire)
            caller.cancel()
            await turns()

        asyncio.run(leave())
        dynamo.gate.set()
        # The only thread is free again when it answers another loop.
        asyncio.run(Client(transport).send(GET, Meter()))

    assert caplog.messages == []
