"""The command line: which commands there are, and what each of them is told.

What runs a command is imported only when it is run: a server starts in a third less time without the others.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from graph.errors import ModelError, SearchUnavailable, StoreError
from server.settings import Settings, SettingsError, all_settings, load_settings

Run = Callable[[argparse.Namespace, Settings], int]

FAILED = 1
MISUSED = 2
DECLARED_HERE = ("serve", "demo", "schema", "check", "explain", "shards", "secret")
"""The commands whose options are declared in this file; those of the others stand beside what runs them."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command that the arguments name and return the process's exit code: 1 failed, 2 misused."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser(arguments).parse_args(arguments)
    run: Run = options.run
    try:
        return run(options, load_settings(os.environ, vars(options)))
    except SettingsError as error:
        return _fail(str(error), MISUSED)
    except (FileNotFoundError, IsADirectoryError) as error:
        return _fail(f"there is no file {error.filename}: say which one with --schema or --data", MISUSED)
    except (ModelError, SearchUnavailable, StoreError) as error:
        return _fail(str(error), FAILED)


def _fail(message: str, code: int) -> int:
    print(message, file=sys.stderr)
    return code


def _later(module: str, name: str) -> Run:
    """Make what imports the function that runs a command, and runs it."""

    def run(options: argparse.Namespace, settings: Settings) -> int:
        found: Run = getattr(import_module(module), name)
        return found(options, settings)

    return run


def _served(module: str, name: str) -> Run:
    """Make what runs a command that serves."""
    run = _later(module, name)

    def start(options: argparse.Namespace, settings: Settings) -> int:
        # Hardly anything that is made before the first request becomes garbage, and looking for it takes a third of
        # the start; the server switches it on.
        gc.disable()
        try:
            return run(options, settings)
        finally:
            gc.enable()

    return start


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tablegraph", description="A GraphQL API over a graph-shaped DynamoDB table.")
    commands = parser.add_subparsers(required=True, metavar="command")
    _command(
        commands,
        "serve",
        _served("server.serving", "serve_table"),
        "serve an existing table; no table is created",
        settings=True,
    )
    _add_demo(commands)
    text = "print the public GraphQL schema of a model"
    some = ("schema", "mutations", "federation")
    _command(commands, "schema", _later("server.looking", "schema"), text, some=some)
    text = "check a model file, and the trusted documents: their mistakes, or the access patterns"
    _command(commands, "check", _later("server.looking", "check"), text, some=("schema", "trusted_documents"))
    _add_explain(commands)
    if arguments[:1] not in [[name] for name in DECLARED_HERE]:
        _add_others(commands)
    _add_shards(commands)
    _add_secret(commands)
    return parser


def _add_demo(commands: Any) -> None:
    text = "serve a model on the local engine, with its demo data"
    demo = _command(commands, "demo", _served("server.demonstration", "serve_demo"), text, settings=True)
    demo.add_argument(
        "--data", type=Path, action="append", default=[], metavar="FILE", help="items to load (.jsonl, .py)"
    )
    demo.add_argument("--queries", type=Path, metavar="FOLDER", help="example queries (.graphql) for GraphiQL's tabs")
    demo.add_argument("--db", type=Path, metavar="FILE", help="where to keep the table; in memory when left out")


def _add_explain(commands: Any) -> None:
    text = "print the requests of a query, and their read units, without running it"
    explain = _command(commands, "explain", _later("server.looking", "explain"), text)
    explain.add_argument("query", help="a GraphQL query, or @FILE")
    explain.add_argument("--variables", default="{}", metavar="JSON", help="the query's variables")
    explain.add_argument("--claims", metavar="JSON", help="what is known of the caller, where the model has @auth")
    explain.add_argument("--roles", default="", metavar="ROLES", help="the caller's roles, with commas between them")
    explain.add_argument("--length", type=int, default=10, metavar="N", help="items that every list is taken to hold")
    explain.add_argument(
        "--item-bytes", type=int, default=400, metavar="N", help="size that every item is taken to have"
    )


def _add_others(commands: Any) -> None:
    from server.apply import add_apply
    from server.bulk import add_bulk
    from server.doctor import add_doctor
    from server.identity.command import add_key
    from server.infer import add_infer
    from server.infrastructure import add_infrastructure
    from server.maintenance import add_maintenance
    from server.searching import add_search
    from server.sweep import add_sweep
    from server.tables import on_table, region

    add_maintenance(commands, _command, on_table)
    as_it_is = partial(on_table, is_compared=False)
    text = "the tables of a model: plan and apply their changes, or print them for other tools"
    table = commands.add_parser("table", help=text, description=text).add_subparsers(required=True, metavar="what")
    add_apply(table, _command, as_it_is)
    add_infrastructure(table, _command)
    add_doctor(commands, _command, as_it_is)
    add_sweep(commands, _command, on_table)
    add_search(commands, _command, on_table)
    add_bulk(commands, region)
    add_infer(commands, region)
    add_key(commands)


def _add_shards(commands: Any) -> None:
    shards = commands.add_parser("shards", help="compute how many shards a hot partition needs")
    shards.set_defaults(run=_later("server.looking", "shards"))
    shards.add_argument("--items", type=float, required=True, help="items of the type in the table, like 3e6")
    shards.add_argument("--share", type=float, required=True, help="the share of them that one query reads, like 0.2")
    shards.add_argument(
        "--size", type=float, required=True, help="average bytes that the query reads for each, like 250"
    )


def _add_secret(commands: Any) -> None:
    secret = commands.add_parser("secret", help="print a new key for --signing-keys")
    secret.set_defaults(run=_later("server.keys", "print_key"))


def _command(
    commands: Any, name: str, run: Run, text: str, *, settings: bool = False, some: tuple[str, ...] = ("schema",)
) -> argparse.ArgumentParser:
    """Add a command with all settings as its options, or with some."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    command.set_defaults(run=run)
    for setting in all_settings():
        if settings or setting.name in some:
            default = "" if setting.default is None else f" (default: {setting.default})"
            help_ = f"{setting.doc}{default} [{setting.variable}]".replace("%", "%%")
            # A flag alone is as good as true, or as on.
            is_switch = isinstance(setting.default, bool) or setting.default == "off"
            alone: dict[str, Any] = {"nargs": "?", "const": "on"} if is_switch else {}
            command.add_argument(setting.flag, dest=setting.name, metavar="VALUE", help=help_, **alone)
    return command
