"""The arguments of @find fields: which path of the item each one binds, and to a value, a list or a range."""

from __future__ import annotations

from graphql import InputValueDefinitionNode, print_ast

from graph.keys import Path
from graph.model import Argument, FieldKind, ItemType, RangeInput
from graph.scalars import Scalar
from resolvers.sdl.declarations import Declarations, DeclaredField, deprecation, text_of, type_ref
from resolvers.sdl.report import Report
from resolvers.sdl.templates import Templates
from resolvers.sdl.words import PAGING_ARGUMENTS, RESOLVER_ARGUMENTS


class Arguments:
    """Makes the arguments of @find fields, and the inputs that they use."""

    def __init__(self, declared: Declarations, templates: Templates, report: Report) -> None:
        self._declared = declared
        self._templates = templates
        self._report = report
        self.inputs: dict[str, RangeInput] = {}

    def of(self, field: DeclaredField, item: ItemType) -> tuple[Argument, ...] | None:
        """Make the arguments of a field, or None when one of them has a mistake."""
        made = [self._argument(field, item, node) for node in field.node.arguments or ()]
        known = tuple(argument for argument in made if argument is not None)
        return known if len(known) == len(made) else None

    def _argument(self, field: DeclaredField, item: ItemType, node: InputValueDefinitionNode) -> Argument | None:
        name, type_ = node.name.value, type_ref(node.type)
        where = f"`Query.{field.name}({name}:)`"
        if name in (*RESOLVER_ARGUMENTS, *PAGING_ARGUMENTS):
            owner = "which every connection has" if name in PAGING_ARGUMENTS else "which resolvers use themselves"
            self._report.add(
                node,
                f"{where}: an argument cannot be named `{name}`, {owner}: expected another name. Rename the field that "
                f'it searches by, and keep its attribute with @attribute(name: "{item.fields[name].attribute}")',
            )
            return None
        if node.default_value is not None:
            self._report.add(
                node.default_value,
                f"{where} has the default {print_ast(node.default_value)}: expected none, for an argument that is left "
                "out searches by nothing. Remove it",
            )
            return None
        if item.fields[name].blob is not None:
            self._report.add(
                node,
                f"{where}: `{item.name}.{name}` has @blob, and what is compressed or lies elsewhere cannot be searched "
                "by: expected a field without. Search by another field, or remove @blob",
            )
            return None
        path, scalar = self._searched(item, name)
        if scalar is None:
            self._report.add(
                node,
                f"{where}: `{item.name}.{name}` is of type {item.fields[name].type}, which cannot be searched by: "
                "expected a scalar field, or a node that one value names. Search by another field",
            )
            return None
        range_input = self._range(node, scalar) if type_.named in self._declared.inputs else None
        is_value = type_.named == scalar.name and (type_.of is None or (type_.of.of is None and type_.of.required))
        if not is_value and (range_input is None or type_.of is not None):
            self._report.add(
                node,
                f"{where} is of type {type_}, and `{item.name}.{name}` is searched by {scalar.name}: expected "
                f"{scalar.name}, [{scalar.name}!], or a range like `input {scalar.name}Range {{ from: {scalar.name}  "
                f"to: {scalar.name} }}`, both bounds inclusive. Write one of them",
            )
            return None
        if range_input is not None:
            self.inputs[range_input.name] = range_input
        range_fields = None if range_input is None else ("from", "to")
        return Argument(name, path, type_, scalar, range_fields, text_of(node.description), deprecation(node))

    def _searched(self, item: ItemType, name: str) -> tuple[Path, Scalar | None]:
        """Give the path that an argument binds, also through a reference; without a scalar there is none."""
        field = item.fields[name]
        if field.kind is FieldKind.REFERENCE and len(field.refs) == 1:
            (ref,) = field.refs.values()
            if len(ref.variables) == 1:
                return (name, *ref.variables[0].path), ref.variables[0].scalar
        return (name,), None if field.type.of is not None or not (
            field.scalar and field.scalar.in_key
        ) else field.scalar

    def _range(self, node: InputValueDefinitionNode, scalar: Scalar) -> RangeInput | None:
        declared = self._declared.inputs[type_ref(node.type).named]
        fields = {entry.name.value: type_ref(entry.type) for entry in declared.fields or ()}
        if fields.keys() != {"from", "to"} or any(entry.name != scalar.name for entry in fields.values()):
            return None
        texts = {entry.name.value: text_of(entry.description) for entry in declared.fields or ()}
        return RangeInput(declared.name.value, fields, text_of(declared.description), texts)
