"""The commands `load` and `export`."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graph.bulk.items import ItemReader
from graph.bulk.records import Moment, RecordReader
from graph.client import Client, Transport
from graph.errors import GraphError, InputError
from graph.loaders import Graph
from graph.model import Model
from resolvers.sdl import compile_model
from server.checkpoint import Checkpoint, identity
from server.exporting import Export, Exported, export
from server.formats import FORMATS, ITEMS, RECORDS, Lines, format_of, format_of_lines
from server.formats.comma_separated import CommaSeparated
from server.formats.dynamodb_export import DynamoExport
from server.formats.json_lines import JsonLines
from server.loading import Outcome, Plan, Read, load
from server.settings import Settings, all_settings
from server.transports import open_transport

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
SETTINGS = ("schema", "table", "endpoint_url")

Region = Callable[[Settings], str | None]


def add_bulk(commands: Any, region: Region) -> None:
    """Add both commands; `region` is what boto3 is told of the region."""
    loading = _command(commands, "load", "load items into an existing table, from records or from items")
    loading.set_defaults(run=lambda options, settings: _run(_load, options, settings, region))
    loading.add_argument("file", metavar="FILE", help="what to load: a file, DynamoDB's export folder, or - for stdin")
    loading.add_argument("--format", choices=FORMATS, help="the format, where the name does not tell")
    loading.add_argument("--type", metavar="TYPE", help="the type of all records, where they have no __typename")
    _add_parallel(loading, "--parallel", 8, "BatchWriteItem requests in flight")
    loading.add_argument("--refused", type=Path, metavar="FILE", help="where to list all refused lines (JSON Lines)")
    loading.add_argument("--skip-refused", action="store_true", help="write the other lines although some are refused")
    loading.add_argument("--allow-unfit", action="store_true", help="write items that fit no type of the model, too")
    loading.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="where to keep how far the load is (default: FILE.loading)"
    )
    exporting = _command(commands, "export", "export the items of a table, as records or as items")
    exporting.set_defaults(run=lambda options, settings: _run(_export, options, settings, region))
    exporting.add_argument("file", metavar="FILE", help="where to: a file, a folder (dynamodb-export), or - for stdout")
    exporting.add_argument("--format", choices=FORMATS, help="the format (default: by the name's end, .jsonl or .csv)")
    exporting.add_argument("--type", metavar="TYPE", help="only items of this type; csv wants one")
    _add_parallel(exporting, "--segments", 4, "segments of the table that are scanned side by side")


def _command(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    for setting in all_settings():
        if setting.name in SETTINGS:
            help_ = f"{setting.doc} [{setting.variable}]".replace("%", "%%")
            command.add_argument(setting.flag, dest=setting.name, metavar="VALUE", help=help_)
    return command


def _add_parallel(command: argparse.ArgumentParser, flag: str, default: int, text: str) -> None:
    command.add_argument(flag, type=_count, default=default, metavar="N", help=f"{text} (default: {default})")


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to 256, got {text}")
    return int(text)


def _run(
    command: Callable[[argparse.Namespace, Settings, Region], int],
    options: argparse.Namespace,
    settings: Settings,
    region: Region,
) -> int:
    try:
        return command(options, settings, region)
    except InputError as error:
        return _fail(str(error), MISUSED)
    except GraphError as error:
        return _fail(str(error), FAILED)
    except FileNotFoundError as error:
        return _fail(f"there is no file {error.filename}", MISUSED)
    except OSError as error:
        return _fail(f"{error.filename or 'a file'} cannot be read or written: {error.strerror}", FAILED)
    except KeyboardInterrupt:
        return _fail("stopped; a load goes on from here when it is run again", INTERRUPTED)


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"{message}\n")
    return code


def _model(settings: Settings) -> Model:
    return compile_model(settings.schema.read_text(), str(settings.schema), table=settings.table)


def _refuse_unknown_type(model: Model, name: str | None) -> None:
    known = [type_.name for type_ in model.items.values() if not type_.virtual]
    if name is not None and name not in known:
        raise InputError(f"--type {name}: expected one of {', '.join(known)}")


# --- load ---------------------------------------------------------------------------------------------------------


def _load(options: argparse.Namespace, settings: Settings, region: Region) -> int:
    model = _model(settings)
    _refuse_unknown_type(model, options.type)
    with _input(options.file) as path:
        plan = _plan(model, path, options, settings)
        transport = open_transport(settings, region(settings), options.parallel)
        try:
            outcome = asyncio.run(_loaded(plan, transport))
        finally:
            transport.close()
    sys.stderr.write(_summary(model, plan, outcome))
    return FAILED if outcome.refused and not plan.skip_refused else 0


@contextmanager
def _input(name: str) -> Iterator[Path]:
    """Give the path of the input; standard input, which is read twice, goes into a temporary file."""
    if name != "-":
        # With a name of its own, for what is kept beside it.
        yield Path(name).absolute()
        return
    with tempfile.NamedTemporaryFile(suffix=".stdin") as spool:
        shutil.copyfileobj(sys.stdin.buffer, spool)
        spool.flush()
        yield Path(spool.name)


def _plan(model: Model, path: Path, options: argparse.Namespace, settings: Settings) -> Plan:
    format_ = options.format or (format_of_lines(path) if options.file == "-" else format_of(path))
    lines = _lines(model, path, format_, options.type)
    is_spooled = options.file == "-"
    kept = options.checkpoint or (None if is_spooled else path.with_name(path.name + ".loading"))

    def reader(moment: Moment, again: bool) -> Read:
        if lines.kind == RECORDS:
            return RecordReader(model, moment, options.type).items
        items = ItemReader(model, allow_unfit=options.allow_unfit)
        return lambda content, _: items.again(content) if again else items.items(content)

    return Plan(
        model,
        lines,
        reader,
        Checkpoint(kept),
        identity(
            path,
            format=format_,
            type=options.type,
            schema=hashlib.sha256(settings.schema.read_bytes()).hexdigest(),
            tables=sorted(model.tables),
            endpoint=settings.endpoint_url,
            skip_refused=options.skip_refused,
            allow_unfit=options.allow_unfit,
        ),
        options.parallel,
        options.skip_refused,
        options.refused,
        Path(kept.parent if kept else path.parent) if lines.kind == RECORDS else None,
    )


def _lines(model: Model, path: Path, format_: str, type_name: str | None) -> Lines:
    match format_:
        case "csv":
            return CommaSeparated(path, model, type_name)
        case "dynamodb-export":
            return DynamoExport(path)
    return JsonLines(path, ITEMS if format_ == "dynamodb-json" else RECORDS)


async def _loaded(plan: Plan, transport: Transport) -> Outcome:
    return await load(plan, Client(transport, plan.parallel))


def _summary(model: Model, plan: Plan, outcome: Outcome) -> str:
    refused = f"{outcome.refused:,} lines are refused" if outcome.refused else ""
    if not outcome.is_written:
        return f"{refused}, and nothing is written: mend them, or write the others with --skip-refused\n"
    rate = outcome.items / max(outcome.seconds, 1e-9)
    lines = [
        f"loaded {outcome.items:,} items in {outcome.seconds:.1f} s ({rate:,.0f} items/s), "
        f"{outcome.write_units:,.0f} write units"
    ]
    if refused:
        lines.append(f"{refused} and left out")
    if outcome.replaced:
        lines.append(f"{outcome.replaced:,} items were replaced by later ones with the same key")
    if outcome.retried:
        lines.append(f"{outcome.retried:,} times an item was sent again, for DynamoDB had left it over")
    if any(entry.count is not None for type_ in model.items.values() for entry in type_.fields.values()):
        lines.append("the model counts: `tablegraph repair --only WRONG_COUNT` makes its @count fields right")
    return "\n".join(lines) + "\n"


# --- export -------------------------------------------------------------------------------------------------------


def _export(options: argparse.Namespace, settings: Settings, region: Region) -> int:
    model = _model(settings)
    _refuse_unknown_type(model, options.type)
    format_ = options.format or _output_format(options.file)
    if format_ == "csv" and options.type is None:
        raise InputError("csv has the columns of one type: name it with --type")
    transport = open_transport(settings, region(settings), options.segments)
    plan = Export(model, format_, options.type, options.segments)
    try:
        exported = asyncio.run(_exported(plan, transport, options.file))
    finally:
        transport.close()
    sys.stderr.write(exported.summary())
    return FAILED if exported.unreadable else 0


def _output_format(name: str) -> str:
    ends = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", "": "dynamodb-export"}
    suffix = ".jsonl" if name == "-" else Path(name).suffix
    if suffix not in ends:
        raise InputError(f"{name}: expected a name that ends in .jsonl or .csv, a folder's name, or --format")
    return ends[suffix]


async def _exported(plan: Export, transport: Transport, target: str) -> Exported:
    return await export(plan, Graph(plan.model, Client(transport, plan.segments)), target)
