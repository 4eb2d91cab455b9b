"""GraphQL over HTTP, sentence by sentence, and what the specification leaves to the server.

Ids of four characters are those of graphql-http's audits, whose sentences follow them.
"""

import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any

import httpx
import pytest
from graphql import (
    GraphQLError,
    GraphQLResolveInfo,
    OperationType,
    build_schema,
    execute,
    get_operation_ast,
    get_variable_values,
    parse,
    validate,
)
from hypothesis import given
from hypothesis import strategies as st

from resolvers.operation import Events, Request, Response
from server.app import build_app
from server.negotiation import negotiate
from server.settings import Settings
from server.view import Head, Refusal, read_request

JSON = "application/json"
GRAPHQL = "application/graphql-response+json"

SCHEMA = build_schema("""
    scalar Any
    type Query { hello(name: Any = "world"): String!  partly: String  never: String! }
    type Mutation { add: Int! }
""")


class Root:
    """Resolvers of the little schema."""

    def __init__(self) -> None:
        self.additions = 0

    def hello(self, _: GraphQLResolveInfo[None], name: Any) -> str:
        return f"hello {name}"

    def partly(self, _: GraphQLResolveInfo[None]) -> str:
        raise ValueError("this field fails")

    never = partly

    def add(self, _: GraphQLResolveInfo[None]) -> int:
        self.additions += 1
        return self.additions


@dataclass
class LittleApi:
    """The API over a little schema, executed by graphql-core as it stands."""

    root: Root = field(default_factory=Root)
    requests: list[Request] = field(default_factory=list)

    async def ready(self) -> None:
        """Nothing to wait for."""

    def goes_on(self, request: Request) -> bool:
        return "subscription" in request.query

    async def open(self, request: Request) -> Response | Events:
        return await self.execute(request)

    async def execute(self, request: Request) -> Response:
        self.requests.append(request)
        variables = dict(request.variables or {})
        try:
            document = parse(request.query)
        except GraphQLError as error:
            return refused([error])
        if errors := validate(SCHEMA, document):
            return refused(errors)
        operation = get_operation_ast(document, request.operation_name)
        if operation is None:
            return refused([GraphQLError("expected the name of one of the document's operations")])
        if operation.operation is OperationType.MUTATION and not request.mutations_allowed:
            return Response(refused([GraphQLError("expected a query")]).body, "mutation_over_get")
        coerced = get_variable_values(SCHEMA, operation.variable_definitions or (), variables)
        if isinstance(coerced, list):
            return refused(coerced)
        result = execute(SCHEMA, document, self.root, None, variables, request.operation_name)
        if isawaitable(result):
            result = await result
        return Response(dict(result.formatted), "executed")


def refused(errors: list[GraphQLError]) -> Response:
    return Response({"errors": [dict(error.formatted) for error in errors]}, "refused")


@pytest.fixture
def api() -> LittleApi:
    return LittleApi()


@pytest.fixture
async def client(api: LittleApi) -> AsyncIterator[httpx.AsyncClient]:
    app = build_app(api, Settings(max_body_bytes=1000))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        del client.headers["accept"]
        yield client


@dataclass(frozen=True)
class Call:
    """One HTTP request of a test."""

    method: str
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None
    params: dict[str, str] | None = None

    async def send(self, client: httpx.AsyncClient) -> httpx.Response:
        return await client.request(
            self.method, "/graphql", headers=self.headers, content=self.content, params=self.params
        )


def post(body: Any, accept: str | None = None, content_type: str | None = JSON) -> Call:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"content-type": content_type, "accept": accept}
    return Call("POST", {name: value for name, value in headers.items() if value is not None}, content)


def get(params: dict[str, str], accept: str | None = None) -> Call:
    return Call("GET", {"accept": accept} if accept else {}, params=params)


