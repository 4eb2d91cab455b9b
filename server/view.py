"""GraphQL over HTTP: from the facts of an HTTP request to a GraphQL request, and from a response to an HTTP answer.

Everything here is pure; `endpoint.py` reads from and writes to the network.

Source: GraphQL over HTTP, https://graphql.github.io/graphql-over-http/draft/
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl

import orjson

from graph.errors import GraphError
from resolvers.operation import Request, Response
from resolvers.persisted import PREFIX, bare
from server.negotiation import EVENT_STREAM, GRAPHQL_RESPONSE, JSON, is_json, wanted

CostPolicy = Literal["header", "always", "never"]
Header = tuple[bytes, bytes]
"""A header as ASGI has it: the name in lower case."""

IDEMPOTENCY_HEADER = b"idempotency-key"
COST_HEADER = b"tablegraph-cost"
RETRY_SECS = 1
"""When who was refused in an overload may come again."""
EACH_REQUEST = b"requests"
"""The header's value that asks for each request by itself, besides the sums that `1` asks for."""
NO_STORE: Header = (b"cache-control", b"no-store")


REFUSAL_CODES: Mapping[str, str] = {
    "INVALID_HTTP": "HTTP 400: what came is not HTTP/1.1, or leaves open where a request ends.",
    "HEAD_TOO_LARGE": "HTTP 431: the URL and the headers are larger than the server takes.",
    "REQUEST_TIMEOUT": "HTTP 408: the request did not arrive in time.",
    "METHOD_NOT_ALLOWED": "HTTP 405: another method than GET and POST, or a mutation by GET.",
    "NOT_ACCEPTABLE": "HTTP 406: the client accepts neither media type of GraphQL over HTTP.",
    "UNSUPPORTED_MEDIA_TYPE": "HTTP 415: the body is not declared to be JSON.",
    "UNSUPPORTED_CONTENT_ENCODING": "HTTP 415: the body is compressed.",
    "BODY_TOO_LARGE": "HTTP 413: the body is larger than the server takes.",
    "ANSWER_TOO_LARGE": "HTTP 500: the answer is larger than AWS Lambda sends; the operation has been carried out.",
    "INVALID_JSON": "HTTP 400: the body, or a parameter of it, is not JSON.",
    "INVALID_REQUEST": "HTTP 400: `query` and `documentId` are missing, or a parameter is of a wrong type.",
    "UNAUTHENTICATED": "HTTP 401: it is not certain who asks; `reason` says what is wrong with the credentials.",
    "IDENTITY_UNAVAILABLE": "HTTP 503: the keys that tokens are checked by cannot be had now; ask again.",
    "ORIGIN_NOT_ALLOWED": "HTTP 403: a page of another site wants to use the API, or to open a WebSocket.",
    "CROSS_SITE_REQUEST": "HTTP 403: a browser sends a GET for a page of another site, and nobody was asked before.",
    "RATE_LIMITED": "HTTP 429: the client asks more often than `limit` says; again after `retryAfterSecs`.",
    "OVERLOADED": "HTTP 503: as many operations are executed, and wait, as may be; Retry-After says when to ask again.",
    "TOO_MANY_OPERATIONS": "A WebSocket has as many operations under way as it may have.",
    "SHUTTING_DOWN": "HTTP 503: the server is about to end; ask again.",
}
"""The codes of what is refused before it becomes a GraphQL request."""


# Named tuples, for each request makes one of both, and frozen dataclasses take three times as long to make.
class Head(NamedTuple):
    """The part of an HTTP request that comes before its body; header names are in lower case."""

    method: str
    headers: Mapping[bytes, bytes]
    query_string: bytes = b""

    def text(self, name: bytes) -> str:
        """Read a header; one that is not there is empty."""
        return self.headers.get(name, b"").decode("latin-1")


