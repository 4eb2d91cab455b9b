"""The way over connections of our own: which requests take it, where to, with whose keys, and what answers mean."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import ssl
import subprocess
import threading
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graph.boto import BotoTransport
from graph.client import Client, Meter
from graph.errors import DeadlineExceeded, RequestRefused, StoreError, Throttled, TransactionCancelled, Unavailable
from graph.requests import Action, BatchGetItem, DescribeTable, GetItem, PutItems, Query, Request, Scan
from graph.requests import TransactWriteItems as Transaction
from graph.wire.endpoint import Endpoint, endpoint_of
from graph.wire.pool import Address
from graph.wire.signing import Keys, Signer
from graph.wire.transport import WireTransport
from tests.wire_server import CLOSE, Server, answer, say, serving, wait

KEYS = ("local", "local")
REGION = "eu-central-1"
KEY = (("id", "banana"),)
SURROGATE = (("id", "\ud800"),)
GET = GetItem("fruit", KEY)
WRITE = Transaction((Action("fruit", KEY, {"id": {"S": "banana"}}),), "token")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as script:
        yield script


@pytest.fixture
def wire(server: Server) -> Iterator[WireTransport]:
    with closing(WireTransport(server.url, REGION, credentials=KEYS)) as transport:
        yield transport


def failure(code: str, status: int = 400, **more: Any) -> bytes:
    body = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", **more}).encode()
    return answer(body, f"X-Amz-Crc32: {zlib.crc32(body)}", status=status)


# --- requests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "is_ours"),
    [
        (GET, True),
        (BatchGetItem("fruit", (KEY,)), True),
        (Query("fruit", None, KEY), True),
        (Scan("fruit", 0, 1), True),
        (WRITE, True),
        (PutItems("fruit", ({"id": {"S": "banana"}},)), False),
        (DescribeTable("fruit"), False),
    ],
    ids=lambda value: getattr(value, "operation", ""),
)
async def test_reads_and_transactions_take_our_way_and_the_rest_boto3s(
    server: Server, wire: WireTransport, request_: Request, is_ours: bool
) -> None:
    server.acts = [say(answer(b'{"Count": 0, "Responses": {}, "Table": {}}'))]

    await wire(request_.operation, request_.parameters())

    head, body = server.requests[0].split(b"\r\n\r\n", 1)
    assert json.loads(body) == request_.parameters()
    assert f"dynamodb_20120810.{request_.operation}".lower().encode() in head.lower()
    assert (b"boto3" in head.lower()) is not is_ours


async def test_request_says_what_dynamodb_wants_to_hear(server: Server, wire: WireTransport) -> None:
    await wire("GetItem", GET.parameters())

    first, *lines = server.requests[0].split(b"\r\n\r\n")[0].decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert first == "POST / HTTP/1.1"
    assert headers["host"] == f"127.0.0.1:{server.port}"
    assert headers["content-type"] == "application/x-amz-json-1.0"
    assert headers["x-amz-target"] == "DynamoDB_20120810.GetItem"
    assert headers["accept-encoding"] == "identity"
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=local/")


@pytest.mark.parametrize(
    "request_", [GET, BatchGetItem("fruit", (KEY,)), Query("fruit", None, KEY), Scan("fruit", 0, 1), WRITE]
)
@pytest.mark.parametrize("report", [False, True], ids=["plain", "with-capacity"])
async def test_request_is_the_same_whether_it_comes_whole_or_by_its_parameters(
    server: Server, wire: WireTransport, request_: Request, report: bool
) -> None:
    server.acts = [say(answer(b'{"Count": 0, "Responses": {}}'))]
    asked = request_.parameters() | ({"ReturnConsumedCapacity": "TOTAL"} if report else {})

    await wire(request_.operation, asked)
    await Client(wire).send(request_, Meter(report_capacity=report))

    by_parameters, whole = (request.split(b"\r\n\r\n", 1) for request in server.requests)
    assert json.loads(whole[1]) == json.loads(by_parameters[1]) == asked
    names = [[line.split(b":")[0] for line in head.split(b"\r\n")] for head in (by_parameters[0], whole[0])]
    assert names[0] == names[1]


def test_request_is_signed_for_its_second_and_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint("http://fruit", Address("fruit", 80), Signer("fruit", REGION), "json", "Target")
    seconds = iter([1.0, 1.9, 2.0, 2.0, 2.0])
    monkeypatch.setattr("graph.wire.endpoint.time.time", lambda: next(seconds))

    def sent(keys: Keys, operation: str = "Query") -> tuple[str, str, str]:
        head = endpoint.request(operation, b"{}", keys).decode()
        date, scope, signature = re.findall(r"x-amz-date: (\w+)|Credential=([^,]+)|Signature=(\w+)", head)
        return date[0], scope[1], signature[2]

    one, other = Keys("one", "secret"), Keys("other", "another")
    found = [sent(one), sent(one), sent(one), sent(other), sent(one, "Scan")]

    assert [date for date, _, _ in found] == ["19700101T000001Z"] * 2 + ["19700101T000002Z"] * 3
    assert [scope.split("/")[0] for _, scope, _ in found] == ["one", "one", "one", "other", "one"]
    assert len({signature for _, _, signature in found}) == 4


async def test_deadline_ends_a_request_and_frees_its_slot(server: Server, wire: WireTransport) -> None:
    server.acts = [wait(asyncio.Event()), say(answer())]
    client, loop = Client(wire, max_in_flight=1), asyncio.get_running_loop()
    began = loop.time()

    with pytest.raises(DeadlineExceeded) as refused:
        await client.send(GET, Meter(deadline=began + 0.2))

    assert loop.time() - began < 1
    assert isinstance(refused.value.__cause__, Unavailable)
    assert await client.send(GET, Meter(deadline=loop.time() + 5)) == {}
    assert server.accepted == 2


async def test_caller_that_is_cancelled_frees_his_slot(server: Server, wire: WireTransport) -> None:
    server.acts = [wait(asyncio.Event()), say(answer())]
    client, meter = Client(wire, max_in_flight=1), Meter()
    gone, waiting, next_ = (asyncio.ensure_future(client.send(GET, meter)) for _ in range(3))
    await server.arrived.acquire()

    gone.cancel()
    waiting.cancel()

    assert await next_ == {}
    assert gone.cancelled()
    assert waiting.cancelled()
    assert meter.requests == [GET, GET]


async def test_text_that_is_none_is_refused(server: Server, wire: WireTransport) -> None:
    with pytest.raises(RequestRefused, match="GetItem holds what JSON cannot carry"):
        await wire("GetItem", GetItem("fruit", SURROGATE).parameters())
    for operation in (
        GetItem("fruit", SURROGATE),
        BatchGetItem("fruit", (SURROGATE,)),
        Query("fruit", None, SURROGATE),
    ):
        with pytest.raises(RequestRefused, match=f"{operation.operation} holds what JSON cannot carry"):
            await Client(wire).send(operation, Meter())

    assert server.requests == []


# --- answers ------------------------------------------------------------------------------------------------------

REASONS: list[dict[str, Any]] = [
    {"Code": "None"},
    {"Code": "ConditionalCheckFailed", "Item": {"id": {"S": "banana"}, "raw": {"B": "aGk="}}, "Message": "no"},
]


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        pytest.param(answer(b"{}", "X-Amz-Crc32: 1"), Unavailable, "checksum", id="damaged"),
        pytest.param(answer(b"{}", "X-Amz-Crc32: x"), Unavailable, "damaged", id="checksum-that-is-no-number"),
        pytest.param(answer(b"{}", "X-Amz-Crc32: 1", status=400), Unavailable, "checksum", id="damaged-error"),
        pytest.param(answer(b"moved", status=307), RequestRefused, "DynamoDB answered 307: moved", id="moved"),
        pytest.param(answer(b"<html>", status=403), RequestRefused, "answered 403: <html>", id="a-proxys-page"),
        pytest.param(failure("Short:http://x", Message="M"), RequestRefused, "answered Short: M", id="with-a-url"),
        pytest.param(
            failure("TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}]),
            Throttled,
            "cancelled the transaction .TransactionConflict.",
            id="conflict",
        ),
        pytest.param(
            failure("TransactionCanceledException", CancellationReasons=[{"Code": "ValidationError", "Message": None}]),
            RequestRefused,
            "cancelled the transaction .ValidationError.",
            id="reason-without-a-message",
        ),
    ],
)
async def test_answer_that_is_an_error_has_its_class(
    server: Server, wire: WireTransport, said: bytes, kind: type[StoreError], message: str
) -> None:
    server.acts = [say(said)]

    with pytest.raises(kind, match=message) as refused:
        await wire("TransactWriteItems", WRITE.parameters())

    assert type(refused.value) is kind


async def test_items_of_failed_conditions_are_dynamodbs_json(server: Server, wire: WireTransport) -> None:
    server.acts = [say(failure("TransactionCanceledException", CancellationReasons=REASONS))]

    with pytest.raises(TransactionCancelled, match="1 conditions do not hold") as refused:
        await wire("TransactWriteItems", WRITE.parameters())

    assert refused.value.items == {1: REASONS[1]["Item"]}


async def test_dead_idle_connection_is_no_try_and_a_dead_new_one_is(server: Server, wire: WireTransport) -> None:
    server.acts = [say(answer()), CLOSE, CLOSE, say(answer(b'{"Item": {}}'))]
    client, meter = Client(wire), Meter()
    await client.send(GET, meter)

    # Over the idle connection, at once over a new one, and after a pause over another.
    assert await client.send(GET, meter) == {"Item": {}}

    assert (len(server.requests), meter.retries, len(meter.requests)) == (4, 1, 3)


def test_each_loop_has_connections_of_its_own(engine: str) -> None:
    with closing(WireTransport(engine, REGION, credentials=KEYS)) as transport:
        for _ in range(3):
            with pytest.raises(StoreError):
                asyncio.run(Client(transport).send(GetItem("no-such-fruit", KEY), Meter()))
    gc.collect()


# --- endpoint -----------------------------------------------------------------------------------------------------


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Leave boto3 nothing to find but keys."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CA_BUNDLE", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")
    return monkeypatch


@pytest.mark.parametrize(
    ("variables", "host", "port"),
    [
        pytest.param({}, "dynamodb.eu-central-1.amazonaws.com", 443, id="the-regions-own"),
        pytest.param({"AWS_REGION": "cn-north-1"}, "dynamodb.cn-north-1.amazonaws.com.cn", 443, id="another-partition"),
        pytest.param(
            {"AWS_REGION": "us-east-1", "AWS_USE_FIPS_ENDPOINT": "true"},
            "dynamodb-fips.us-east-1.amazonaws.com",
            443,
            id="fips",
        ),
        pytest.param({"AWS_ENDPOINT_URL_DYNAMODB": "http://Fruit:8001/"}, "fruit:8001", 8001, id="from-environment"),
        pytest.param({"AWS_ENDPOINT_URL": "https://fruit:443"}, "fruit", 443, id="the-schemes-own-port"),
        pytest.param({"AWS_ENDPOINT_URL": "http://[::1]:8001"}, "[::1]:8001", 8001, id="ipv6"),
    ],
)
def test_endpoint_is_the_one_that_boto3_would_take(
    environment: pytest.MonkeyPatch, variables: dict[str, str], host: str, port: int
) -> None:
    for name, value in variables.items():
        environment.setenv(name, value)

    with closing(BotoTransport(region=None if "AWS_REGION" in variables else REGION)) as boto:
        endpoint = endpoint_of(boto)

    assert endpoint is not None
    assert (endpoint.signer.host, endpoint.address.port) == (host, port)
    assert endpoint.signer.region == variables.get("AWS_REGION", REGION)
    assert (endpoint.address.tls is not None) == endpoint.url.startswith("https:")


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({"HTTPS_PROXY": "http://proxy:3128"}, id="proxy"),
        pytest.param({"AWS_ENDPOINT_URL": "https://fruit/dynamodb"}, id="path"),
        pytest.param({"AWS_ACCOUNT_ID_ENDPOINT_MODE": "required"}, id="an-endpoint-for-each-account"),
    ],
)
def test_where_boto3_alone_knows_the_way_everything_takes_it(
    environment: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        environment.setenv(name, value)

    with closing(BotoTransport(region=REGION)) as boto:
        assert endpoint_of(boto) is None


# --- TLS ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate of its own authority for 127.0.0.1, and one for somebody else."""
    folder = tmp_path_factory.mktemp("tls")
    for name, alternative in (("right", "IP:127.0.0.1"), ("wrong", "DNS:elsewhere.example")):
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        command += ["-days", "2", "-subj", "/CN=fruit", "-addext", f"subjectAltName={alternative}"]
        command += ["-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem"]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except FileNotFoundError:
            pytest.skip("openssl is not on PATH")
    return folder