TYPENAME = {"query": "{ __typename }"}
TYPO = {"qeury": "{ __typename }"}
SYNTAX = {"query": "{"}
UNKNOWN = {"query": "{ 8f31403dfe404bccbb0e835f2629c6a7 }"}
NAMED = {"query": "query Query { __typename }", "operationName": "Query"}
BY_NAME = {"query": "query Type($name: String!) { __type(name: $name) { name } }"}
COERCE = {"query": "query CoerceFailure($id: ID!) { __typename }", "variables": {"id": None}}
RUNNER = {"query": '{ __type(name: "Run🏃Swim🏊") { name } }'}
SOME = {"name": "sometype"}
NO_OBJECT = ("string", 0, False, ["array"])
NO_STRING = ({"obj": "ect"}, 0, False, ["array"])
EXTENDED = TYPENAME | {"extensions": {"some": "value"}}
OPTIONAL = ("variables", "operationName", "extensions")


def audit(audit_id: str, sentence: str, call: Call, status: int = 200, kind: str = "", absent: str = "") -> Any:
    return pytest.param(call, status, kind, absent, id=f"{audit_id} {sentence}")


@pytest.mark.parametrize(
    ("call", "status", "kind", "absent"),
    [
        audit("22EB", "SHOULD accept graphql-response+json and match it", post(TYPENAME, GRAPHQL), 200, GRAPHQL),
        audit("4655", "MUST accept json and match it", post(TYPENAME, JSON), 200, JSON),
        audit("47DE", "SHOULD accept */* and use json", post(TYPENAME, "*/*"), 200, JSON),
        audit("80D8", "SHOULD assume json when accept is missing", post(TYPENAME), 200, JSON),
        audit("82A3", "MUST use utf-8 encoding when responding", post(TYPENAME), 200, "charset=utf-8"),
        audit("BF61", "MUST accept utf-8 encoded request", post(RUNNER, content_type=f"{JSON}; charset=utf-8")),
        audit("78D5", "MUST assume utf-8 in request if encoding is unspecified", post(RUNNER)),
        audit("2C94", "MUST accept POST requests", post(TYPENAME)),
        audit("5A70", "MAY accept form-urlencoded GET requests", get(TYPENAME)),
        audit("9C48", "MAY NOT allow mutations on GET", get({"query": "mutation { __typename }"}, GRAPHQL), 405),
        audit("9ABE", "MAY use 4xx if content-type is not supplied on POST", post(b"", content_type=None), 415),
        audit("03D4", "MUST accept json POST requests", post(TYPENAME)),
        audit("A5BF", "MAY use 400 when request body is missing on POST", post(b""), 400),
        audit("423L", "MAY use 400 on missing query", post({"notquery": "{ __typename }"}, GRAPHQL), 400),
        *(audit(f"LKJ{i}", "MAY use 400 on query of type", post({"query": v}), 400) for i, v in enumerate(NO_STRING)),
        audit("34A2", "SHOULD allow string query, graphql-response+json", post(TYPENAME, GRAPHQL)),
        audit("13EE", "MUST allow string query, json", post(TYPENAME, JSON), absent="errors"),
        *(
            audit(f"{audit_id}{i}", f"MAY use 400 on {name} of type", post(TYPENAME | {name: value}), 400)
            for audit_id, name, wrong in (
                ("6C0", "operationName", NO_STRING),
                ("476", "variables", NO_OBJECT),
                ("58B", "extensions", NO_OBJECT),
            )
            for i, value in enumerate(wrong)
        ),
        audit("8161", "SHOULD allow string operationName, graphql-response+json", post(NAMED, GRAPHQL)),
        audit("B8B3", "MUST allow string operationName, json", post(NAMED, JSON), absent="errors"),
        *(
            audit(
                f"{audit_id}{i}",
                f"allow null {name}, {accept}",
                post(TYPENAME | {name: None}, accept),
                200,
                "",
                "errors",
            )
            for audit_id, accept in (("94B", GRAPHQL), ("022", JSON))
            for i, name in enumerate(OPTIONAL)
        ),
        audit(
            "2EA1", "SHOULD allow map variables, graphql-response+json", post(BY_NAME | {"variables": SOME}, GRAPHQL)
        ),
        audit("28B9", "MUST allow map variables, json", post(BY_NAME | {"variables": SOME}, JSON), absent="errors"),
        *(
            audit(audit_id, f"MAY allow JSON variables in GETs, {accept}", get(by_url, accept), absent="errors")
            for audit_id, accept in (("D6D5", GRAPHQL), ("6A70", JSON))
            for by_url in [BY_NAME | {"variables": json.dumps(SOME)}]
        ),
        audit("428F", "SHOULD allow map extensions, graphql-response+json", post(EXTENDED, GRAPHQL)),
        audit("1B7A", "MUST allow map extensions, json", post(EXTENDED, JSON), absent="errors"),
        audit("B6DC BCF8", "MAY use 400 on JSON parsing failure", post(b'{ "not a JSON'), 400),
        audit("8764 3E3A", "MAY use 400 if parameters are invalid", post(TYPO), 400),
        audit("572B", "SHOULD use 200 on document parsing failure, json", post(SYNTAX, JSON)),
        audit("FDE2", "SHOULD use 200 on document validation failure, json", post(UNKNOWN, JSON)),
        audit("7B9B", "SHOULD use 200 on variable coercion failure, json", post(COERCE, JSON)),
        audit("865D 556A D586", "SHOULD use 400 on parsing failure", post(SYNTAX, GRAPHQL), 400, GRAPHQL, "data"),
        audit("51FE 74FF 5E5B", "SHOULD use 400 on validation failure", post(UNKNOWN, GRAPHQL), 400, GRAPHQL, "data"),
        audit("86EE", "SHOULD use 400 on variable coercion failure", post(COERCE, GRAPHQL), 400, GRAPHQL, "data"),
    ],
)
async def test_audit(client: httpx.AsyncClient, call: Call, status: int, kind: str, absent: str) -> None:
    answer = await call.send(client)

    assert answer.status_code == status
    assert kind in answer.headers["content-type"]
    assert absent not in answer.json()


