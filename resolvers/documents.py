"""Documents: parsed, measured, validated, looked through and compiled once, and kept as long as they are asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import fields
from typing import Any

from graphql import (
    ASTValidationRule,
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    NoFragmentCyclesRule,
    OperationDefinitionNode,
    UniqueFragmentNamesRule,
    validate,
)
from graphql.execution.values import VariableValues

from graph.loaders import Limits
from graph.model import Model
from graph.observation import step
from graph.permissions import Denied, Permissions
from resolvers.caching import Caching
from resolvers.cost import Cost, compile_cost
from resolvers.limits import LARGEST_TOLD, DocumentLimits, Unmeasurable, exceeded, parse_within
from resolvers.operation import CachePolicy, Request
from resolvers.permitted import Permitted
from resolvers.persisted import PersistedDocuments
from resolvers.plan.document import Collector, Fields, Surveyed, survey
from resolvers.plan.plan import Plan
from resolvers.stale import CopiesShown

DOCUMENTS_CACHED = 1000
CHARACTERS_CACHED = 100_000
"""Length of a document that is kept at most: a thousand of the longest bodies would fill the memory."""
PLANS_CACHED = 16
"""Plans of one operation that are kept: one for each set of the variables that decide what is selected."""
INTROSPECTION = ("__schema", "__type")
MEASURABLE = (UniqueFragmentNamesRule, NoFragmentCyclesRule)
"""The rules that refuse what cannot be measured; each visits a fragment once."""
ERRORS_TOLD = 10
"""Errors of one document that are told: each may quote the value around it, which makes many of them slow."""
CHARACTERS_TOLD = 1000
"""Length of an error's message, for the same reason."""

UNLIMITED = DocumentLimits(**{each.name: LARGEST_TOLD for each in fields(DocumentLimits)})
"""The limits of trusted documents: whoever wrote the API's clients may ask for anything."""


class Prepared:
    """One operation of a document, with its plans."""

    def __init__(self, surveyed: Surveyed, *, shows_copies: bool, cache: CachePolicy | None) -> None:
        self.document = surveyed.document
        self.definition = surveyed.definition
        self.kind = surveyed.definition.operation.value
        self.name = surveyed.definition.name.value if surveyed.definition.name else None
        self.text = _text_of(surveyed.document) or ""
        self.is_incremental = surveyed.is_incremental
        self.is_plain = surveyed.is_plain
        """Whether plans serve it."""
        self.estimated: float | None = None
        """What it is estimated to read, where that is the same whatever its variables, and is known to be no more than
        it may cost."""
        self.shows_copies = shows_copies
        """Whether its answers may show copies that are behind."""
        self.introspects = any(
            isinstance(one, FieldNode) and one.name.value in INTROSPECTION
            for one in surveyed.definition.selection_set.selections
        )
        """Whether it asks for the schema itself."""
        self.cache = cache
        self._surveyed = surveyed
        self._refused: OrderedDict[frozenset[Denied], list[GraphQLError]] = OrderedDict()
        self._plans: OrderedDict[tuple[Any, ...], Plan] = OrderedDict()
        self._costs: OrderedDict[tuple[Any, ...], Cost] = OrderedDict()

    def refused(self, permissions: Permissions, permitted: Permitted) -> list[GraphQLError]:
        """List what of the document its caller may not ask for, by their kind. Cost: one visit for each kind."""
        found = self._refused.get(permissions.denied)
        if found is None:
            found = self._refused[permissions.denied] = permitted.errors(self.document, permissions)
            if len(self._refused) > PLANS_CACHED:
                self._refused.popitem(last=False)
        return found

    def root(self, schema: GraphQLSchema, variables: VariableValues) -> Fields:
        """Collect the root fields for these variables."""
        return Collector(schema, self._surveyed, variables).root()

    def cost(self, schema: GraphQLSchema, model: Model, limits: Limits, variables: VariableValues) -> Cost | None:
        """Give the estimate of what is read for these variables; None where one of them does not say what."""
        key = self._deciding(variables)
        if key is None:
            return None
        found = self._costs.get(key)
        if found is None:
            found = self._costs[key] = compile_cost(schema, model, limits, self._surveyed, variables)
            if len(self._costs) > PLANS_CACHED:
                self._costs.popitem(last=False)
        return found

    def _deciding(self, variables: VariableValues) -> tuple[Any, ...] | None:
        names = self._surveyed.deciding
        if not names:
            return ()
        key = tuple([variables.coerced.get(name) for name in names])
        return None if any([type(value) is not bool for value in key]) else key

    def plan(self, schema: GraphQLSchema, model: Model, variables: VariableValues) -> Plan | None:
        """Give the plan for these variables; None where one that decides what is selected does not say."""
        key = self._deciding(variables)
        if key is None:
            return None
        found = self._plans.get(key)
        if found is None:
            with step("compile"):
                found = self._plans[key] = Plan(schema, model, self._surveyed, variables)
            if len(self._plans) > PLANS_CACHED:
                self._plans.popitem(last=False)
        return found


