"""What we lean on in other people's code, part by part, so that an upgrade which moves one fails with its name."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Callable
from typing import Any, NewType

import aiodataloader
import boto3
import graphql
import strawberry
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.session import Session
from strawberry import UNSET
from strawberry.annotation import StrawberryAnnotation
from strawberry.printer import print_schema
from strawberry.schema.config import StrawberryConfig
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.base import StrawberryList, StrawberryOptional
from strawberry.types.field import StrawberryField
from strawberry.types.union import StrawberryUnion

from resolvers.responses import NULL_REFUSED

# --- aiodataloader: graph/loaders.py subclasses its queue and cache ------------------------------------------------


class Loader(aiodataloader.DataLoader[str, str]):
    def __init__(self) -> None:
        super().__init__()
        self.enqueued: list[tuple[str, asyncio.Future[str]]] = []

    async def batch_load_fn(self, keys: list[str]) -> list[str]:
        raise AssertionError("the library dispatches by itself")

    def do_resolve_reject(self, key: str, future: asyncio.Future[str]) -> None:
        self.enqueued.append((key, future))


async def test_aiodataloader_enqueues_by_do_resolve_reject_once_for_each_key() -> None:
    loader = Loader()

    one, same, other = loader.load("a"), loader.load("a"), loader.load("b")
    await asyncio.sleep(0)

    assert one is same
    assert loader.enqueued == [("a", one), ("b", other)]


async def test_aiodataloader_queue_and_cache_are_a_list_and_a_mapping_to_futures() -> None:
    loader = Loader()
    future = loader.load("a")

    assert loader._queue == []
    assert loader._cache == {"a": future}
    assert aiodataloader.Loader(key="a", future=future) == ("a", future)


async def test_aiodataloader_clear_forgets_and_prime_keeps_what_is_there() -> None:
    loader = Loader()
    first = loader.load("a")

    loader.prime("a", "primed")
    assert loader.load("a") is first
    loader.clear("a").prime("a", "primed")

    assert await loader.load("a") == "primed"


# --- botocore: graph/client.py takes the body before it is parsed --------------------------------------------------


class Raw:
    """The body of an answer, as urllib3 gives it."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: Any) -> Any:
        yield self._body