# Response


@pytest.mark.parametrize(
    ("query", "data"),
    [
        pytest.param("{ hello partly }", {"hello": "hello world", "partly": None}, id="data-with-field-errors"),
        pytest.param("{ never }", None, id="data-is-null"),
    ],
)
@pytest.mark.parametrize("accept", [JSON, GRAPHQL])
async def test_what_was_executed_has_status_200(client: httpx.AsyncClient, accept: str, query: str, data: Any) -> None:
    answer = await post({"query": query}, accept).send(client)

    assert answer.status_code == 200
    assert answer.json()["data"] == data
    assert [error["message"] for error in answer.json()["errors"]] == ["this field fails"]


@pytest.mark.parametrize(("accept", "status"), [(JSON, 200), (GRAPHQL, 400)])
@pytest.mark.parametrize("name", [None, "C"], ids=["no-name", "unknown-name"])
async def test_an_operation_that_cannot_be_determined_is_a_request_error(
    client: httpx.AsyncClient, name: str | None, accept: str, status: int
) -> None:
    two = {"query": "query A { hello } query B { hello }", "operationName": name}

    answer = await post(two, accept).send(client)

    assert answer.status_code == status
    assert "data" not in answer.json()


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        pytest.param("", JSON, id="empty-is-none"),
        pytest.param(f"{GRAPHQL}; charset=utf-8, {JSON}; charset=utf-8", GRAPHQL, id="recommended-header"),
        pytest.param(f"{JSON}, {GRAPHQL}", JSON, id="equal-quality-first-listed"),
        pytest.param(f"{JSON};q=0.9, {GRAPHQL}", GRAPHQL, id="quality-over-order"),
        pytest.param(f"{GRAPHQL};q=0.1, {JSON};q=0.2", JSON, id="json-of-higher-quality"),
        pytest.param(f"{JSON};q=0, */*", GRAPHQL, id="quality-0-excludes"),
        pytest.param("application/*", JSON, id="half-wildcard"),
        pytest.param(f"*/*, {GRAPHQL}", GRAPHQL, id="name-over-wildcard"),
        pytest.param("APPLICATION/JSON", JSON, id="any-case"),
        pytest.param('application/json;profile="x"; Q=1.0', JSON, id="other-parameters-do-not-matter"),
        pytest.param(f"{GRAPHQL}, {JSON}, text/event-stream, multipart/mixed", GRAPHQL, id="urql"),
        pytest.param(f"text/event-stream, {JSON};q=0.1", JSON, id="never-a-stream-when-json-will-do"),
        pytest.param("text/event-stream", None, id="only-a-stream"),
        pytest.param("text/html", None, id="html-is-not-on-offer"),
        pytest.param(f"{JSON};charset=iso-8859-1", None, id="other-encoding"),
        pytest.param(f"{JSON};q=high", None, id="damaged-quality"),
        pytest.param(f"{JSON};q=0.000", None, id="quality-0"),
    ],
)
def test_the_highest_priority_media_type_is_chosen(accept: str, chosen: str | None) -> None:
    assert negotiate(accept) == chosen


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        pytest.param("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html", id="browser"),
        pytest.param("text/html, */*", "text/html", id="named-before-wildcard"),
        pytest.param(f"text/html, {JSON}", JSON, id="json-wins-a-tie"),
        pytest.param(f"{JSON};q=0.5, text/html;q=0.4", JSON, id="json-of-higher-quality"),
        pytest.param("*/*", JSON, id="curl"),
        pytest.param("", JSON, id="none"),
    ],
)
def test_html_is_only_for_those_who_prefer_it(accept: str, chosen: str) -> None:
    assert negotiate(accept, html=True) == chosen


