"""AWS Lambda: `server.lambda_stream.handler` takes the batches of a table's stream in the place of our reader.

Set as the function of an event source mapping with ReportBatchItemFailures. TABLEGRAPH_* variables configure it as they
do the server; TABLEGRAPH_SCHEMA is the model's file in the package.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from graph.model import Model
from graph.streams.change import Change, Handler, read_changes
from server.container import Container, open_container
from server.following import handlers_of

logger = logging.getLogger(__name__)

Records = Sequence[Mapping[str, Any]]


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Hand the changes of a batch on, and name the first record that failed, from which Lambda goes on.

    Source: AWS Lambda Developer Guide, "Using AWS Lambda with Amazon DynamoDB", reporting batch item failures.
    """
    container, follower = _made()
    return container.runner.run(
        follower.follow(event.get("Records") or (), str(getattr(context, "aws_request_id", "")))
    )


@dataclass(frozen=True, slots=True)
class Follower:
    """Hands batches to the handlers."""

    model: Model
    handlers: Mapping[str, Handler]

    async def follow(self, records: Records, invocation: str) -> dict[str, Any]:
        """Hand records on: all at once, and if that fails one after the other up to the first that does."""
        try:
            await self._hand(records, invocation)
        except Exception:
            logger.exception("a batch of %d records failed, and is tried one by one", len(records))
        else:
            return {"batchItemFailures": []}
        for record in records:
            try:
                await self._hand([record], invocation)
            except Exception:
                number = record["dynamodb"]["SequenceNumber"]
                logger.exception("the record %s failed", number)
                return {"batchItemFailures": [{"itemIdentifier": number}]}
        return {"batchItemFailures": []}

    async def _hand(self, records: Records, invocation: str) -> None:
        changes: list[Change] = []
        for record in records:
            # arn:aws:dynamodb:<region>:<account>:table/<name>/stream/<label>
            table = record["eventSourceARN"].split("/")[1]
            # Lambda does not tell the shard; what it gives to one invocation is of one.
            changes += read_changes(self.model, table, [record], f"lambda-{invocation}")
        if changes:
            for handle in self.handlers.values():
                await handle(changes)


@cache
def _made() -> tuple[Container, Follower]:
    container = open_container()
    handlers = handlers_of(container.model, container.graph, container.settings, None)
    return container, Follower(container.model, handlers)