@pytest.mark.parametrize(
    ("certificate", "bundle", "message"),
    [
        pytest.param("right", "right", None, id="trusted"),
        pytest.param("right", "wrong", "CERTIFICATE_VERIFY_FAILED", id="another-authority"),
        pytest.param("right", None, "CERTIFICATE_VERIFY_FAILED", id="nobody-told"),
        pytest.param("wrong", "wrong", "IP address mismatch", id="another-host"),
    ],
)
async def test_server_must_be_who_it_says_by_the_authorities_that_botocore_trusts(
    environment: pytest.MonkeyPatch, authority: Path, certificate: str, bundle: str | None, message: str | None
) -> None:
    if bundle is not None:
        environment.setenv("AWS_CA_BUNDLE", str(authority / f"{bundle}.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority / f"{certificate}.pem", authority / f"{certificate}.key")
    async with serving(tls) as server:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        url = f"https://127.0.0.1:{server.port}"
        with closing(WireTransport(url, REGION, credentials=KEYS)) as wire:
            if message is None:
                assert await wire("GetItem", GET.parameters()) == await wire("GetItem", GET.parameters()) == {}
                assert server.accepted == 1
            else:
                with pytest.raises(Unavailable, match=message):
                    await wire("GetItem", GET.parameters())
                assert server.requests == []


async def test_static_credentials_are_read_without_a_thread(wire: WireTransport, server: Server) -> None:
    before = threading.active_count()

    await wire("GetItem", GET.parameters())

    assert threading.active_count() == before