async def test_without_an_acceptable_media_type_the_answer_is_406(client: httpx.AsyncClient, api: LittleApi) -> None:
    answer = await post(TYPENAME, "image/png").send(client)

    assert answer.status_code == 406
    assert answer.json()["errors"][0]["extensions"] == {"code": "NOT_ACCEPTABLE"}
    assert api.requests == []


async def test_caches_are_told_that_the_answer_depends_on_accept(client: httpx.AsyncClient) -> None:
    answer = await get(TYPENAME).send(client)

    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert answer.headers["x-content-type-options"] == "nosniff"


# Request


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
async def test_another_method_is_refused_with_those_allowed(client: httpx.AsyncClient, method: str) -> None:
    answer = await Call(method).send(client)

    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, POST"


@pytest.mark.parametrize("accept", [JSON, GRAPHQL])
async def test_a_mutation_by_get_is_refused_and_not_run(client: httpx.AsyncClient, api: LittleApi, accept: str) -> None:
    answer = await get({"query": "query A { hello } mutation B { add }", "operationName": "B"}, accept).send(client)

    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    assert api.root.additions == 0


async def test_a_query_beside_a_mutation_runs_by_get(client: httpx.AsyncClient) -> None:
    answer = await get({"query": "query A { hello } mutation B { add }", "operationName": "A"}).send(client)

    assert answer.json() == {"data": {"hello": "hello world"}}


async def test_a_mutation_runs_by_post(client: httpx.AsyncClient) -> None:
    answer = await post({"query": "mutation { add }"}).send(client)

    assert answer.json() == {"data": {"add": 1}}


@pytest.mark.parametrize(
    ("query_string", "request_read"),
    [
        pytest.param("query=%7Bhello%7D&query=nonsense", Request("{hello}", None, None, False), id="first-of-two"),
        pytest.param("query=%7Bhello%7D&colour=red", Request("{hello}", None, None, False), id="unknown-ignored"),
        pytest.param("query=a+b%2Bc", Request("a b+c", None, None, False), id="plus-is-a-space"),
        pytest.param("query=a&operationName=", Request("a", None, None, False), id="empty-name-is-none"),
        pytest.param("query=a&operationName=null", Request("a", None, "null", False), id="null-is-a-name"),
        pytest.param("query=a&variables=null", Request("a", None, None, False), id="variables-null"),
        pytest.param("query=a&variables=", Request("a", None, None, False), id="variables-empty"),
        pytest.param("query=a&variables=%7B%22b%22:1%7D", Request("a", {"b": 1}, None, False), id="variables"),
        pytest.param("query=", Request("", None, None, False), id="an-empty-document-is-still-one"),
    ],
)
def test_get_parameters_are_form_encoded(query_string: str, request_read: Request) -> None:
    head = Head("GET", {}, query_string.encode())

    assert read_request(head, b"", "never") == request_read


