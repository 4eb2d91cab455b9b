"""A subscription under way: each change that means something to it is executed, with fresh loaders, as a response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from graphql import FieldNode, GraphQLError, GraphQLSchema
from graphql.execution.values import VariableValues, get_argument_values

from graph.errors import StreamError
from graph.loaders import Operation
from graph.model import Model
from graph.streams.change import Change
from graph.streams.hub import Hub, Subscription
from graph.streams.interests import Interest
from graph.streams.places import read_places, write_places
from resolvers.documents import Prepared
from resolvers.meanings import field_of
from resolvers.subscription import SubscriptionField, Told

Execute = Callable[[Operation, Told | GraphQLError], Awaitable[dict[str, Any]]]
"""(operation, what is told, or what kept it from being known) → the response."""


class Root:
    """The root field of a subscription, with its arguments. Raises GraphQLError when a variable does not fit."""

    def __init__(self, model: Model, schema: GraphQLSchema, prepared: Prepared, variables: VariableValues) -> None:
        ((self.response_name, details),) = prepared.root(schema, variables).items()
        self.node: FieldNode = details[0].node
        assert schema.subscription_type is not None
        definition = schema.subscription_type.fields[self.node.name.value]
        self.arguments: Mapping[str, Any] = get_argument_values(definition, self.node, variables)
        self.field: SubscriptionField = field_of(definition)
        self.name = self.field.name_of(model, self.arguments)
        """The name of what is followed: a cursor of anything else is refused."""

    def located(self, error: Exception) -> GraphQLError:
        """Say of an error that it happened here."""
        return GraphQLError(str(error), self.node, path=[self.response_name], original_error=error)


class ChangeEvents:
    """The responses of one subscription, an Events."""

    def __init__(
        self,
        root: Root,
        interest: Interest,
        subscription: Subscription,
        begin: Callable[[], Operation],
        execute: Execute,
    ) -> None:
        self._root = root
        self._interest = interest
        self._subscription = subscription
        self._begin = begin
        self._execute = execute

    def __aiter__(self) -> ChangeEvents:
        return self

    async def __anext__(self) -> dict[str, Any]:
        async for change in self._subscription:
            response = None if change.is_nothing else await self._response(change)
            if response is not None:
                return response
        raise StopAsyncIteration

    async def _response(self, change: Change) -> dict[str, Any] | None:
        operation = self._begin()
        try:
            told: Told | GraphQLError
            try:
                event = await self._interest.event(operation, change)
                if event is None:
                    return None
                cursor = write_places(self._subscription.places, self._root.name)
                told = Told(self._interest, event, cursor)
            except Exception as error:
                # What cannot be read now ends one response, and not the subscription.
                told = self._root.located(error)
            return await self._execute(operation, told)
        finally:
            await operation.close()

    async def aclose(self) -> None:
        """End the subscription."""
        await self._subscription.aclose()


async def follow(
    hub: Hub | None, root: Root, begin: Callable[[], Operation], execute: Execute
) -> ChangeEvents | GraphQLError:
    """Begin a subscription; what refuses it is returned."""
    operation = begin()
    try:
        if hub is None:
            raise StreamError("changes are not followed by this server: expected one that reads the tables' streams")
        interest = await root.field.follow(operation, root.arguments)
        after = root.arguments.get("after")
        places = None if after is None else read_places(after, root.name)
        return ChangeEvents(root, interest, await hub.follow(interest.topics, places), begin, execute)
    except Exception as error:
        return root.located(error)
    finally:
        await operation.close()
