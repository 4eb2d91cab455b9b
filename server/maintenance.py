"""`tablegraph verify` and `tablegraph repair`: an existing table is compared with its model, and mended."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import orjson

from graph.loaders import Graph
from graph.maintenance.findings import Code, Finding
from graph.maintenance.repair import Outcome, Wish, repair
from graph.maintenance.verify import verify
from graph.maintenance.walk import Tally, Walk
from server.settings import Settings

CLEAN = 0
FOUND = 1
SEGMENTS = 4
MOST_SEGMENTS = 1_000_000
"""What DynamoDB takes."""

Run = Callable[[argparse.Namespace, Settings], int]
OnTable = Callable[[Settings, Callable[[Graph], Awaitable[int]]], int]
"""Connects to the tables of a model, compares them with it, does something with them, and gives the exit code."""


def add_maintenance(commands: Any, command: Callable[..., argparse.ArgumentParser], on_table: OnTable) -> None:
    """Add both commands to the command line."""

    def running(work: Callable[[Graph, argparse.Namespace], Awaitable[int]]) -> Run:
        return lambda options, settings: on_table(settings, lambda graph: work(graph, options))

    text = "report everything in an existing table that is not as its mutations would have written it"
    _options(command(commands, "verify", running(_verify), text, settings=True))
    text = "mend what verify finds, item by item, each by one conditional transaction"
    parser = command(commands, "repair", running(_repair), text, settings=True)
    _options(parser)
    parser.add_argument("--dry-run", action="store_true", help="only say what would be mended")
    parser.add_argument("--delete-dangling", action="store_true", help="delete edges whose node does not exist")
    parser.add_argument(
        "--only", type=_codes, default=Wish().codes, metavar="CODE,CODE", help="mend these alone: the others are left"
    )


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--segments", type=segments, default=SEGMENTS, metavar="N", help="parts read side by side (default: 4)"
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object a line")


def segments(text: str) -> int:
    """Read a number of segments. Raises ArgumentTypeError."""
    if not (text.isdecimal() and 1 <= int(text) <= MOST_SEGMENTS):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to {MOST_SEGMENTS:,}, got {text!r}")
    return int(text)


def _codes(text: str) -> frozenset[Code]:
    try:
        return frozenset(Code[name.strip()] for name in text.split(","))
    except KeyError as error:
        known = ", ".join(code.name for code in Code)
        raise argparse.ArgumentTypeError(f"{error.args[0]!r} is no code: expected some of {known}") from None


async def _verify(graph: Graph, options: argparse.Namespace) -> int:
    progress = _Progress("verify")
    walk = Walk(graph, options.segments, progress.show)

    def report(finding: Finding) -> None:
        _write(progress, finding.as_json() if options.json else finding.line())

    await verify(walk, report)
    progress.end()
    _summarise("verify", walk.tally, [f"{count:,} {code}" for code, count in sorted(walk.tally.findings.items())])
    return FOUND if walk.tally.findings else CLEAN


async def _repair(graph: Graph, options: argparse.Namespace) -> int:
    progress = _Progress("repair")
    walk = Walk(graph, options.segments, progress.show)
    counts: dict[tuple[str, str], int] = {}

    def report(finding: Finding, outcome: Outcome) -> None:
        place = finding.code.name, outcome.value
        counts[place] = counts.get(place, 0) + 1
        told = {"outcome": outcome.value, **finding.as_json()} if options.json else f"{outcome.value}: {finding.line()}"
        _write(progress, told)

    await repair(walk, Wish(options.only, options.delete_dangling, options.dry_run), report)
    progress.end()
    _summarise("repair", walk.tally, [f"{count:,} {code} {what}" for (code, what), count in sorted(counts.items())])
    return FOUND if any(what != Outcome.MENDED.value for _, what in counts) else CLEAN


def _write(progress: _Progress, told: dict[str, Any] | str) -> None:
    progress.clear()
    sys.stdout.write(told if isinstance(told, str) else orjson.dumps(told).decode())
    sys.stdout.write("\n")


def _summarise(what: str, tally: Tally, found: Iterable[str]) -> None:
    sys.stdout.flush()
    writes = f" and {tally.write_units:,.1f} write units" if tally.write_units else ""
    sys.stderr.write(
        f"{what}: {', '.join(found) or 'nothing is wrong'}\n"
        f"{tally.items:,} items in {tally.secs:.1f} s, {tally.items / tally.secs:,.0f} items/s\n"
        f"cost: {tally.requests:,} requests, {tally.read_units:,.1f} read units{writes}\n"
    )


class _Progress:
    """A line that tells how far the walk is, where a person looks, and nothing elsewhere."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._is_seen = sys.stderr.isatty()

    def show(self, tally: Tally) -> None:
        """Write the line anew."""
        if self._is_seen:
            found = f"{sum(tally.findings.values()):,} findings"
            rate = f"{tally.items / tally.secs:,.0f} items/s"
            sys.stderr.write(f"\r\x1b[K{self._what}: {tally.items:,} items, {found}, {rate}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Make room for a line of the output."""
        if self._is_seen:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    end = clear
