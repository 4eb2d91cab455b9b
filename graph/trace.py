"""When each request of an operation was sent and answered, and what it gave: for who builds on the API to look at."""

from __future__ import annotations

from collections.abc import Coroutine
from time import perf_counter
from typing import Any

from graph.client import capacity_units_in, items_in
from graph.errors import StoreError
from graph.requests import Request

Response = dict[str, Any]


class Trace:
    """The requests of one operation."""

    def __init__(self) -> None:
        """Begin now."""
        # Not by the event loop's clock: it stands still while the loop is at work.
        self._began = perf_counter()
        self._calls: list[dict[str, Any]] = []

    async def time(self, request: Request, answer: Coroutine[Any, Any, Response]) -> Response:
        """Wait for the answer to a request, and note how long it took, with the waits and all tries. Raises: as it."""
        call: dict[str, Any] = {"operation": request.operation, "start": self._ms()}
        for name in ("table", "index"):
            if value := getattr(request, name, None):
                call[name] = value
        self._calls.append(call)
        try:
            response = await answer
        except StoreError as error:
            call["error"] = error.code
            raise
        else:
            call["units"] = capacity_units_in(response)
            call["items"] = items_in(response)
            return response
        finally:
            call["ms"] = round(self._ms() - call["start"], 2)

    def told(self) -> list[dict[str, Any]]:
        """List the requests that have ended, in the order in which they began; times are in milliseconds."""
        return [call for call in self._calls if "ms" in call]

    def _ms(self) -> float:
        return round((perf_counter() - self._began) * 1000, 2)
