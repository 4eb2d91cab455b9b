"""The application around the endpoint: pages, health, logs, errors, and the process that serves it.

Run as a program it serves an API whose operations wait for a line on standard input, for the tests of the process.
"""

import asyncio
import html
import json
import logging
import os
import re
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import Message

from graph.client import Meter
from graph.errors import TableMissing
from graph.observation import observer
from graph.requests import GetItem, Query
from resolvers.operation import Events, Request, Response
from server.app import build_app
from server.logs import ROOMS, JsonFormatter, TextFormatter, configure_logging
from server.process import serve
from server.settings import Settings, load_settings

HELLO = {"query": "{ hello }"}
BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


async def hello(_: Request) -> Response:
    return Response({"data": {"hello": "world"}}, "executed")


async def is_ready() -> None:
    """The table can be read."""


@dataclass
class ScriptedApi:
    """An API whose two operations are the functions it is given."""

    executing: Callable[[Request], Awaitable[Response]] = hello
    reading: Callable[[], Awaitable[None]] = is_ready

    async def execute(self, request: Request) -> Response:
        return await self.executing(request)

    def goes_on(self, request: Request) -> bool:
        return "subscription" in request.query

    async def open(self, request: Request) -> Response | Events:
        return await self.execute(request)

    async def ready(self) -> None:
        await self.reading()


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """A built GraphiQL of two files."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "index-BiMJo_-2.js").write_text("start()")
    (tmp_path / "index.html").write_text('<script type="application/json">__TABLEGRAPH_CONFIG__</script>')
    return tmp_path


@asynccontextmanager
async def client_of(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        yield client


async def test_the_idempotency_key_of_the_header_reaches_the_operation() -> None:
    asked: list[Request] = []

    async def execute(request: Request) -> Response:
        asked.append(request)
        return await hello(request)

    async with client_of(build_app(ScriptedApi(execute), Settings())) as client:
        await client.post("/graphql", json=HELLO, headers={"Idempotency-Key": "one"})
        await client.post("/graphql", json=HELLO)

    assert [request.idempotency_key for request in asked] == ["one", None]


# Pages


async def test_a_browser_gets_graphiql_with_its_configuration(dist: Path) -> None:
    tabs = [{"title": "Close", "query": "{ hello } # </script>"}]

    async with client_of(build_app(ScriptedApi(), Settings(title="Fleet"), tabs, ide_dist=dist)) as client:
        page = await client.get("/graphql", headers=BROWSER)

    config = page.text.removeprefix('<script type="application/json">').removesuffix("</script>")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<" not in config
    assert json.loads(config) == {
        "endpoint": "/graphql",
        "title": "Fleet",
        "tabs": tabs,
        "costHeader": "Tablegraph-Cost",
        "outline": None,
        "prices": {
            "read": 1.25e-7,
            "write": 6.25e-7,
            "source": "at list price: us-east-1, standard class",
            "asOf": "2026-11",
        },
    }


async def test_the_page_runs_nothing_but_its_own_scripts(dist: Path) -> None:
    async with client_of(build_app(ScriptedApi(), Settings(), ide_dist=dist)) as client:
        page = await client.get("/graphql", headers=BROWSER)

    assert page.headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self'; style-src 'self' "
        "'unsafe-inline'; font-src 'self' data:; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "same-origin"
    assert page.headers["cache-control"] == "no-cache"
    assert page.headers["vary"] == "Accept"


@pytest.mark.parametrize(
    ("path", "caching"),
    [
        pytest.param("assets/index-BiMJo_-2.js", "public, max-age=31536000, immutable", id="hashed-name"),
        pytest.param("index.html", "no-cache", id="plain-name"),
    ],
)
async def test_only_files_with_a_hash_in_their_name_are_kept_for_ever(dist: Path, path: str, caching: str) -> None:
    async with client_of(build_app(ScriptedApi(), Settings(), ide_dist=dist)) as client:
        file = await client.get(f"/graphql-ide/{path}")

    assert file.status_code == 200
    assert file.headers["cache-control"] == caching
    assert file.headers["x-content-type-options"] == "nosniff"


async def test_an_unbuilt_page_says_how_to_build_it_and_its_curl_command_works(tmp_path: Path) -> None:
    async with client_of(build_app(ScriptedApi(), Settings(port=4321), ide_dist=tmp_path / "none")) as client:
        page = await client.get("/graphql", headers=BROWSER)
        command = shlex.split(html.unescape(re.findall("<pre>(.*)</pre>", page.text)[0]))
        answer = await client.post(
            httpx.URL(command[1]).path, headers=dict([command[3].split(": ")]), content=command[5]
        )

    assert "<code>make run</code>" in page.text
    assert [command[0], command[1], command[2], command[4]] == ["curl", "http://127.0.0.1:4321/graphql", "-H", "-d"]
    assert answer.json() == {"data": {"hello": "world"}}


async def test_without_graphiql_a_browser_gets_json_and_no_files(dist: Path) -> None:
    async with client_of(build_app(ScriptedApi(), Settings(graphiql=False), ide_dist=dist)) as client:
        page = await client.get("/graphql", headers=BROWSER)
        file = await client.get("/graphql-ide/index.html")

    assert (page.status_code, page.headers["content-type"]) == (400, "application/json; charset=utf-8")
    assert file.status_code == 404


async def test_the_root_leads_to_the_endpoint() -> None:
    async with client_of(build_app(ScriptedApi(), Settings())) as client:
        answer = await client.get("/")

    assert (answer.status_code, answer.headers["location"]) == (307, "/graphql")


# Health


async def table_missing() -> None:
    raise TableMissing("there is no table fleet")


async def broken() -> None:
    raise RuntimeError("secret of the inside")


@pytest.mark.parametrize(
    ("reading", "status", "body"),
    [
        pytest.param(is_ready, 200, {"status": "ok"}, id="table-readable"),
        pytest.param(
            table_missing, 503, {"status": "unavailable", "reason": "there is no table fleet"}, id="table-missing"
        ),
        pytest.param(broken, 503, {"status": "unavailable", "reason": "Unexpected error; id probe"}, id="unexpected"),
    ],
)
async def test_the_server_is_ready_when_the_table_can_be_read(
    reading: Callable[[], Awaitable[None]], status: int, body: dict[str, str]
) -> None:
    async with client_of(build_app(ScriptedApi(reading=reading), Settings())) as client:
        answer = await client.get("/readyz", headers={"x-request-id": "probe"})

    assert answer.status_code == status
    assert answer.json() == body


async def test_the_server_is_alive_whatever_the_table_does() -> None:
    async with client_of(build_app(ScriptedApi(reading=table_missing), Settings())) as client:
        answer = await client.get("/healthz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_server_past_its_lifespan_is_not_ready() -> None:
    app = build_app(ScriptedApi(), Settings())
    async with app.router.lifespan_context(app), client_of(app) as client:
        before = await client.get("/readyz")

    async with client_of(app) as client:
        after = await client.get("/readyz")

    assert (before.status_code, after.status_code) == (200, 503)
    assert after.json()["reason"] == "The server is shutting down."


# Logs and errors


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Callable[[], list[dict[str, Any]]]:
    """The lines that the server has logged as JSON."""
    caplog.set_level(logging.INFO, "server")
    caplog.handler.setFormatter(JsonFormatter())
    return lambda: [json.loads(line) for line in caplog.text.splitlines()]


async def test_a_request_is_one_line_with_what_is_known_of_it(log: Callable[[], list[dict[str, Any]]]) -> None:
    async def costly(request: Request) -> Response:
        observing = observer.get()
        assert observing is not None
        observing.asked("query", "Hello", request.query)
        reads: list[Any] = [Query("t", name, (("a", "1"),)) for name in ("by-b", "by-a", "by-b")]
        reads.append(GetItem("t", (("pk", "1"),)))
        meter = Meter(report_capacity=True, requests=reads, capacity_units=1.5, items_read=7, retries=2)
        observing.begins(meter).ends(meter)
        failed = {"message": "no", "extensions": {"code": "READ_BUDGET"}}
        return Response({"data": None, "errors": [failed, failed]}, "executed")

    async with client_of(build_app(ScriptedApi(costly), Settings())) as client:
        await client.post("/graphql", json=HELLO | {"operationName": "Hello"}, headers={"x-request-id": "a-1"})

    (line,) = log()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line.pop("duration_ms") > 0
    assert line == {
        "level": "info",
        "message": "POST /graphql 200",
        "logger": "server.logs",
        "request_id": "a-1",
        "method": "POST",
        "path": "/graphql",
        "status": 200,
        "type": "query",
        "operation": "Hello",
        "errors": ["READ_BUDGET"],
        "requests": 4,
        "items_read": 7,
        "indexes": ["by-a", "by-b"],
        "capacity_units": 1.5,
        "retries": 2,
    }


async def test_lines_written_inside_a_request_have_its_id(log: Callable[[], list[dict[str, Any]]]) -> None:
    async def talkative(request: Request) -> Response:
        logging.getLogger("server.somewhere").info("inside")
        return await hello(request)

    async with client_of(build_app(ScriptedApi(talkative), Settings())) as client:
        answers = [await client.post("/graphql", json=HELLO) for _ in range(2)]

    logging.getLogger("server.somewhere").info("outside")
    ids = {line["request_id"] for line in log() if line["message"] == "inside"}
    assert "request_id" not in log()[-1]
    assert ids == {answer.headers["x-request-id"] for answer in answers}
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        pytest.param("req-7f.3:A_b/c+d=@", True, id="sane"),
        pytest.param("a" * 128, True, id="longest"),
        pytest.param("a" * 129, False, id="too-long"),
        pytest.param("two words", False, id="space"),
        pytest.param("", False, id="empty"),
    ],
)
async def test_a_sane_request_id_is_kept_and_another_replaced(sent: str, kept: bool) -> None:
    async with client_of(build_app(ScriptedApi(), Settings())) as client:
        answer = await client.get("/healthz", headers={"x-request-id": sent})

    returned = answer.headers["x-request-id"]
    assert returned == sent if kept else re.fullmatch("[0-9a-f]{16}", returned)


async def raising(_: Request) -> Response:
    raise RuntimeError("secret of the inside")


async def unencodable(_: Request) -> Response:
    return Response({"data": {"hello": object()}}, "executed")


@pytest.mark.parametrize("executing", [raising, unencodable])
async def test_an_unexpected_error_is_logged_once_and_masked(
    executing: Callable[[Request], Awaitable[Response]], log: Callable[[], list[dict[str, Any]]]
) -> None:
    accept = {"accept": "application/graphql-response+json"}
    async with client_of(build_app(ScriptedApi(executing), Settings())) as client:
        answer = await client.post("/graphql", json=HELLO, headers=accept)

    failure, line = log()
    message = f"Unexpected error; id {answer.headers['x-request-id']}"
    assert (answer.status_code, line["status"], line["level"]) == (500, 500, "error")
    assert answer.headers["content-type"] == "application/graphql-response+json; charset=utf-8"
    assert answer.json() == {"errors": [{"message": message, "extensions": {"code": "INTERNAL"}}]}
    assert failure["request_id"] == line["request_id"] == answer.headers["x-request-id"]
    assert "Traceback" in failure["exception"]


def test_text_lines_cannot_be_forged_by_a_client() -> None:
    record = logging.LogRecord("server", logging.INFO, "", 0, "GET %s 200", ("/a\n10:00:00 info\x1b[2J",), None)

    line = TextFormatter().format(record)

    assert line.endswith(r"GET /a\x0a10:00:00 info\x1b[2J 200")


def test_a_line_comes_out_whatever_it_holds() -> None:
    record = logging.LogRecord("server", logging.INFO, "", 0, "path \ud800", (), None)
    record.fields = {"number": 2**70, "thing": {1, 2}}

    line = json.loads(JsonFormatter().format(record))

    assert (line["message"], line["number"], line["thing"]) == ("path \ud800", 2**70, "{1, 2}")


@pytest.fixture
def restored_logging() -> Iterator[None]:
    """Logging after the test as before."""
    root = logging.getLogger()
    handlers, level, rooms = root.handlers[:], root.level, {room: logging.getLogger(room).level for room in ROOMS}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for room, room_level in rooms.items():
        logging.getLogger(room).setLevel(room_level)


@pytest.mark.parametrize(
    ("form", "terminal", "as_json"),
    [("auto", False, True), ("auto", True, False), ("json", True, True), ("text", False, False)],
)
def test_people_read_text_and_programs_json(form: Any, terminal: bool, as_json: bool, restored_logging: None) -> None:
    class Stream(StringIO):
        def isatty(self) -> bool:
            return terminal

    stream = Stream()
    configure_logging("text", "error", stream)
    configure_logging(form, "info", stream)
    logging.getLogger("server").info("started")
    logging.getLogger("botocore").info("authorization: secret")

    (line,) = stream.getvalue().splitlines()
    assert line.startswith("{") is as_json
    assert "started" in line


# Disconnects


async def test_a_client_that_leaves_cancels_the_execution(log: Callable[[], list[dict[str, Any]]]) -> None:
    executing, cancelled = asyncio.Event(), asyncio.Event()
    incoming = [{"type": "http.request", "body": b'{"query": "{ hello }"}', "more_body": False}]

    async def endless(_: Request) -> Response:
        executing.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    async def receive() -> Message:
        if incoming:
            return incoming.pop()
        await executing.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        raise AssertionError(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/graphql", "query_string": b"", "headers": headers}
    async with asyncio.timeout(10):
        await build_app(ScriptedApi(endless), Settings())(scope, receive, send)

    assert cancelled.is_set()
    assert [(line["level"], line["status"]) for line in log()] == [("info", 499)]


async def test_an_operation_that_is_done_soon_has_nobody_asking_after_its_client() -> None:
    asked = 0
    sent: list[Message] = []

    async def receive() -> Message:
        nonlocal asked
        asked += 1
        return {"type": "http.request", "body": b'{"query": "{ hello }"}', "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/graphql", "query_string": b"", "headers": headers}
    await build_app(ScriptedApi(), Settings())(scope, receive, send)
    await asyncio.sleep(0)

    assert asked == 1
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]


# The process


class Process:
    """A server run as a program: this file, unless another is named."""

    def __init__(self, running: asyncio.subprocess.Process) -> None:
        self.running = running
        self.url = ""
        self.metrics = ""
        """Where it has its metrics."""
        self.worker = 0
        """Which worker was the first to serve; 0 where there are none."""

    async def logged(self, message: str) -> dict[str, Any]:
        """Wait for a line of the log."""
        assert self.running.stderr
        async for raw in self.running.stderr:
            line: dict[str, Any] = json.loads(raw)
            if line["message"].startswith("metrics at "):
                self.metrics = line["message"].removeprefix("metrics at ")
            if line["message"].startswith(message):
                return line
        raise AssertionError(f"the process ended without logging {message!r}")

    async def lines(self) -> AsyncIterator[bytes]:
        """Give the lines of the log until the process ends."""
        assert self.running.stderr
        async for raw in self.running.stderr:
            yield raw

    async def said(self, word: str) -> None:
        """Wait for a line on standard output."""
        assert self.running.stdout
        assert (await self.running.stdout.readline()).decode().strip() == word

    def release(self) -> None:
        """Let what waits in the process go on."""
        assert self.running.stdin
        self.running.stdin.write(b"go\n")


@asynccontextmanager
async def process(*command: str, **environ: str) -> AsyncIterator[Process]:
    """Run Python with these arguments, this file unless told, until it serves, and kill it at the end."""
    running = await asyncio.create_subprocess_exec(
        sys.executable,
        *(command or (__file__,)),
        env=os.environ | {"PYTHONPATH": os.getcwd(), "TABLEGRAPH_PORT": "0"} | environ,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    started = Process(running)
    try:
        async with asyncio.timeout(30):
            line = await started.logged("GraphQL at ")
            started.url, started.worker = line["message"].removeprefix("GraphQL at "), line.get("worker", 0)
            yield started
    finally:
        if running.returncode is None:
            running.kill()
        await running.communicate()


async def test_sigterm_lets_running_requests_finish_and_exits_0() -> None:
    async with process() as server, httpx.AsyncClient() as client:
        request = asyncio.create_task(client.post(server.url, json={"query": "wait for a line"}))
        await server.said("executing")
        server.running.send_signal(signal.SIGTERM)
        shutdown = await server.logged("shutting down")
        server.release()
        answer = await request
        code = await server.running.wait()

    assert shutdown["message"] == "shutting down; requests under way: 1"
    assert (answer.status_code, answer.json()) == (200, {"data": {"line": "go\n"}})
    assert code == 0


async def test_a_request_that_outlasts_the_grace_period_is_told_so() -> None:
    async with process(TABLEGRAPH_GRACEFUL_SHUTDOWN_SECS="0") as server, httpx.AsyncClient() as client:
        request = asyncio.create_task(client.post(server.url, json={"query": "wait for ever"}))
        await server.said("executing")
        server.running.send_signal(signal.SIGTERM)
        answer = await request
        code = await server.running.wait()

    assert answer.status_code == 503
    assert answer.json()["errors"][0]["extensions"] == {"code": "SHUTTING_DOWN"}
    assert code == 0


async def test_a_server_that_has_its_signal_is_not_ready() -> None:
    async with process() as server, httpx.AsyncClient() as client:
        probe = asyncio.create_task(client.get(server.url.replace("/graphql", "/readyz")))
        await server.said("reading")
        server.running.send_signal(signal.SIGTERM)
        await server.logged("shutting down")
        server.release()
        answer = await probe

    assert (answer.status_code, answer.json()["reason"]) == (503, "The server is shutting down.")


async def test_a_closed_connection_cancels_the_execution() -> None:
    async with process() as server:
        url = httpx.URL(server.url)
        _, writer = await asyncio.open_connection(url.host, url.port)
        head = ("POST /graphql HTTP/1.1", "Host: x", "Content-Type: application/json", "Content-Length: 26", "", "")
        writer.write("\r\n".join(head).encode() + b'{"query": "wait for ever"}')
        await server.said("executing")
        writer.close()
        await server.said("cancelled")
        line = await server.logged("POST /graphql")

    assert line["status"] == 499


async def test_an_interrupted_server_exits_as_shells_expect() -> None:
    async with process() as server:
        server.running.send_signal(signal.SIGINT)
        code = await server.running.wait()

    assert code == 130


async def test_no_header_tells_which_server_it_is() -> None:
    async with process() as server, httpx.AsyncClient() as client:
        answer = await client.get(server.url.replace("/graphql", "/healthz"))

    assert "server" not in answer.headers


def test_a_port_in_use_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code = serve(build_app(ScriptedApi(), Settings()), Settings(port=port))

    assert code == 1
    assert capsys.readouterr().err == (
        f"Cannot listen on 127.0.0.1:{port}: the port is in use; "
        "choose another with --port or TABLEGRAPH_PORT, --host or TABLEGRAPH_HOST.\n"
    )


def say(word: str) -> None:
    os.write(1, f"{word}\n".encode())


def main() -> int:
    """Serve until a signal comes; operations say what they do on standard output and wait on standard input."""

    async def waiting(request: Request) -> Response:
        if request.query == "which process":
            return Response({"data": {"pid": os.getpid()}}, "executed")
        say("executing")
        if request.query == "wait a moment":
            await asyncio.sleep(0.3)
            return await hello(request)
        if request.query == "wait for a line":
            return Response({"data": {"line": await asyncio.to_thread(sys.stdin.readline)}}, "executed")
        try:
            await asyncio.Event().wait()
        finally:
            say("cancelled")
        raise AssertionError

    async def reading() -> None:
        say("reading")
        await asyncio.to_thread(sys.stdin.readline)

    settings = load_settings(os.environ, {"log_format": "json"})
    return serve(build_app(ScriptedApi(waiting, reading), settings), settings)


if __name__ == "__main__":
    sys.exit(main())
