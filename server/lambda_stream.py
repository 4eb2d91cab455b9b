"""AWS Lambda: `server.lambda_stream.handler` takes the batches of a table's stream in the place of our reader.

Set as the function of an event source mapping with ReportBatchItemFailures. TABLEGRAPH_* variables configure it as they
do the server; TABLEGRAPH_SCHEMA is the model's file in the package.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from graph.model import Model
from graph.streams.change import Change, Handler, read_changes
from server.following import handlers_of
from server.settings import load_settings
from server.tables import graph_of, model_of, region
from server.transports import open_transport

logger = logging.getLogger(__name__)

Records = Sequence[Mapping[str, Any]]


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Hand the changes of a batch on, and name the first record that failed, from which Lambda goes on.

    Source: AWS Lambda Developer Guide, "Using AWS Lambda with Amazon DynamoDB", reporting batch item failures.
    """
    follower, runner = _made()
    return runner.run(follower.follow(event.get("Records") or (), str(getattr(context, "aws_request_id", ""))))


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
def _made() -> tuple[Follower, asyncio.Runner]:
    """Make what all invocations share: connections belong to an event loop, so there is one for all."""
    settings = load_settings(os.environ)
    model = model_of(settings)
    runner = asyncio.Runner()
    graph = graph_of(model, open_transport(settings, region(settings)), settings)
    return Follower(model, handlers_of(model, graph, settings, None)), runner