class Answer(NamedTuple):
    """One complete HTTP response, but for the headers that tell its length and its request's id."""

    status: int
    body: bytes
    headers: tuple[Header, ...]


def headers_for(media_type: str) -> tuple[Header, ...]:
    """Give the headers of an answer whose form was negotiated."""
    kind = f"{media_type}; charset=utf-8".encode()
    return ((b"content-type", kind), (b"vary", b"Accept, Accept-Encoding"))


class Refusal(Exception):
    """An HTTP request cannot become a GraphQL request; says what was expected, what came and what to do."""

    def __init__(self, status: int, code: str, message: str, *headers: Header, **extensions: object) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.extensions = {"code": code, **extensions}
        self.headers = headers

    def body(self) -> dict[str, Any]:
        """Put the refusal into the form of a GraphQL error."""
        return {"errors": [{"message": str(self), "extensions": self.extensions}]}

    def answer(self, media_type: str = JSON) -> Answer:
        """Answer with the refusal."""
        return Answer(self.status, orjson.dumps(self.body()), (*headers_for(media_type), NO_STORE, *self.headers))


def error_body(error: GraphError, message: str) -> dict[str, Any]:
    """Put an error that ends an operation, and what is said of it, into the form of a GraphQL response."""
    return {"errors": [{"message": message, "extensions": error.extensions}]}


def not_http() -> Refusal:
    """Say that the request cannot be told from what is around it."""
    message = "Expected a request of HTTP/1.1 with one length, got something else; have a library write it."
    return Refusal(400, "INVALID_HTTP", message)


def head_too_large(limit_bytes: int) -> Refusal:
    """Say that the URL and the headers pass the limit together."""
    return Refusal(
        431,
        "HEAD_TOO_LARGE",
        f"Expected a URL and headers of at most {limit_bytes} bytes, got larger ones; send the query by POST.",
    )


def too_slow(timeout_secs: float) -> Refusal:
    """Say that the request was not there in time."""
    return Refusal(
        408,
        "REQUEST_TIMEOUT",
        f"Expected a request to arrive within {timeout_secs:g} s, got a part of it; send it again, over a faster "
        "connection, or raise TABLEGRAPH_REQUEST_TIMEOUT_SECS.",
    )


def body_too_large(limit_bytes: int, size_bytes: int) -> Refusal:
    """Say that the body passes the limit: `size_bytes` is its declared length, or what has come of it."""
    return Refusal(
        413,
        "BODY_TOO_LARGE",
        f"Expected a body of at most {limit_bytes} bytes, got a larger one; send large values as variables of "
        "several requests, or raise TABLEGRAPH_MAX_BODY_BYTES.",
        limit="bodyBytes",
        value=size_bytes,
        most=limit_bytes,
    )


def answer_too_large(limit_bytes: int) -> Refusal:
    """Say that the answer passes the limit of the way that it has to take."""
    return Refusal(
        500,
        "ANSWER_TOO_LARGE",
        f"Expected an answer of at most {limit_bytes} bytes, got a larger one. What was asked for has been done: ask "
        "for less of it at once, by smaller pages, or compressed, by `Accept-Encoding: gzip`.",
    )


def not_acceptable(accept: str) -> Refusal:
    """Say that the client takes none of the media types on offer."""
    return Refusal(
        406,
        "NOT_ACCEPTABLE",
        f"Expected Accept to admit {GRAPHQL_RESPONSE} or {JSON} in UTF-8, or to name {EVENT_STREAM}, got {accept}; "
        "add one of them.",
    )


def origin_not_allowed(origin: str, host: str) -> Refusal:
    """Say that pages of a site may not use the API."""
    return Refusal(
        403,
        "ORIGIN_NOT_ALLOWED",
        f"Expected a page of {host or 'this host'}, got one of {origin}; name that origin in TABLEGRAPH_CORS_ORIGINS, "
        "or have the proxy pass the Host header on.",
    )


