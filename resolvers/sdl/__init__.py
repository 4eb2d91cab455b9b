"""schema.graphql → Model. Every mistake of the file is reported at once, with line, column and cure."""

from __future__ import annotations

from graphql import (
    DirectiveNode,
    DocumentNode,
    GraphQLError,
    GraphQLSyntaxError,
    Source,
    build_ast_schema,
    parse,
    validate_schema,
)
from graphql.language import Visitor, visit
from graphql.validation.validate import validate_sdl

from graph.model import Model
from resolvers.sdl import checks
from resolvers.sdl.declarations import Declarations, declare
from resolvers.sdl.finds import Finds
from resolvers.sdl.items import Items
from resolvers.sdl.relationships import Relationships
from resolvers.sdl.report import Report
from resolvers.sdl.tables import read_tables
from resolvers.sdl.templates import Templates
from resolvers.sdl.words import SCALAR_NAMES, WORDS, words_schema


def compile_model(text: str, name: str = "schema.graphql", *, table: str | None = None) -> Model:
    """Compile the text of a model file; `table` serves another table than the first one that the file names.

    Raises: ModelError with every mistake found.
    """
    source = Source(text, name)
    report = Report(source)
    document = _parse(source, report)
    declared = declare(document, report)
    report.raise_if_any()
    _check_references(declared, report)
    report.raise_if_any()
    return _build(declared, report, table)


def _parse(source: Source, report: Report) -> DocumentNode:
    """Parse the file and check it as SDL, together with the words that it may use."""
    try:
        document = parse(source)
    except GraphQLSyntaxError as syntax:
        report.add_error(syntax)
        report.raise_if_any()
        raise AssertionError("the report raises") from None
    words = parse(Source(WORDS, "words"))
    whole = DocumentNode(definitions=(*words.definitions, *document.definitions))
    for error in validate_sdl(whole):
        report.add_error(error, _cure(error))
    report.raise_if_any()
    _check_types(whole, report)
    return document


def _cure(error: GraphQLError) -> str:
    """Say what the word at fault does take."""
    directives = words_schema().directives
    for directive in directives:
        if f'directive "@{directive.name}"' in error.message and directive.args:
            return f"@{directive.name} takes {', '.join(directive.args)}."
    if error.message.startswith("Unknown directive"):
        known = [
            f"@{directive.name}"
            for directive in directives
            if directive.name not in ("skip", "include", "oneOf", "specifiedBy")
        ]
        return f"The model's directives are {', '.join(known)}."
    if error.message.startswith("Unknown type"):
        return f"Declare it, or use a scalar: {', '.join(SCALAR_NAMES)}."
    return ""


def _check_types(document: DocumentNode, report: Report) -> None:
    """Let graphql-core check what it knows of types: that interfaces are implemented, that inputs are inputs."""

    class WithoutMapping(Visitor):
        def enter_directive(self, node: DirectiveNode, *_: object) -> object:
            return None if node.name.value == "deprecated" else self.REMOVE

    bare = visit(document, WithoutMapping())
    for error in validate_schema(build_ast_schema(bare, assume_valid_sdl=True)):
        if not error.message.startswith("Query root type must be provided"):
            report.add_error(error)


def _check_references(declared: Declarations, report: Report) -> None:
    for name in ("Mutation", "Subscription"):
        if name in declared.objects:
            report.add(
                declared.objects[name].node, f"the model declares no `{name}`: it describes items and how they are read"
            )
    if not declared.items:
        report.add(
            None, 'no type has items: expected at least one type with @node, like `type Box @node(key: "BOX_{number}")`'
        )


def _build(declared: Declarations, report: Report, table: str | None) -> Model:
    made_tables, cases = read_tables(declared, report, table)
    templates = Templates(declared, report)
    maker = Items(declared, templates, made_tables, cases, report)
    items = {name: item for name, type_ in declared.items.items() if (item := maker.make(type_)) is not None}
    # What follows looks at whole types: over broken ones it would only report consequences of the first mistakes.
    is_whole = report.is_clean
    case = next(iter(cases.values()), "AS_WRITTEN")
    for name in (*declared.objects, *declared.interfaces):
        maker.nested_with(name, case)
    links = Relationships(declared, made_tables, items, report)
    patterns = Finds(declared, templates, made_tables, items, report)
    if is_whole or all(item.layouts for item in items.values()):
        relationships, finds, lookups = links.all(), patterns.all(), patterns.lookups()
        rivals = checks.find_rivals(declared, made_tables, items, report)
        checks.check_edges(declared, items, report)
        checks.check_key_types(declared, items, report)
        checks.check_virtual(declared, items, report)
        checks.check_periods(declared, made_tables, items, report)
        checks.check_names(declared, items, finds, report)
    report.raise_if_any()
    return Model(
        tables={entry.name: entry for entry in made_tables.values()},
        items=items,
        objects=maker.objects,
        enums=declared.enums,
        unions=declared.unions,
        inputs=patterns.inputs,
        relationships=relationships,
        finds=finds,
        lookups=lookups,
        rivals=rivals,
    )