def answered(body: bytes, status: int, **taken: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Let boto3 send a GetItem to nobody, and give its result and the arguments of the before-parse events."""
    config = Config(retries={"total_max_attempts": 1, "mode": "standard"}, parameter_validation=False)
    client: Any = boto3.session.Session().client(
        "dynamodb", region_name="eu-central-1", aws_access_key_id="any", aws_secret_access_key="any", config=config
    )
    headers = HTTPHeaders.from_dict({"X-Amz-Crc32": "7", "Content-Type": "application/x-amz-json-1.0"})
    events: list[dict[str, Any]] = []

    def send(request: Any, **_: Any) -> AWSResponse:
        return AWSResponse(request.url, status, headers, Raw(body))

    def take(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **others: Any) -> None:
        events.append({"response_dict": dict(response_dict), **others})
        if taken:
            customized_response_dict.update(taken)
            response_dict["body"] = b"{}"

    client.meta.events.register("before-send.dynamodb.*", send)
    client.meta.events.register("before-parse.dynamodb.*", take)
    try:
        return client.get_item(TableName="fruit", Key={"id": {"S": "a"}}), events
    except client.exceptions.ClientError as error:
        return error.response, events
    finally:
        client.close()


def test_botocore_before_parse_event_has_the_raw_body_status_and_headers() -> None:
    _, (event,) = answered(b'{"Item": {}}', 200)

    assert event["response_dict"]["body"] == b'{"Item": {}}'
    assert event["response_dict"]["status_code"] == 200
    assert event["response_dict"]["headers"].get("x-amz-crc32") == "7"
    assert event["event_name"] == "before-parse.dynamodb.GetItem"


def test_botocore_adds_what_the_before_parse_event_took_and_parses_the_body_left() -> None:
    response, _ = answered(b"neither JSON nor parsed", 200, Body={"Item": {"n": {"N": "1"}}})

    assert response["Body"] == {"Item": {"n": {"N": "1"}}}
    assert "Item" not in response


def test_botocore_client_error_has_code_message_and_status() -> None:
    error, _ = answered(b'{"__type": "com.amazonaws#ThrottlingException", "message": "slower"}', 400)

    assert error["Error"] == {"Code": "ThrottlingException", "Message": "slower"}
    assert error["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_botocore_tries_no_more_often_than_it_is_told() -> None:
    error, events = answered(b"{}", 500)

    assert error["ResponseMetadata"]["RetryAttempts"] == 0
    assert len(events) == 1


def test_botocore_knows_the_operations_that_we_send_by_snake_case_names() -> None:
    names = Session().get_service_model("dynamodb").operation_names

    assert {"GetItem", "BatchGetItem", "Query", "Scan", "BatchWriteItem", "DescribeTable", "CreateTable"} <= {*names}


# --- graphql-core: the error that cancels, the extensions that are copied -------------------------------------------


async def test_graphql_core_cancels_the_siblings_of_a_non_null_field_that_fails() -> None:
    """The day it does no longer, the loaders' care is needless."""
    schema = graphql.build_schema("type Query { fails: Int!  slow: Int }")
    cancelled: list[bool] = []
    began = asyncio.Event()

    async def slow(*_: Any) -> int:
        try:
            began.set()
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return 1

    async def fails(*_: Any) -> int:
        await began.wait()
        raise ValueError("no")

    fields = schema.query_type.fields  # type: ignore[union-attr]
    fields["slow"].resolve, fields["fails"].resolve = slow, fails

    result = await graphql.graphql(schema, "{ slow fails }")

    assert result.data is None
    assert [error.message for error in result.errors or []] == ["no"]
    assert cancelled == [True]


async def test_graphql_core_copies_the_extensions_of_the_error_that_a_resolver_raised() -> None:
    class Coded(Exception):
        extensions = {"code": "CODED"}  # noqa: RUF012  # as graph.errors has it, a plain mapping on the exception

    schema = graphql.build_schema("type Query { fails: Int }")

    def fails(*_: Any) -> int:
        raise Coded("no")

    schema.query_type.fields["fails"].resolve = fails  # type: ignore[union-attr]

    result = await graphql.graphql(schema, "{ fails }")

    (error,) = result.errors or []
    assert error.extensions == {"code": "CODED"}
    assert isinstance(error.original_error, Coded)
    assert error.path == ["fails"]


async def test_graphql_core_says_null_in_a_non_null_field_with_the_words_that_we_look_for() -> None:
    schema = graphql.build_schema("type Query { one: Int! }")

    result = await graphql.graphql(schema, "{ one }", root_value={"one": None})

    (error,) = result.errors or []
    assert isinstance(error.original_error, TypeError)
    assert str(error.original_error) == f"{NULL_REFUSED}Query.one."


def test_graphql_core_gives_variables_at_fault_no_path() -> None:
    schema = graphql.build_schema("type Query { one(n: Int!): Int }")
    document = graphql.parse("query ($n: Int!) { one(n: $n) }")

    result = graphql.execute(schema, document, variable_values={"n": "x"})

    assert isinstance(result, graphql.ExecutionResult)
    assert result.data is None
    assert [error.path for error in result.errors or []] == [None]


# --- Strawberry: types made in two phases, resolvers and inputs of our own ------------------------------------------

Resolve = Callable[[Any, Any, dict[str, Any]], Any]


class OurField(StrawberryField):
    """A field as resolvers/fields.py makes them."""

    resolve: Resolve

    @property
    def is_basic_field(self) -> bool:
        return False

    def get_result(self, source: Any, info: Any, args: list[Any], kwargs: Any) -> Awaitable[Any] | Any:
        return self.resolve(source, info, kwargs)


def our_field(name: str, of: Any, resolve: Resolve, *arguments: StrawberryArgument) -> OurField:
    field = OurField(python_name=name, graphql_name=name, type_annotation=StrawberryAnnotation(of))
    field.resolve = resolve
    field.arguments = list(arguments)
    return field


def schema_of(*fields: StrawberryField, **others: Any) -> strawberry.Schema:
    query: Any = strawberry.type(types.new_class("Query"))
    query.__strawberry_definition__.fields = list(fields)
    return strawberry.Schema(query, **others, config=StrawberryConfig(auto_camel_case=False))


def empty_type(name: str) -> Any:
    return strawberry.type(types.new_class(name), name=name, description="Made first, filled later.")


async def test_strawberry_takes_types_whose_fields_are_set_after_they_are_made() -> None:
    fruit = empty_type("Fruit")
    fruit.__strawberry_definition__.fields = [
        our_field("size", int, lambda source, info, kwargs: source),
        our_field("twins", StrawberryList(StrawberryOptional(fruit)), lambda source, info, kwargs: [source + 1, None]),
    ]
    schema = schema_of(our_field("fruit", StrawberryOptional(fruit), lambda source, info, kwargs: 1))

    result = await schema.execute("{ fruit { size twins { size } } }")

    assert (result.data, result.errors) == ({"fruit": {"size": 1, "twins": [{"size": 2}, None]}}, None)
    assert isinstance(schema._schema, graphql.GraphQLSchema)
    assert print_schema(schema).startswith('''"""Made first, filled later."""
type Fruit {
  size: Int!
  twins: [Fruit]!
}''')


async def test_strawberry_gives_a_field_that_is_not_basic_the_context_the_arguments_and_graphql_cores_info() -> None:
    seen: list[Any] = []

    async def resolve(source: Any, info: Any, kwargs: dict[str, Any]) -> int:
        raw = info._raw_info
        seen.append((info.context, kwargs, [node.alias.value for node in raw.field_nodes], raw.variable_values))
        return 1

    argument = StrawberryArgument("size", "size", StrawberryAnnotation(StrawberryOptional(int)))
    schema = schema_of(our_field("fruit", int, resolve, argument))

    await schema.execute("{ one: fruit two: fruit(size: 7) three: fruit(size: null) }", context_value="context")

    assert seen == [
        ("context", {}, ["one"], {}),
        ("context", {"size": 7}, ["two"], {}),
        ("context", {"size": None}, ["three"], {}),
    ]


async def test_strawberry_leaves_an_input_the_mapping_that_graphql_core_made() -> None:
    where: Any = strawberry.input(types.new_class("Where"), name="Where")
    where.__strawberry_definition__.fields = [
        StrawberryField(
            python_name=name,
            graphql_name=name,
            type_annotation=StrawberryAnnotation(StrawberryOptional(int)),
            default=UNSET,
        )
        for name in ("and", "eq")
    ]
    where.__strawberry_definition__.from_input = lambda _, value, context: value
    seen: list[Any] = []

    def resolve(source: Any, info: Any, kwargs: dict[str, Any]) -> int:
        seen.append(kwargs)
        return 1

    argument = StrawberryArgument("where", "where", StrawberryAnnotation(where))
    schema = schema_of(our_field("fruit", int, resolve, argument))

    await schema.execute("{ fruit(where: { eq: null }) }")

    assert seen == [{"where": {"eq": None}}]


async def test_strawberry_asks_is_type_of_which_member_of_a_union_a_value_is() -> None:
    fruit, nut = empty_type("Fruit"), empty_type("Nut")
    for cls, kind in ((fruit, str), (nut, int)):
        cls.__strawberry_definition__.fields = [our_field("name", str, lambda source, info, kwargs: str(source))]
        cls.__strawberry_definition__.is_type_of = lambda value, info, kind=kind: isinstance(value, kind)
    snack = StrawberryUnion("Snack", (StrawberryAnnotation(fruit), StrawberryAnnotation(nut)), "To eat.")
    schema = schema_of(our_field("snacks", StrawberryList(snack), lambda source, info, kwargs: [1, "a"]))

    result = await schema.execute("{ snacks { __typename ... on Nut { name } } }")

    assert result.data == {"snacks": [{"__typename": "Nut", "name": "1"}, {"__typename": "Fruit"}]}


async def test_strawberry_parses_and_writes_a_scalar_by_its_definition() -> None:
    marker: Any = NewType("marker", str)  # type: ignore[misc]  # a marker, as resolvers/scalars.py makes them
    big = strawberry.scalar(name="Big", serialize=lambda value: f"{value}!", parse_value=lambda value: int(value))
    query: Any = strawberry.type(types.new_class("Query"))
    argument = StrawberryArgument("size", "size", StrawberryAnnotation(marker))
    query.__strawberry_definition__.fields = [
        our_field("twice", marker, lambda source, info, kwargs: kwargs["size"] * 2, argument)
    ]
    config = StrawberryConfig(auto_camel_case=False, scalar_map={marker: big})

    result = await strawberry.Schema(query, config=config).execute('{ twice(size: "21") }')

    assert result.data == {"twice": "42!"}