@pytest.mark.parametrize(
    ("content_type", "accepted"),
    [
        pytest.param("application/json;charset=UTF-8", True, id="charset-in-capitals"),
        pytest.param('Application/JSON ; Charset="utf-8"', True, id="charset-in-quotes"),
        pytest.param("application/json; charset=utf8", True, id="charset-without-hyphen"),
        pytest.param("application/json; charset=iso-8859-1", False, id="other-charset"),
        pytest.param("application/jsonp", False, id="longer-name"),
        pytest.param("application/graphql", False, id="bare-document"),
        pytest.param("text/plain", False, id="text"),
        pytest.param("application/x-www-form-urlencoded", False, id="form"),
        pytest.param("multipart/form-data; boundary=x", False, id="upload"),
        pytest.param("", False, id="empty"),
    ],
)
async def test_a_body_must_be_json_in_utf8(client: httpx.AsyncClient, content_type: str, accepted: bool) -> None:
    answer = await post(TYPENAME, content_type=content_type).send(client)

    assert answer.status_code == (200 if accepted else 415)
    codes = [error["extensions"]["code"] for error in answer.json().get("errors", [])]
    assert codes == ([] if accepted else ["UNSUPPORTED_MEDIA_TYPE"])


async def test_a_compressed_body_is_refused_with_the_encoding_to_use(client: httpx.AsyncClient) -> None:
    headers = {"content-type": JSON, "content-encoding": "gzip"}

    answer = await Call("POST", headers, gzip.compress(b'{"query": "{ hello }"}')).send(client)

    assert answer.status_code == 415
    assert answer.headers["accept-encoding"] == "identity"
    assert answer.json() == {
        "errors": [
            {
                "message": "Expected a body that is not compressed, got Content-Encoding gzip; send it as it is.",
                "extensions": {"code": "UNSUPPORTED_CONTENT_ENCODING"},
            }
        ]
    }