def cross_site() -> Refusal:
    """Say that a GET came from another site's page, which may not have known what it does."""
    return Refusal(
        403,
        "CROSS_SITE_REQUEST",
        "Expected a GET of this site's pages, got one that the browser sends for another site; send it by fetch() with "
        "the header GraphQL-Require-Preflight: 1, and name that site in TABLEGRAPH_CORS_ORIGINS.",
    )


def too_many_operations(most: int) -> Refusal:
    """Say that a WebSocket has no room for another operation."""
    return Refusal(
        429,
        "TOO_MANY_OPERATIONS",
        f"Expected at most {most} operations at once on a WebSocket; complete one of them, open another socket, or "
        "raise TABLEGRAPH_MAX_SOCKET_OPERATIONS.",
        limit="socketOperations",
        value=most + 1,
        most=most,
    )


def overloaded(most: int) -> Refusal:
    """Say that there is no room for another operation now."""
    return Refusal(
        503,
        "OVERLOADED",
        f"The server is executing as many operations as it can, {most} at most, and as many wait: send this one again "
        f"after {RETRY_SECS} s or later.",
        (b"retry-after", b"%d" % RETRY_SECS),
        limit="operations",
        most=most,
    )


def ambiguous_key() -> Refusal:
    """Say that one idempotency key cannot stand for several operations."""
    return _invalid(
        "Expected no Idempotency-Key for an array of operations, which it cannot tell apart; give each mutation its "
        "own, by the argument `idempotencyKey`."
    )


def _batch_too_large(value: int, most: int) -> Refusal:
    return Refusal(
        400,
        "LIMIT_EXCEEDED",
        f"Expected at most {most} operations in an array, got {value}; send several requests.",
        limit="batch",
        value=value,
        most=most,
    )


def rate_limited(most: int, window_secs: int, retry_secs: int, *headers: Header) -> Refusal:
    """Say that a client asks more often than it may."""
    return Refusal(
        429,
        "RATE_LIMITED",
        f"Expected at most {most} operations in {window_secs} s, got more; ask again in {retry_secs} s.",
        (b"retry-after", b"%d" % retry_secs),
        *headers,
        limit=most,
        retryAfterSecs=retry_secs,
    )


def internal_error(request_id: str) -> Refusal:
    """Tell of an exception nobody expected: nothing but the id under which the log has it."""
    return Refusal(500, "INTERNAL", f"Unexpected error; id {request_id}")


def shutting_down() -> Refusal:
    """Tell that the end of the process cut an operation off."""
    message = "The server shut down before the operation was done; send a query again, and check what a mutation did."
    return Refusal(503, "SHUTTING_DOWN", message)


# The request


def check_head(head: Head, max_body_bytes: int) -> None:
    """Refuse what can be refused before the body is read.

    Raises: Refusal for another method than GET and POST, a body in another form than JSON, and one too large.
    """
    if head.method == "GET":
        return
    if head.method != "POST":
        raise Refusal(
            405,
            "METHOD_NOT_ALLOWED",
            f"Expected GET or POST, got {head.method}; send the operation as a JSON object by POST.",
            (b"allow", b"GET, POST"),
        )
    headers = head.headers
    if not is_json(headers.get(b"content-type", b"")):
        raise Refusal(
            415,
            "UNSUPPORTED_MEDIA_TYPE",
            f"Expected Content-Type application/json in UTF-8, got {head.text(b'content-type') or 'none'}; "
            'send {"query": "…"} with the header Content-Type: application/json.',
        )
    if b"content-encoding" in headers:
        _check_content_encoding(head.text(b"content-encoding"))
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length[:20]) > max_body_bytes:
        raise body_too_large(max_body_bytes, int(length[:20]))


def _check_content_encoding(content_encoding: str) -> None:
    if content_encoding.strip().lower() not in ("", "identity"):
        raise Refusal(
            415,
            "UNSUPPORTED_CONTENT_ENCODING",
            f"Expected a body that is not compressed, got Content-Encoding {content_encoding}; send it as it is.",
            (b"accept-encoding", b"identity"),
        )


