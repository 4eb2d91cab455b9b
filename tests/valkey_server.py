"""A Valkey or Redis server of the tests' own, reached by a socket in a folder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SERVER = shutil.which("valkey-server") or shutil.which("redis-server")


class Server:
    """A server of its own, which may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "s"
        self.url = f"unix://{self._socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        assert SERVER is not None
        options = ["--port", "0", "--unixsocket", str(self._socket), "--save", "", "--dir", str(self._socket.parent)]
        self._process = subprocess.Popen([SERVER, *options], stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if b"eady to accept connections" in line:
                return
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        """Kill it, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
