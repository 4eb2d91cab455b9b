"""The local engine: finds the Dynoxide binary, runs it on the loopback interface and starts it again when it dies."""

import asyncio
import contextlib
import logging
import os
import shutil
import socket
import sys
import tempfile
from asyncio.subprocess import DEVNULL, STDOUT, Process
from pathlib import Path
from typing import Self

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
FOLDER = Path(__file__).parent
PACKAGED = FOLDER / "node_modules/@dynoxide/linux-x64/dynoxide"

START_SECS = 30.0
STOP_SECS = 5.0
POLL_SECS = 0.005
BACKOFF_SECS = 0.1
MAX_FAILED_STARTS = 4
LAST_WORDS_BYTES = 2000

# The kernel kills the engine when the thread that started it ends, by kill -9 too. A preexec_fn could ask for that only
# by running Python between fork and exec of a process with threads, which can deadlock; a fresh interpreter that asks
# and then becomes the engine cannot. The parent may be gone before it asks: then nobody would kill the engine.
LEASH = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


class EngineMissing(Exception):
    """Raised when no Dynoxide binary is found; the message says where it was looked for and how to get one."""


class EngineFailed(Exception):
    """Raised when the engine cannot be started, or dies again and again before it answers."""


def find_engine() -> Path:
    """Find the Dynoxide binary: what TABLEGRAPH_ENGINE names, else dynoxide on PATH, else the one that npm installed.

    Raises: EngineMissing if none of them is an executable file.
    """
    named = os.environ.get("TABLEGRAPH_ENGINE")
    for candidate in [named] if named else ["dynoxide", str(PACKAGED)]:
        if found := shutil.which(candidate):
            return Path(found).absolute()
    looked_at = (
        f"TABLEGRAPH_ENGINE={named}" if named else f"TABLEGRAPH_ENGINE (not set), PATH (no dynoxide), {PACKAGED}"
    )
    raise EngineMissing(
        "Expected an executable Dynoxide, the local engine that speaks DynamoDB's API.\n"
        f"  looked at:           {looked_at}\n"
        f"  on Linux x86-64:     (cd {FOLDER} && npm ci)    # Node.js 20 or newer\n"
        "  from elsewhere:      export TABLEGRAPH_ENGINE=/path/to/dynoxide\n"
        "  or with no engine:   export AWS_ENDPOINT_URL_DYNAMODB=http://host:port"
    )


class Engine:
    """One Dynoxide process for the length of an `async with`, in memory or in one file, restarted when it dies.

    Raises: EngineMissing and EngineFailed, when it is entered.
    """

    def __init__(self, *, port: int | None = None, db_path: Path | None = None) -> None:
        self._wanted_port = port or 0
        self._db_path = db_path
        self.port = 0
        self.pid: int | None = None

    @property
    def endpoint_url(self) -> str:
        """The URL that a DynamoDB client takes as its endpoint."""
        return f"http://{HOST}:{self.port}"

    async def __aenter__(self) -> Self:
        self.port = _free_port(self._wanted_port)
        command = self._command()
        self._answered = asyncio.Event()
        self._supervisor = asyncio.create_task(self._supervise(command))
        answered = asyncio.create_task(self._answered.wait())
        try:
            await asyncio.wait((answered, self._supervisor), timeout=START_SECS, return_when=asyncio.FIRST_COMPLETED)
            if self._supervisor.done():
                await self._supervisor
            if not answered.done():
                raise EngineFailed(f"Expected the engine to answer at {self.endpoint_url} within {START_SECS:.0f} s.")
        except BaseException:
            await self.__aexit__()
            raise
        finally:
            answered.cancel()
        # From here on nobody may be waiting for it.
        self._supervisor.add_done_callback(_log_failure)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._supervisor.cancel()
        await asyncio.gather(self._supervisor, return_exceptions=True)

    async def wait(self) -> None:
        """Wait for as long as the engine is kept alive.

        Raises: EngineFailed once it is given up.
        """
        await asyncio.shield(self._supervisor)

    def _command(self) -> list[str]:
        command = [str(find_engine()), "serve", "--host", HOST, "--port", str(self.port)]
        if self._db_path is not None:
            # The engine does not make the folder.
            self._db_path.parent.mkdir(parents=True, exist_ok=True)
            command += ["--db-path", str(self._db_path)]
        if sys.platform == "linux":
            return [sys.executable, "-I", "-S", "-c", LEASH, str(os.getpid()), *command]
        return command

    async def _supervise(self, command: list[str]) -> None:
        failed_starts = 0
        while True:
            death = await self._live(command)
            failed_starts = 0 if self._answered.is_set() else failed_starts + 1
            if failed_starts == MAX_FAILED_STARTS:
                raise EngineFailed(f"Expected the engine to answer, but it died {failed_starts} times at once: {death}")
            log.warning("starting the engine again at %s: %s", self.endpoint_url, death)
            await asyncio.sleep(BACKOFF_SECS * 2**failed_starts)
            # Whoever took the port meanwhile would be mistaken for the engine.
            _free_port(self.port)

    async def _live(self, command: list[str]) -> str:
        """Run the engine until it dies and say how it died; `_answered` then tells whether it ever answered."""
        self._answered.clear()
        with tempfile.TemporaryFile() as output:
            # In a session of its own it gets no Ctrl-C: it has to outlive the requests that the server still finishes.
            process = await asyncio.create_subprocess_exec(
                *command, stdin=DEVNULL, stdout=output, stderr=STDOUT, start_new_session=True
            )
            self.pid = process.pid
            poll = asyncio.create_task(self._poll())
            try:
                code = await process.wait()
            finally:
                poll.cancel()
                await _stop(process)
            output.seek(0)
            last_words = output.read()[-LAST_WORDS_BYTES:].decode(errors="replace").strip()
            return f"exit code {code}, last output: {last_words or '(none)'}"

    async def _poll(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(HOST, self.port)
                writer.close()
                self._answered.set()
                return
            await asyncio.sleep(POLL_SECS)


def _log_failure(supervisor: asyncio.Task[None]) -> None:
    if not supervisor.cancelled() and (error := supervisor.exception()):
        log.error("the engine is given up: %s", error)


def _free_port(wanted: int) -> int:
    try:
        with socket.create_server((HOST, wanted)) as server:
            port: int = server.getsockname()[1]
            return port
    except OSError as error:
        raise EngineFailed(
            f"Expected port {wanted} of {HOST} to be free for the engine: {error.strerror}. "
            f"Choose another, or see who has it: ss -ltnp 'sport = :{wanted}'"
        ) from error


async def _stop(process: Process) -> None:
    if process.returncode is None:
        # It may die by itself in this very moment.
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECS)
        except TimeoutError:
            process.kill()
            await process.wait()
