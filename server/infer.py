"""`tablegraph infer`: a schema.graphql for tables that exist, or for a model of NoSQL Workbench."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from graph.client import Client
from graph.entity import Entity, read_entity
from graph.errors import GraphError, InputError
from graph.infer.sample import Sample
from graph.model import FieldKind, ItemType, Model
from graph.patterns import has_lookup, lookup_arguments, lookup_name
from resolvers.infer.trial import Inferred, infer
from server.formats.workbench import read_workbench
from server.maintenance import segments
from server.sampling import Sampler, Wish
from server.settings import Settings, all_settings
from server.transports import open_transport

FAILED, MISUSED = 1, 2
ITEMS, SEGMENTS, UNITS = 1000, 4, 600

Region = Callable[[Settings], str | None]


def add_infer(commands: Any, region: Region) -> None:
    """Add the command; `region` is what boto3 is told of the region."""
    text = "write a schema.graphql for a table that exists, from a sample of its items"
    command = commands.add_parser("infer", help=text, description=text)
    command.set_defaults(run=lambda options, settings: _run(options, settings, region))
    command.add_argument(
        "--table",
        dest="tables",
        action="append",
        default=[],
        metavar="NAME",
        help="the table; more than one may be named",
    )
    command.add_argument("--workbench", type=Path, metavar="FILE", help="a model of NoSQL Workbench, instead of tables")
    command.add_argument(
        "--sample", type=_count, default=ITEMS, metavar="N", help=f"items to read of each table (default: {ITEMS:,})"
    )
    command.add_argument("--all", action="store_true", help="read all items")
    command.add_argument(
        "--segments",
        type=segments,
        default=SEGMENTS,
        metavar="K",
        help=f"parts read side by side (default: {SEGMENTS})",
    )
    command.add_argument(
        "--read-units",
        type=_count,
        metavar="U",
        help=f"read units to spend on each table at most (default: {UNITS}; with --all, all it takes)",
    )
    command.add_argument(
        "--out",
        type=Path,
        default=Path("schema.graphql"),
        metavar="FILE",
        help="where to write (default: schema.graphql)",
    )
    command.add_argument("--force", action="store_true", help="write over a file that is there")
    for setting in all_settings():
        if setting.name in ("endpoint_url", "transport"):
            command.add_argument(
                setting.flag, dest=setting.name, metavar="VALUE", help=f"{setting.doc} [{setting.variable}]"
            )


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10**9:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, got {text!r}")
    return int(text)


def _run(options: argparse.Namespace, settings: Settings, region: Region) -> int:
    try:
        return _infer(options, settings, region)
    except InputError as error:
        return _fail(str(error), MISUSED)
    except GraphError as error:
        return _fail(f"{error} [{error.code}]", FAILED)
    except FileNotFoundError as error:
        return _fail(f"there is no file {error.filename}", MISUSED)
    except OSError as error:
        return _fail(f"{error.filename or 'a file'} cannot be read or written: {error.strerror}", FAILED)


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"{message}\n")
    return code


def _infer(options: argparse.Namespace, settings: Settings, region: Region) -> int:
    if bool(options.tables) == bool(options.workbench):
        raise InputError("expected --table NAME, or --workbench FILE: name one of them")
    if options.out.exists() and not options.force:
        raise InputError(f"{options.out} is there already: name another file with --out, or write over it with --force")
    if not options.out.absolute().parent.is_dir():
        raise InputError(f"there is no folder {options.out.parent}: make it, or name another file with --out")
    samples = read_workbench(options.workbench) if options.workbench else _read(options, settings, region)
    found = infer(samples)
    new = options.out.with_name(options.out.name + ".writing")
    try:
        new.write_text(found.text)
        new.replace(options.out)
    finally:
        new.unlink(missing_ok=True)
    _tell(options, settings, samples, found)
    return 0


def _read(options: argparse.Namespace, settings: Settings, region: Region) -> list[Sample]:
    units = options.read_units or (None if options.all else UNITS)
    wish = Wish(None if options.all else options.sample, options.segments, units)
    transport = open_transport(settings, region(settings))

    async def read() -> list[Sample]:
        sampler = Sampler(Client(transport, settings.max_in_flight), wish)
        return [await sampler.sample(name) for name in dict.fromkeys(options.tables)]

    try:
        return asyncio.run(read())
    finally:
        transport.close()


def _tell(options: argparse.Namespace, settings: Settings, samples: list[Sample], found: Inferred) -> None:
    """Say what was found, and how to go on."""
    fitting = found.items - len(found.unfit)
    unsure = found.text.count("# unsure:")
    sys.stdout.write(
        f"{options.out}: {len(found.model.items)} types; {fitting:,} of {found.items:,} items fit exactly one of them\n"
    )
    if unsure:
        places = "1 place is" if unsure == 1 else f"{unsure} places are"
        sys.stdout.write(f"{places} marked `# unsure:`, with what speaks for it\n")
    endpoint = f" --endpoint-url {settings.endpoint_url}" if settings.endpoint_url else ""
    sys.stdout.write(f"check it:  tablegraph check --schema {options.out}\n")
    if options.workbench:
        sys.stdout.write(f"make it:   tablegraph table apply --schema {options.out}{endpoint}\n")
    sys.stdout.write(f"serve it:  tablegraph serve --schema {options.out}{endpoint}\n")
    if (query := example(found.model, samples)) is not None:
        sys.stdout.write(f"ask it:    {query}\n")


def example(model: Model, samples: list[Sample]) -> str | None:
    """Write a query that finds one of the items seen."""
    for sample in samples:
        for type_ in model.items.values():
            for layout in type_.layouts if has_lookup(model, type_) else ():
                for item in sample.items if layout.table == sample.name else ():
                    entity = read_entity(model, layout, item)
                    if entity is not None and type_.is_node and not layout.mirror:
                        return _query(model, type_, entity)
    return None


def _query(model: Model, type_: ItemType, entity: Entity) -> str:
    entity.holds = None
    arguments = []
    for name, (path, _) in lookup_arguments(model, type_).items():
        value = entity.at(path)
        shown = int(value) if isinstance(value, Decimal) and value == int(value) else value
        arguments.append(f"{name}: {json.dumps(shown, ensure_ascii=False, default=str)}")
    values = [one.name for one in type_.fields.values() if one.kind is FieldKind.ATTRIBUTE and one.scalar is not None]
    return f"{{ {lookup_name(type_.name)}({', '.join(arguments)}) {{ {' '.join(values) or 'id'} }} }}"