def read_request(
    head: Head, body: bytes, cost: CostPolicy, *, incremental: bool = False, traces: bool = False
) -> Request:
    """Read the GraphQL request out of an HTTP request whose head was checked; `traces`: whether it may ask for a trace.

    Raises: Refusal when the parameters cannot be read or are of the wrong types.
    """
    is_get = head.method == "GET"
    return as_request(
        _from_query_string(head.query_string) if is_get else _from_body(body),
        mutations_allowed=not is_get,
        idempotency_key=head.text(IDEMPOTENCY_HEADER) or None,
        cost=wants_cost(head.headers, cost),
        incremental=incremental,
        trace=traces and head.headers.get(COST_HEADER) == EACH_REQUEST,
    )


def is_batch(body: bytes) -> bool:
    """Say whether a body holds an array, as clients send that put several operations into one request."""
    return body[:1] != b"{" and body.lstrip()[:1] == b"["


def read_batch(head: Head, body: bytes, cost: CostPolicy, most: int) -> list[Request | Refusal]:
    """Read the operations of an array, each by itself.

    Raises: Refusal when there are none, or more than `most`.
    """
    found = load_json(body, "the body")
    if len(found) > most:
        raise _batch_too_large(len(found), most)
    if not found:
        raise _invalid("Expected an array of operations, got an empty one; send one.")
    return [_of_batch(each, cost=wants_cost(head.headers, cost)) for each in found]


def _of_batch(parameters: Any, *, cost: bool) -> Request | Refusal:
    if not isinstance(parameters, dict):
        return _invalid(f'Expected a JSON object like {{"query": "…"}} in the array, got {kind_of(parameters)}.')
    try:
        return as_request(parameters, cost=cost)
    except Refusal as refusal:
        return refusal


def wants_cost(headers: Mapping[bytes, bytes], policy: CostPolicy) -> bool:
    """Tell whether answers are to carry `extensions.cost`."""
    return policy == "always" or (policy == "header" and headers.get(COST_HEADER) in (b"1", EACH_REQUEST))


def as_request(
    parameters: dict[str, Any],
    *,
    cost: bool,
    mutations_allowed: bool = True,
    idempotency_key: str | None = None,
    incremental: bool = False,
    trace: bool = False,
) -> Request:
    """Make a GraphQL request of the parameters that every transport has.

    Raises: Refusal when they are of the wrong types.
    """
    query = _read(parameters, "query", str, "a string")
    document_id = _document_id(parameters)
    if query is None and document_id is None:
        raise _invalid(
            "Expected the parameter query, a string with a GraphQL document, or documentId, which names one, got "
            "neither; add one of them."
        )
    return Request(
        query=query or "",
        variables=_read(parameters, "variables", dict, "an object"),
        operation_name=_read(parameters, "operationName", str, "a string") or None,
        mutations_allowed=mutations_allowed,
        idempotency_key=idempotency_key,
        cost=cost,
        incremental=incremental,
        document_id=document_id,
        trace=trace,
    )


def _document_id(parameters: dict[str, Any]) -> str | None:
    """Read the client's name for the document: `documentId`, or what Apollo's clients have among the extensions.

    Raises: Refusal.
    Source: GraphQL over HTTP, Appendix A; https://www.apollographql.com/docs/apollo-server/performance/apq
    """
    extensions = _read(parameters, "extensions", dict, "an object")
    document_id: str | None = _read(parameters, "documentId", str, "a string")
    if document_id is not None:
        document_id = bare(document_id)
        if document_id.startswith(PREFIX):
            raise _invalid(
                f"Expected documentId to be {PREFIX} and 64 hexadecimal digits, got more or fewer; send the SHA-256 of "
                "the document's text so."
            )
    persisted = extensions.get("persistedQuery") if extensions else None
    if persisted is None:
        return document_id or None
    known = persisted if isinstance(persisted, dict) else {}
    sent = known.get("sha256Hash")
    hash_ = bare(sent) if isinstance(sent, str) else None
    if known.get("version") != 1 or not hash_ or document_id not in (None, hash_):
        raise _invalid(
            'Expected extensions.persistedQuery to be {"version": 1, "sha256Hash": "…"}, and documentId to be absent '
            "or the same, got something else; mend it."
        )
    return hash_


