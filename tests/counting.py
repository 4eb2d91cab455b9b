"""A little API with subscriptions, and a real server for it, in this process or, run as a program, in its own."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from graph.errors import SubscriberTooSlow
from resolvers.operation import Events, Request, Response
from server.app import Application, build_app
from server.endpoint import Api
from server.process import GracefulServer, serve
from server.settings import Settings, load_settings

REFUSED = {"message": "this is not GraphQL", "extensions": {"code": "GRAPHQL_PARSE_FAILED"}}
TOO_SLOW = {"message": "too slow", "extensions": {"code": "SUBSCRIBER_TOO_SLOW"}}


class CountingApi:
    """Knows an operation by its first field."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.under_way = 0
        """Operations that were begun and not ended."""
        self.given = 0
        """Events that were taken from subscriptions."""
        self.changed = asyncio.Event()
        """Set and cleared whenever one of these changes."""
        self.released = asyncio.Event()
        """Lets `slow` answer."""

    async def ready(self) -> None:
        """Nothing to wait for."""

    async def execute(self, request: Request) -> Response:
        answer = await self.open(request)
        if isinstance(answer, Response):
            return answer
        await answer.aclose()
        return Response({"errors": [REFUSED]}, "refused")

    def goes_on(self, request: Request) -> bool:
        return "subscription" in request.query

    async def open(self, request: Request) -> Response | Events:
        self.requests.append(request)
        found = re.match(r"\s*(query|mutation|subscription)?[^{]*{\s*(\w+)", request.query)
        kind, field = found.groups() if found else ("", "")
        if kind == "subscription":
            return self._events(field, dict(request.variables or {}))
        if kind == "mutation" and not request.mutations_allowed:
            return Response({"errors": [REFUSED]}, "mutation_over_get")
        match field:
            case "hello":
                return Response({"data": {"hello": "world"}}, "executed")
            case "modules":
                return Response({"data": {"modules": sorted(sys.modules)}}, "executed")
            case "slow":
                self._note(under_way=1)
                try:
                    await self.released.wait()
                finally:
                    self._note(under_way=-1)
                return Response({"data": {"slow": "done"}}, "executed")
            case "breaks":
                raise ValueError("nobody's business")
        return Response({"errors": [REFUSED]}, "refused")

    async def _events(self, field: str, variables: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        self._note(under_way=1)
        try:
            for number in range(variables.get("to", 3)):
                self._note(given=1)
                yield {"data": {field: number}}
            if field == "fails":
                raise SubscriberTooSlow("too slow")
            if field == "breaks":
                raise ValueError("nobody's business")
            if field == "never":
                await asyncio.Event().wait()
        finally:
            self._note(under_way=-1)

    def _note(self, *, under_way: int = 0, given: int = 0) -> None:
        self.under_way += under_way
        self.given += given
        self.changed.set()
        self.changed.clear()

    async def until(self, **state: int) -> None:
        """Wait until counters have these values."""
        while any(getattr(self, name) != value for name, value in state.items()):
            await self.changed.wait()


class Running:
    """A server in this event loop."""

    def __init__(self, app: Application, settings: Settings, listener: socket.socket) -> None:
        self.server = GracefulServer(app, settings)
        self.port: int = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/graphql"
        self.socket_url = f"ws://127.0.0.1:{self.port}/graphql"
        self.task = asyncio.create_task(self.server.serve([listener]))

    async def stop(self) -> None:
        """Have it end as SIGTERM would, and wait for that."""
        self.server.app.state.shutting_down = self.server.should_exit = True
        await self.task


@asynccontextmanager
async def running(api: Api, port: int = 0, **settings: Any) -> AsyncIterator[Running]:
    """Serve the API on a port, a free one unless told."""
    chosen = Settings(**settings)
    # Connections are taken from here on, whenever the server begins to accept them.
    with socket.create_server(("127.0.0.1", port)) as listener:
        server = Running(build_app(api, chosen), chosen, listener)
        try:
            async with asyncio.timeout(30):
                yield server
        finally:
            if isinstance(api, CountingApi):
                api.released.set()
            await server.stop()


def main() -> int:
    """Serve until a signal comes."""
    settings = load_settings(os.environ, {"log_format": "json"})
    return serve(build_app(CountingApi(), settings), settings)


if __name__ == "__main__":
    sys.exit(main())