class Documents:
    """The documents that were asked for last, each as what it prepares, or as what is wrong with it."""

    def __init__(
        self,
        schema: GraphQLSchema,
        model: Model,
        rules: Collection[type[ASTValidationRule]],
        limits: DocumentLimits,
        persisted: PersistedDocuments,
        *,
        hide_suggestions: bool = False,
    ) -> None:
        self._schema = schema
        self._copies_shown = CopiesShown(schema)
        self._caching = Caching(schema, model)
        self._persisted = persisted
        self._rules = rules
        self._limits = limits
        self._hides = hide_suggestions
        self._documents: OrderedDict[str, DocumentNode | list[GraphQLError]] = OrderedDict()
        self._prepared: dict[str, dict[str | None, Prepared]] = {}

    def prepare(self, request: Request) -> Prepared | list[GraphQLError]:
        """Find the document of a request, and the operation in it that is to be executed."""
        query = self._persisted.text(request)
        if isinstance(query, GraphQLError):
            return [query]
        prepared = self._prepare(query, request.operation_name)
        if request.document_id is not None and request.query and isinstance(prepared, Prepared):
            self._persisted.keep(request.document_id, _text_of(prepared.document) or query)
        return prepared

    def faults(self, query: str) -> list[GraphQLError]:
        """Say what is wrong with a document whichever of its operations is asked for; it is remembered."""
        document = self._document(query)
        return document if isinstance(document, list) else []

    def _prepare(self, query: str, operation_name: str | None) -> Prepared | list[GraphQLError]:
        """Parse, measure and validate a document and choose its operation, or remember how that went last time."""
        known = self._prepared.get(query)
        if known is not None and (found := known.get(operation_name)) is not None:
            self._documents.move_to_end(query)
            return found
        document = self._document(query)
        if isinstance(document, list):
            return document
        definition = choose(document, operation_name)
        if isinstance(definition, GraphQLError):
            return [definition]
        shows_copies = self._copies_shown.by(document, definition)
        cache = self._caching.policy(document, definition)
        prepared = Prepared(survey(document, definition), shows_copies=shows_copies, cache=cache)
        if query in self._documents:
            self._prepared.setdefault(query, {})[operation_name] = prepared
        return prepared

    def _document(self, query: str) -> DocumentNode | list[GraphQLError]:
        found = self._documents.get(query)
        if found is not None:
            self._documents.move_to_end(query)
            return found
        found = self._read(query)
        if len(query) <= CHARACTERS_CACHED:
            self._documents[query] = found
            if len(self._documents) > DOCUMENTS_CACHED:
                oldest, _ = self._documents.popitem(last=False)
                self._prepared.pop(oldest, None)
        return found

    def _read(self, query: str) -> DocumentNode | list[GraphQLError]:
        limits = UNLIMITED if self._persisted.is_trusted(query) else self._limits
        try:
            with step("parse"):
                document = parse_within(query, limits)
        except GraphQLError as refused:
            # Kept without what was on the stack: every token that had been read.
            refused.__context__ = None
            return [refused.with_traceback(None)]
        with step("validate"):
            # Measured before it is validated, which takes time by the square of what is to be merged.
            try:
                errors = exceeded(document, limits)
            except Unmeasurable:
                errors = self._validate(document, MEASURABLE)
            return errors or self._validate(document, self._rules) or document

    def _validate(self, document: DocumentNode, rules: Collection[type[ASTValidationRule]]) -> list[GraphQLError]:
        errors = validate(self._schema, document, rules, max_errors=ERRORS_TOLD, hide_suggestions=self._hides)
        for error in errors:
            # A literal that Python will not read, like an integer of 5,000 digits, is the document's fault.
            error.original_error = None
            error.extensions = {"code": "GRAPHQL_VALIDATION_FAILED"} | (error.extensions or {})
            if len(error.message) > CHARACTERS_TOLD:
                error.message = error.message[:CHARACTERS_TOLD] + " …"
        return errors


def _text_of(document: DocumentNode) -> str | None:
    """Give the text that a document was parsed from: the one that is kept here, and not another copy of it."""
    return document.loc.source.body if document.loc is not None else None


def choose(document: DocumentNode, name: str | None) -> OperationDefinitionNode | GraphQLError:
    """Choose the operation to execute. Source: GraphQL specification, GetOperation."""
    operations = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
    names = [node.name.value for node in operations if node.name]
    known = f"expected one of {', '.join(names)}" if names else "the document names none"
    if name is None:
        if len(operations) == 1:
            return operations[0]
        problem = f"the document holds {len(operations)} operations and `operationName` is missing: {known}"
        return GraphQLError(problem, extensions={"code": "OPERATION_NAME_REQUIRED"})
    for node in operations:
        if node.name and node.name.value == name:
            return node
    problem = f"the document holds no operation named {name!r}: {known}"
    return GraphQLError(problem, extensions={"code": "OPERATION_NOT_FOUND"})
