"""`tablegraph doctor`: what is wrong with the tables of a model, what they cost for nothing, and what will fail."""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from graph.doctor.examine import Examination, Examined
from graph.doctor.findings import Finding, Severity
from graph.doctor.prices import READ_USD, SOURCE, dollars, shown_bytes
from graph.doctor.sample import UNIT_BYTES
from graph.loaders import Graph
from server.maintenance import OnTable
from server.settings import Settings
from server.usage import usage_of

HEALTHY = 0
SERIOUS = 1
UNITS = 1000
"""Eight megabytes: enough of most tables, at a fraction of a cent."""
MOST_UNITS = 100_000_000


def add_doctor(commands: Any, command: Callable[..., argparse.ArgumentParser], on_table: OnTable) -> None:
    """Add the command to the command line; `on_table` does not compare the tables with the model."""

    def run(options: argparse.Namespace, settings: Settings) -> int:
        return on_table(settings, lambda graph: _doctor(graph, options))

    text = "examine the tables of a model: drift, unused indexes, skew, limits, and what costs money for nothing"
    parser = command(commands, "doctor", run, text, settings=True)
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.add_argument(
        "--sample",
        type=_units,
        default=UNITS,
        metavar="N",
        help=f"read units to spend on a sample of the items; 0 reads none (default: {UNITS})",
    )
    parser.add_argument(
        "--log",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="logs of the server (json) or its metrics: indexes that nobody read are told",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="draw the same sample again")


def _units(text: str) -> int:
    if not (text.isdecimal() and int(text) <= MOST_UNITS):
        raise argparse.ArgumentTypeError(f"expected a number of read units from 0 to {MOST_UNITS:,}, got {text!r}")
    return int(text)


async def _doctor(graph: Graph, options: argparse.Namespace) -> int:
    usage = usage_of(options.log) if options.log else None
    seed = random.randrange(2**32) if options.seed is None else options.seed
    examination = Examination(graph, units=options.sample, usage=usage, seed=seed)
    await examination.look()
    if options.sample:
        _announce(examination.sampled(), options.sample)
        await examination.read()
    findings = examination.findings()
    if options.json:
        told = _as_json(examination, findings, options.sample, seed)
        sys.stdout.write(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        sys.stdout.write("\n".join(one.text() for one in findings))
    sys.stdout.flush()
    _summarise(examination, findings, seed)
    return SERIOUS if any(one.severity is Severity.SERIOUS for one in findings) else HEALTHY


def _announce(examined: list[Examined], units: int) -> None:
    """Say what will be read before it is."""
    names = ", ".join(one.target.name for one in examined) or "nothing, for no table can be read"
    size = sum(one.described.get("TableSizeBytes") or 0 for one in examined)
    of = f" of {shown_bytes(size)}" if size else ""
    sys.stderr.write(
        f"doctor: reads some {units:,} read units at most, {shown_bytes(units * UNIT_BYTES)}{of} "
        f"({dollars(units * READ_USD)} {SOURCE}): {names}\n"
    )
    sys.stderr.flush()


def _as_json(examination: Examination, findings: list[Finding], units: int, seed: int) -> dict[str, Any]:
    tally = examination.walk.tally
    return {
        "findings": [one.as_json() for one in findings],
        "tables": [_table_as_json(one) for one in examination.examined],
        "spent": {"requests": tally.requests, "readUnits": round(tally.read_units, 1), "of": units, "seed": seed},
    }


def _table_as_json(one: Examined) -> dict[str, Any]:
    described, sample = one.described or {}, one.sample
    told: dict[str, Any] = {
        "table": one.target.name,
        "exists": one.described is not None,
        "items": described.get("ItemCount"),
        "bytes": described.get("TableSizeBytes"),
        "sample": None,
    }
    if sample is not None:
        told["sample"] = {
            "items": sample.count,
            "bytes": round(sample.bytes),
            "partitions": sample.partitions,
            "segments": len(sample.segments),
            "ofSegments": sample.of,
            "read": round(sample.read, 6),
            "isWhole": sample.is_whole,
            "judged": one.judged,
        }
    return told


def _summarise(examination: Examination, findings: list[Finding], seed: int) -> None:
    for one in examination.examined:
        if (sample := one.sample) is not None:
            part = "all of it" if sample.is_whole else f"{sample.read:.2%} of it"
            sys.stderr.write(
                f"{one.target.name}: {sample.count:,} items in {sample.partitions:,} partitions seen, "
                f"{shown_bytes(sample.bytes)}, {part}; {one.judged:,} of them compared with the model\n"
            )
    counts = Counter(one.severity for one in findings)
    told = ", ".join(f"{counts[one]:,} {one.name}" for one in Severity if counts[one])
    tally = examination.walk.tally
    sys.stderr.write(
        f"doctor: {told or 'nothing is wrong'}\n"
        f"cost: {tally.requests:,} requests, {tally.read_units:,.1f} read units "
        f"({dollars(tally.read_units * READ_USD)} {SOURCE}); --seed {seed} draws the same sample\n"
    )
