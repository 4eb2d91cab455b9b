"""The file as GraphQL: parsed, and checked by graphql-core as far as it knows the language. We add the cures."""

from __future__ import annotations

import re
from dataclasses import replace

from graphql import (
    DirectiveNode,
    DocumentNode,
    FieldDefinitionNode,
    GraphQLError,
    GraphQLSyntaxError,
    NamedTypeNode,
    NameNode,
    NonNullTypeNode,
    ObjectTypeDefinitionNode,
    Source,
    TokenKind,
    TypeDefinitionNode,
    build_ast_schema,
    parse,
    validate_schema,
)
from graphql.language import Lexer, Visitor, visit
from graphql.validation.validate import validate_sdl

from resolvers.sdl.report import Report, near
from resolvers.sdl.words import DIRECTIVE_NAMES, SCALAR_NAMES, WORDS, words_schema

CURES: tuple[tuple[str, str], ...] = (
    (r"Unknown type '(Node|\w+(?:Connection|Edge)|PageInfo)'", "The API makes this type by itself: leave it out here"),
    (r"Unknown type", f"Declare it, or use a scalar: {', '.join(SCALAR_NAMES)}"),
    (r"(?:Unknown argument '\w*' on directive|Directive|Argument) '@(\w+)", "Expected {usage}"),
    (r"Unknown directive '@(\w+)'", f"Expected one of {', '.join(f'@{name}' for name in DIRECTIVE_NAMES)}{{near}}"),
    (r"The directive '@(\w+)' can only be used once", "Write one @{name} with all arguments"),
    (r"There can be only one type named '(\w+)'", "{taken}"),
    (r"can only be defined once|can be only one|only one schema|can only (?:include|implement) .* once", "Keep one"),
    (r"must define one or more", "Give it some, or remove it"),
    (r"must not begin with '__'", "Rename it"),
    (r"Interface field|must implement", "Write it in both alike: every type has all that its interfaces promise"),
    (r"must be Output Type", "An input holds arguments: use a scalar, an enum or a type declared with `type`"),
    (r"must be Input Type", "An argument is a scalar, an enum or an `input`: use the field's own type"),
    (r"can only include Object types", "Name types declared with `type` and @node"),
    (r"must only implement Interface types", "Declare it with `interface`, or leave it out"),
    (r"circular reference", "Leave one of the two out"),
    (r"finite value", "Make a field of the circle nullable"),
    (r"[Rr]oot type", "Declare the reads as `type Query {{ … }}`, and no other root"),
    (r"invalid default value", "Remove the default"),
    (r"Cannot extend", "Write every type in one piece, without `extend`"),
)
"""What to do about graphql-core's messages, by a pattern that is looked for in them; the first that fits counts."""

GLOBAL_ID = FieldDefinitionNode(
    name=NameNode(value="id"), arguments=(), type=NonNullTypeNode(type=NamedTypeNode(name=NameNode(value="ID")))
)


def read_document(source: Source, report: Report) -> DocumentNode:
    """Parse the file and check it as SDL, together with the words that it may use.

    Raises: ModelError when it cannot be parsed; every other mistake is in the report.
    """
    document = _parse(source, report)
    words = parse(Source(WORDS, "words"))
    whole = DocumentNode(definitions=(*words.definitions, *document.definitions))
    errors = validate_sdl(whole)
    for error in errors:
        if not _follows(error, errors, document, report):
            report.add_error(error, _cure(error.message))
    _check_types(whole, report)
    return document


def _parse(source: Source, report: Report) -> DocumentNode:
    try:
        if Lexer(source).advance().kind is TokenKind.EOF:
            report.add(
                None,
                'the file declares nothing: expected `extend schema @table(name: "…", partitionKey: "…")` and types '
                'like `type Box @node(key: "BOX_{number}") { number: ID! }`. Write them here',
            )
            report.raise_if_any()
        return parse(source)
    except GraphQLSyntaxError as syntax:
        report.add_error(syntax, "Mend this first: the rest of the file was not checked")
        report.raise_if_any()
        raise


def _follows(error: GraphQLError, errors: list[GraphQLError], document: DocumentNode, report: Report) -> bool:
    """Say whether an error lies inside what is refused whole: a directive in a wrong place, a second type of a name."""
    refused = [node for other in errors if "may not be used" in other.message for node in other.nodes or ()]
    refused += [
        node for node in document.definitions if isinstance(node, TypeDefinitionNode) and report.blames(node.name)
    ]
    position = [0, *(error.positions or ())][-1]
    inside = [node for node in refused if node.loc and node.loc.start <= position < node.loc.end]
    return bool(inside) and "may not be used" not in error.message


def _check_types(document: DocumentNode, report: Report) -> None:
    """Let graphql-core check what it knows of types: that interfaces are implemented, that inputs are inputs."""
    names = _AsServed()
    bare = visit(document, names)
    declared = {node.name.value for node in document.definitions if isinstance(node, TypeDefinitionNode)}
    # Without a type for every name it would check nothing at all.
    unknown = sorted(names.used - declared - set(SCALAR_NAMES))
    stand_ins = parse("".join(f"scalar {name} " for name in unknown)).definitions if unknown else ()
    schema = build_ast_schema(DocumentNode(definitions=(*bare.definitions, *stand_ins)), assume_valid_sdl=True)
    known_already = re.compile("|".join([*(rf"\b{name}\b" for name in unknown), "Query root type must be provided"]))
    for error in validate_schema(schema):
        if not known_already.search(error.message):
            report.add_error(error, _cure(error.message))


class _AsServed(Visitor):
    """Takes the directives away, gives nodes the `id` that the API gives them, and collects the types used."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[str] = set()

    def enter_directive(self, _: DirectiveNode, *__: object) -> object:
        return self.REMOVE

    def enter_object_type_definition(self, node: ObjectTypeDefinitionNode, *_: object) -> object:
        is_node = any(directive.name.value == "node" for directive in node.directives or ())
        if not is_node or any(field.name.value == "id" for field in node.fields or ()):
            return None
        return replace(node, fields=(*(node.fields or ()), GLOBAL_ID))

    def enter_named_type(self, node: NamedTypeNode, *_: object) -> None:
        self.used.add(node.name.value)


def _cure(message: str) -> str:
    for pattern, cure in CURES:
        if match := re.search(pattern, message):
            name = match[1] if match.re.groups else ""
            return cure.format(name=name, usage=_usage(name), near=near(name, DIRECTIVE_NAMES), taken=_taken(name))
    return "Write it as GraphQL's type language asks"


def _usage(name: str) -> str:
    """Say where a directive stands and what it takes: `@count(of: String!)` on FIELD_DEFINITION."""
    directive = words_schema().get_directive(name)
    if directive is None:
        return "another directive"
    arguments = ", ".join(f"{argument}: {entry.type}" for argument, entry in directive.args.items())
    return f"`@{name}({arguments})` on {' or '.join(place.name for place in directive.locations)}"


def _taken(name: str) -> str:
    if name in SCALAR_NAMES:
        return "The model language has it already: remove yours"
    return "The model language has one: rename yours" if f"enum {name} " in WORDS else "Rename one of them"