NO_JSON = "Expected JSON in UTF-8 in the body, got something else ("
NO_QUERY = "Expected the parameter query, a string with a GraphQL document, or documentId, which names one, got neither"


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        pytest.param(b"", "INVALID_JSON", NO_JSON, id="nothing"),
        pytest.param(b'{"query":', "INVALID_JSON", NO_JSON, id="cut-off"),
        pytest.param(b'{"query": "\xff"}', "INVALID_JSON", NO_JSON, id="no-utf-8"),
        pytest.param(b'{"query": "\\ud800"}', "INVALID_JSON", NO_JSON, id="lone-surrogate"),
        pytest.param(b'{"query": NaN}', "INVALID_JSON", NO_JSON, id="not-a-number"),
        pytest.param(b"[" * 5000 + b"]" * 5000, "INVALID_JSON", NO_JSON, id="too-deep"),
        pytest.param(b"[" * 1000 + b"9" * 20 + b"]" * 1000, "INVALID_JSON", NO_JSON, id="too-deep-for-long-numbers"),
        pytest.param(b"null", "INVALID_REQUEST", "Expected a JSON object like", id="null"),
        pytest.param(b'"{ hello }"', "INVALID_REQUEST", "Expected a JSON object like", id="string"),
        pytest.param(b'[{"query": "{ hello }"}]', "INVALID_REQUEST", "Expected a JSON object like", id="batch"),
        pytest.param(b"{}", "INVALID_REQUEST", NO_QUERY, id="no-query"),
        pytest.param(b'{"query": null}', "INVALID_REQUEST", NO_QUERY, id="null-query"),
        pytest.param(
            b'{"query": "a", "variables": [7]}',
            "INVALID_REQUEST",
            "Expected the parameter variables to be an object or absent, got an array.",
            id="array-of-variables",
        ),
    ],
)
def test_a_malformed_body_is_refused_with_what_was_expected(body: bytes, code: str, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_request(Head("POST", {}), body, "never")

    assert (refused.value.status, refused.value.code) == (400, code)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("name", ["variables", "extensions"])
@pytest.mark.parametrize("value", ["{", "'", "[1]", "1"])
async def test_a_malformed_query_string_is_refused(client: httpx.AsyncClient, name: str, value: str) -> None:
    answer = await get({"query": "{ hello }", name: value}).send(client)

    assert answer.status_code == 400
    assert name in answer.json()["errors"][0]["message"]


def test_a_query_string_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(Refusal, match="Expected a query string of percent-encoded UTF-8"):
        read_request(Head("GET", {}, b"query=%ff"), b"", "never")


@pytest.mark.parametrize("number", [2**53 + 1, 2**64, -(10**37) + 1], ids=["past-doubles", "past-64-bits", "38-digits"])
async def test_whole_numbers_keep_all_their_digits(client: httpx.AsyncClient, number: int) -> None:
    query = {"query": "query($n: Any) { hello(name: $n) }", "variables": {"n": number}}

    answer = await post(query).send(client)

    assert answer.json() == {"data": {"hello": f"hello {number}"}}


async def test_unknown_properties_of_the_body_are_ignored(client: httpx.AsyncClient) -> None:
    answer = await post({"query": "{ hello }", "colour": "red"}).send(client)

    assert answer.json() == {"data": {"hello": "hello world"}}


async def test_a_declared_length_above_the_limit_is_refused_unread(client: httpx.AsyncClient) -> None:
    answer = await post({"query": "{ hello }" + " " * 1000}).send(client)

    assert answer.status_code == 413
    told = {"limit": "bodyBytes", "value": int(answer.request.headers["content-length"]), "most": 1000}
    assert answer.json()["errors"][0]["extensions"] == {"code": "BODY_TOO_LARGE", **told}


async def test_a_body_is_refused_as_soon_as_it_passes_the_limit(client: httpx.AsyncClient) -> None:
    sent: list[bytes] = []

    async def endless() -> AsyncIterator[bytes]:
        while len(sent) < 1000:
            sent.append(b" " * 100)
            yield sent[-1]

    answer = await client.post("/graphql", content=endless(), headers={"content-type": JSON})

    assert answer.status_code == 413
    assert len(sent) == 11


@pytest.mark.parametrize(
    ("setting", "header", "asked"),
    [
        ("header", "1", True),
        ("header", "0", False),
        ("header", None, False),
        ("always", None, True),
        ("never", "1", False),
    ],
)
async def test_the_cost_is_told_when_setting_and_header_say_so(setting: Any, header: str | None, asked: bool) -> None:
    api = LittleApi()
    app = build_app(api, Settings(cost=setting))
    headers = {"content-type": JSON} | ({"Tablegraph-Cost": header} if header else {})

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        await client.post("/graphql", content=b'{"query": "{ hello }"}', headers=headers)

    assert [request.cost for request in api.requests] == [asked]


# Abuse


@given(st.binary() | st.recursive(st.none() | st.text(), st.lists).map(lambda value: json.dumps(value).encode()))
def test_any_body_is_read_or_refused(body: bytes) -> None:
    try:
        outcome: Request | Refusal = read_request(Head("POST", {}), body, "header")
    except Refusal as refusal:
        outcome = refusal

    assert isinstance(outcome, Request) or outcome.status == 400


@given(st.text(alphabet='aqz*/;,=.01 "', max_size=60) | st.text(max_size=60))
def test_any_accept_header_has_an_answer(accept: str) -> None:
    assert negotiate(accept, html=True) in (JSON, GRAPHQL, "text/html", None)
