"""schema.graphql → Model. Every mistake of the file is reported at once, with line, column and cure."""

from __future__ import annotations

from graphql import Source

from graph.model import Model, ObjectType
from resolvers.sdl.arguments import Arguments
from resolvers.sdl.auth import Auth
from resolvers.sdl.blobs import Blobs
from resolvers.sdl.caching import cache_hints
from resolvers.sdl.checks import Checks
from resolvers.sdl.copies import check_copies
from resolvers.sdl.declarations import Declarations, declare
from resolvers.sdl.document import read_document
from resolvers.sdl.fields import Fields
from resolvers.sdl.finds import Finds
from resolvers.sdl.inward import inward
from resolvers.sdl.items import Items
from resolvers.sdl.lookups import Lookups
from resolvers.sdl.names import check_names
from resolvers.sdl.relationships import Relationships
from resolvers.sdl.report import Report
from resolvers.sdl.rivals import Rivals
from resolvers.sdl.search import Search
from resolvers.sdl.tables import read_tables
from resolvers.sdl.templates import Templates
from resolvers.sdl.upkeep import Upkeep


def compile_model(text: str, name: str = "schema.graphql", *, table: str | None = None) -> Model:
    """Compile the text of a model file; `table` serves another table than the first one that the file names.

    A step goes on behind the mistakes of those before it, and leaves out what only follows from them.
    Raises: ModelError with every mistake found.
    """
    source = Source(text, name)
    report = Report(source)
    try:
        declared = declare(read_document(source, report), report)
        _check_roots(declared, report)
        model = _build(declared, report, table)
    except RecursionError:
        report.add(None, "the types refer to each other in too long a chain: expected fewer than a hundred. Shorten it")
        report.raise_if_any()
        raise
    report.raise_if_any()
    return model


def _check_roots(declared: Declarations, report: Report) -> None:
    """Report other roots than Query, which are then nothing else either, and a file without items."""
    for node in declared.schema_nodes:
        for root in node.operation_types or ():
            if root.type.name.value not in ("Query", "Mutation", "Subscription"):
                declared.objects.pop(root.type.name.value, None)
                report.add(
                    root,
                    f"the root of every {root.operation.value} cannot be `{root.type.name.value}`: expected `type "
                    "Query` alone, for the API makes its roots by itself. Remove it from `schema`, and name the type "
                    "`Query`",
                )
    for name in ("Mutation", "Subscription"):
        if name in declared.nodes:
            declared.objects.pop(name, None)
            report.add(
                declared.nodes[name],
                f"the model declares `{name}`: expected items and how they are read, for the API makes its writes by "
                "itself. Remove it",
            )
    if not declared.items and not report.blames(*declared.nodes.values()):
        report.add(
            None,
            'no type has items: expected one with @node, like `type Box @node(key: "BOX_{number}") { number: ID! }`. '
            "Write @node on the types that are stored",
        )


def _build(declared: Declarations, report: Report, table: str | None) -> Model:
    tables = read_tables(declared, report, table)
    templates = Templates(declared, report)
    fields = Fields(declared, templates, report)
    maker = Items(declared, templates, fields, tables, report)
    items = {name: maker.make(type_) for name, type_ in declared.items.items()}
    objects: dict[str, ObjectType] = {
        name: fields.nested(name, tables.case(None)) for name in (*declared.objects, *declared.interfaces)
    }
    Checks(declared, tables, items, report).all()
    arguments = Arguments(declared, templates, report)
    auth = Auth(declared, tables, items, report)
    items = auth.all()
    finds = auth.finds(Finds(declared, arguments, tables, items, auth.tenants, report).all())
    relationships = auth.relationships(Relationships(declared, tables, items, report).all())
    Upkeep(declared, items, relationships, report).check()
    Blobs(declared, items, report).check()
    items = Search(declared, tables, items, report).all()
    lookups = auth.lookups(Lookups(declared, tables, items, report).all())
    rivals = Rivals(declared, tables, items, report).all()
    check_names(declared, report)
    model = Model(
        tables={entry.name: entry for entry in tables.by_name.values()},
        items=items,
        objects=objects,
        enums=declared.enums,
        unions=declared.unions,
        inputs=arguments.inputs,
        relationships=relationships,
        finds=finds,
        lookups=lookups,
        rivals=rivals,
        inward=inward(items, tables),
        cache_hints=cache_hints(declared, report),
    )
    check_copies(declared, model, report)
    return model
