"""AWS Lambda: `server.lambda_http.handler` answers API Gateway's REST and HTTP APIs, and function URLs.

TABLEGRAPH_* variables configure it as they do the server; TABLEGRAPH_SCHEMA is the model's file in the package.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from mangum import Mangum
from mangum.types import ASGI, LambdaContext
from starlette.types import ASGIApp, Receive, Scope, Send

from resolvers.operation import Request, Response
from resolvers.schema import Api
from server import view
from server.api import api_of
from server.app import build_app
from server.container import Container, open_container
from server.negotiation import GRAPHQL_RESPONSE, MULTIPART
from server.production import check_production

logger = logging.getLogger(__name__)

DEFAULTS = {"TABLEGRAPH_GRAPHIQL": "false"}
MAX_ANSWER_BYTES = 6 * 1024 * 1024
"""Source: AWS Lambda Developer Guide, "Lambda quotas", invocation payload. It is the event's JSON that counts."""
SURELY_FITS = 1_000_000
"""Characters of a body, each of which is at most six bytes of the event's JSON."""
TEXTS = ["text/", "application/json", "application/javascript", GRAPHQL_RESPONSE, MULTIPART]
"""What is handed over as it is; anything else, and what is compressed, in base64."""


def handler(event: dict[str, Any], context: LambdaContext) -> Mapping[str, Any]:
    """Answer one HTTP request. Raises: RuntimeError when the event is none."""
    _, mangum = _made()
    answer = mangum(event, context)
    return answer if _fits(answer) else _too_large()


class AnswersOnce:
    """The API for a way that brings one answer: a live query is asked once, `@defer` and `@stream` change nothing."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.ready = api.ready

    async def execute(self, request: Request) -> Response:
        """Run one operation; one that goes on, a subscription, is refused."""
        response = await self._api.execute(request._replace(incremental=False))
        for error in response.body.get("errors", ()) if response.outcome == "refused" else ():
            if error.get("extensions", {}).get("code") == "SUBSCRIPTION_TRANSPORT":
                error["message"] = (
                    "a subscription goes on, and AWS Lambda answers once: send it to a server, which `tablegraph "
                    "serve` starts, or ask a query again"
                )
        return response

    open = execute

    def goes_on(self, _: Request) -> bool:
        """Say that nothing does."""
        return False


def _fronted(app: ASGIApp) -> ASGI:
    """Put right what the services in front of a function make of a request."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        event, headers = scope["aws.event"], dict(scope["headers"])
        is_rest_api = "version" not in event and "resource" in event
        if is_rest_api:
            # It passes bytes on only where it is told to, and compresses by itself.
            headers.pop(b"accept-encoding", None)
        # The log's lines then have the id that Lambda's own have.
        headers.setdefault(b"x-request-id", scope["aws.context"].aws_request_id.encode())
        stage = f"/{event.get('requestContext', {}).get('stage')}/"
        is_staged = "version" in event and scope["path"].startswith(stage)
        path = scope["path"][len(stage) - 1 :] if is_staged else scope["path"]
        await app({**scope, "headers": list(headers.items()), "path": path}, receive, send)

    return answer


@cache
def _made() -> tuple[Container, Mangum]:
    container = open_container(DEFAULTS)
    check_production(container.settings)
    # Whoever waits for a container to start is not to wait for documents that nobody asks for.
    api = AnswersOnce(api_of(container.graph, container.settings, checks_documents=False))
    app = build_app(api, container.settings)
    # Mangum runs every invocation in the thread's event loop. The lifespan would begin and end with each of them, and
    # has nothing to do: no streams are followed.
    asyncio.set_event_loop(container.runner.get_loop())
    return container, Mangum(_fronted(app), lifespan="off", text_mime_types=TEXTS)


def _fits(answer: Mapping[str, Any]) -> bool:
    return len(answer["body"]) < SURELY_FITS or len(json.dumps(answer)) <= MAX_ANSWER_BYTES


def _too_large() -> dict[str, Any]:
    # Lambda would fail by itself, and the client be told of an internal error.
    refusal = view.answer_too_large(MAX_ANSWER_BYTES)
    logger.error("%s", refusal)
    answer = refusal.answer()
    headers = {name.decode(): value.decode() for name, value in answer.headers}
    return {"statusCode": answer.status, "headers": headers, "body": answer.body.decode(), "isBase64Encoded": False}


if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    # While a container starts it has a whole processor, and nobody waits yet.
    _made()
