"""A plan: an operation compiled for one set of the variables that decide what is selected."""

from __future__ import annotations

from typing import Any

from graphql import ExecutionResult, GraphQLSchema
from graphql.execution.values import VariableValues

from graph.codec import parse_json
from graph.loaders import Operation
from graph.model import Model
from graph.records import parse_records
from resolvers.plan.compiler import Compiler
from resolvers.plan.document import Collector, Surveyed
from resolvers.plan.failures import first
from resolvers.plan.objects import Objects
from resolvers.plan.run import Run


class Plan:
    """Executes one operation again and again."""

    def __init__(self, schema: GraphQLSchema, model: Model, operation: Surveyed, variables: VariableValues) -> None:
        self._collector = Collector(schema, operation, variables)
        compiler = Compiler(schema, model, self._collector)
        self._names, self._branches, self._leaves = compiler.roots()
        self._sought = compiler.sought.types
        self._parse = parse_records(model, compiler.sought.mentioned) or parse_json

    async def execute(self, operation: Operation, variables: VariableValues) -> ExecutionResult:
        """Run the plan; whatever goes wrong is in the result."""
        run = Run(operation, variables)
        try:
            return await self._run(run)
        finally:
            # What was prepared may lead back to the run.
            run.prepared.clear()

    async def _run(self, run: Run) -> ExecutionResult:
        operation, root = run.operation, Objects([None], lambda _: ())
        values: dict[str, Any] = {name: leaf(run, root)[0] for name, leaf in self._leaves.items()}
        operation.hands, operation.sought, operation.parse = 1, self._sought, self._parse
        found = await operation.together([branch(run, root) for _, branch in self._branches])
        for (names, _), column in zip(self._branches, found, strict=True):
            values.update(zip(names, column, strict=True))
        data: dict[str, Any] | None = {name: values[name] for name in self._names}
        failed = first(list(values.values()))
        if failed is not None:
            data = None
            run.failures.absorb(failed, ())
        errors = run.failures.located(self._collector.locate) if run.failures else None
        return ExecutionResult(data, errors)
