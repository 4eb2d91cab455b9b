"""`tablegraph table plan` and `apply`: the tables are made and changed to what the model says; the plan comes first."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from graph.apply.backfill import Filled
from graph.apply.plan import Kind, Step, filled, plan, refusals, unnamed
from graph.apply.run import Done, apply, observe
from graph.apply.state import State, Target, targets
from graph.errors import InputError
from graph.loaders import Graph
from graph.maintenance.walk import Tally
from server.maintenance import SEGMENTS, OnTable
from server.settings import Settings

FAILED = 1
MISUSED = 2
STOPPED = 130
LINE_SECS = 30.0
"""How often a wait is told where nobody looks."""

MEANWHILE = (
    "What servers of an earlier model write meanwhile lacks the new attributes: once all run this one, "
    "`tablegraph repair --only STALE_KEY` mends it."
)

Seen = list[tuple[Target, State]]


def add_apply(commands: Any, command: Callable[..., argparse.ArgumentParser], on_table: OnTable) -> None:
    """Add both commands to the command line; `on_table` does not compare the tables with the model."""

    def run(options: argparse.Namespace, settings: Settings) -> int:
        try:
            return on_table(settings, lambda graph: _apply(graph, options))
        except InputError as error:
            sys.stderr.write(f"{error}\n")
            return MISUSED
        except KeyboardInterrupt:
            sys.stderr.write("\nstopped; what DynamoDB has begun goes on. Run the same command again for the rest\n")
            return STOPPED

    text = "show what is to be done to make the tables of a model and their indexes what it says"
    _options(command(commands, "plan", run, text, settings=True)).set_defaults(yes=False)
    text = "make the tables of a model and their indexes, or change them to what it says: shows the plan first"
    parser = _options(command(commands, "apply", run, text, settings=True))
    parser.add_argument("--yes", action="store_true", help="carry the plan out; without it, it is only shown")


def _options(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--drop", action="store_true", help="drop global indexes that the model does not name")
    parser.add_argument(
        "--fill", action="append", default=[], metavar="INDEX", help="backfill an index that somebody else has made"
    )
    parser.add_argument(
        "--period", metavar="PERIOD", help="make the table of this period of a time series, like 202601"
    )
    return parser


async def _apply(graph: Graph, options: argparse.Namespace) -> int:
    wanted = targets(graph.model, options.period)
    fills = _fills(wanted, options.fill)
    seen = [(target, await _observe(graph, target, fills[target.name])) for target in wanted]
    if refused := [refusal.text for target, state in seen for refusal in refusals(target, state)]:
        sys.stderr.write(
            "\n".join(["this cannot be changed, and nothing has been done:", *map(_indented, refused), ""])
        )
        return FAILED
    sys.stdout.write("\n".join(shown(graph, seen, drop=options.drop)) + "\n")
    due = [target for target, state in seen if plan(target, state, drop=options.drop)]
    if not due:
        return 0
    if not options.yes:
        sys.stdout.write("\nNothing has been done. To carry it out: tablegraph table apply --yes\n")
        return 0
    watch = Progress()
    done = [
        await apply(graph, target, watch, drop=options.drop, fill=fills[target.name], segments=SEGMENTS)
        for target in due
    ]
    return _summarise(done)


def _fills(wanted: Sequence[Target], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Name by table the indexes to fill. Raises InputError for one of which a template makes nothing."""
    found = {one.name: tuple(name for name in names if filled(one, (name,))) for one in wanted}
    if unknown := [name for name in names if not any(name in one for one in found.values())]:
        known = [name for one in wanted for name in one.index_names if filled(one, (name,))]
        raise InputError(
            f"--fill: expected an index of the model whose key is not all of the table's, got {unknown[0]!r}: there "
            f"is {' or '.join(known) or 'none'}"
        )
    return found


async def _observe(graph: Graph, target: Target, fill: tuple[str, ...]) -> State:
    state = await observe(graph, target)
    # One that is not there yet is filled anyway.
    return replace(state, due=tuple(dict.fromkeys((*state.due, *(name for name in fill if name in state.indexes)))))


def _indented(text: str) -> str:
    return "  " + text.replace("\n", "\n  ")


def shown(graph: Graph, seen: Seen, *, drop: bool) -> Iterator[str]:
    """Write the plan: for each table its steps in order, each with its reason."""
    for target, state in seen:
        steps = plan(target, state, drop=drop)
        yield f"{target.name}:" if steps else f"{target.name}: nothing to do, it is as the model says"
        yield from (f"  {number}. {step.line()}" for number, step in enumerate(steps, 1))
        if not drop and state.table is not None:
            yield from (
                f"  left: the index {name}, which the model does not name; once no server reads it, --drop drops it"
                for name in unnamed(target, state)
            )
        if any(step.kind is Kind.BACKFILL for step in steps):
            yield f"  mind: {MEANWHILE}"
    yield from _left_alone(graph, [target for target, _ in seen])


def _left_alone(graph: Graph, taken: Sequence[Target]) -> Iterator[str]:
    for table in graph.model.tables.values():
        if table.period is not None and all(target.table is not table for target in taken):
            yield f"{table.name}: left alone, a time series; --period {table.period.format} makes the table of one"


def _summarise(done: Sequence[Done]) -> int:
    steps = sum(len(one.steps) for one in done)
    sys.stderr.write(f"apply: {_counted(steps, 'step')} done\n")
    for step in (one.rest[0] for one in done if one.rest):
        sys.stderr.write(f"{step.table}: what is left begins with {step.line()}\n")
    if left := sum(one.filled.left for one in done):
        sys.stderr.write(
            f"{_counted(left, 'attribute')} could not be filled in, where what it is made of is missing or wrong: "
            "`tablegraph verify` names them\n"
        )
    return FAILED if left else 0


def _named(step: Step) -> str:
    return f"{step.kind.value} {step.subject}".strip()


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


class Progress:
    """Tells on standard error what is done: a line that changes where a person looks, else a line now and then."""

    def __init__(self) -> None:
        self._is_line = sys.stderr.isatty()
        self._last, self._told_secs = "", 0.0

    def taking(self, step: Step) -> None:
        """Tell that a step is begun."""
        self._last = ""
        self._line(f"{step.table}: {_named(step)} …")

    def waiting(self, step: Step, why: str, secs: float) -> None:
        """Tell what is waited for."""
        text = f"{step.table}: {_named(step)}, waiting for {secs:,.0f} s: {why}"
        if self._is_line:
            self._write(text, end="")
        elif why != self._last or secs - self._told_secs >= LINE_SECS:
            self._line(text)
            self._last, self._told_secs = why, secs

    def moved(self, step: Step, tally: Tally) -> None:
        """Tell how far a backfill is, to a person."""
        if self._is_line:
            self._write(
                f"{step.table}: BACKFILL: {tally.items:,} items, {tally.items / tally.secs:,.0f} items/s", end=""
            )

    def ended(self, step: Step, result: Filled | None) -> None:
        """Tell that a step is done."""
        filled = "" if result is None else f": {_counted(result.mended, 'attribute')} written"
        self._line(f"{step.table}: {_named(step)} is done{filled}")

    def _line(self, text: str) -> None:
        self._write(text, end="\n")

    def _write(self, text: str, end: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}{end}" if self._is_line else f"{text}{end}")
        sys.stderr.flush()