def _from_query_string(query_string: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(query_string.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise _invalid("Expected a query string of percent-encoded UTF-8, got other bytes; encode it anew.") from None
    # Of a parameter given twice the first counts, as for URLSearchParams.get().
    parameters: dict[str, Any] = dict(reversed(pairs))
    for name in ("variables", "extensions"):
        if name in parameters:
            text = parameters[name]
            parameters[name] = load_json(text.encode(), f"the parameter {name}") if text else None
    return parameters


def _from_body(body: bytes) -> dict[str, Any]:
    parameters = load_json(body, "the body")
    if isinstance(parameters, dict):
        return parameters
    raise _invalid(f'Expected a JSON object like {{"query": "…"}}, got {kind_of(parameters)}.')


def load_json(text: bytes | str, where: str) -> Any:
    """Read JSON. Raises: Refusal."""
    try:
        value = orjson.loads(text)
        return json.loads(text) if _is_rounded(value) else value
    except (ValueError, RecursionError) as error:
        message = f"Expected JSON in UTF-8 in {where}, got something else ({error}); encode it anew."
        raise Refusal(400, "INVALID_JSON", message) from None


# orjson makes floats of integers beyond 64 bits, but DynamoDB keeps 38 digits: the standard library reads those.
def _is_rounded(value: Any) -> bool:
    values = [value]
    while values:
        one = values.pop()
        kind = type(one)
        if kind is float:
            if abs(one) >= 2**63:
                return True
        elif kind is dict:
            values.extend(one.values())
        elif kind is list:
            values.extend(one)
    return False


def _read(parameters: dict[str, Any], name: str, kind: type, expected: str) -> Any:
    value = parameters.get(name)
    if value is None or isinstance(value, kind):
        return value
    raise _invalid(f"Expected the parameter {name} to be {expected} or absent, got {kind_of(value)}.")


_KINDS = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}


def kind_of(value: Any) -> str:
    """Name a JSON value's type."""
    return _KINDS.get(type(value), "null")


def _invalid(message: str) -> Refusal:
    return Refusal(400, "INVALID_REQUEST", message)


# The response


def write_batch(bodies: list[dict[str, Any]]) -> Answer:
    """Encode the responses to an array of operations, in its order: well-formed, whatever became of each."""
    return Answer(200, orjson.dumps(bodies), _HEADERS[JSON])


def json_type(head: Head) -> str:
    """Choose the media type of an answer that is a GraphQL error in any case."""
    return wanted(head.headers.get(b"accept", b""), False).media_type or JSON


def write_response(response: Response, media_type: str) -> Answer:
    """Encode a GraphQL response with the status that its media type asks for.

    Raises: TypeError when the body holds a value that JSON has no form for.
    Source: GraphQL over HTTP, "Status Codes": application/json has 200 for every well-formed request,
            application/graphql-response+json 400 when nothing was executed. Both have 405 for a mutation by GET.
    """
    body = orjson.dumps(response.body)
    headers = _HEADERS[media_type]
    if response.outcome == "mutation_over_get":
        return Answer(405, body, (*headers, (b"allow", b"POST")))
    return Answer(400 if response.outcome == "refused" and media_type == GRAPHQL_RESPONSE else 200, body, headers)


_HEADERS = {media_type: headers_for(media_type) for media_type in (JSON, GRAPHQL_RESPONSE)}
