"""`tablegraph sweep`: objects of large values that nothing points to, and receipts that have run out, are deleted."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from graph.loaders import Graph
from graph.sweep import delete, drop_receipts, orphans, spent_receipts
from server.maintenance import OnTable
from server.settings import Settings

LEAST_AGE = timedelta(hours=1)
"""Far more than a mutation takes from its first object to the item that points to it."""
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


def age(text: str) -> timedelta:
    """Read an age like 1d, 12h or 90m. Raises ArgumentTypeError."""
    match = re.fullmatch(r"(\d{1,6})([dhm])", text, re.ASCII)
    found = timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else timedelta()
    if found < LEAST_AGE:
        raise argparse.ArgumentTypeError(
            f"expected an age of an hour or more, like 1d, 12h or 90m, got {text!r}: what is younger may be pointed to "
            "any moment"
        )
    return found


def add_sweep(commands: Any, command: Callable[..., argparse.ArgumentParser], on_table: OnTable) -> None:
    """Add the command to the command line."""

    def run(options: argparse.Namespace, settings: Settings) -> int:
        return on_table(settings, lambda graph: sweep(graph, options.older_than, dry_run=options.dry_run))

    text = "delete the objects of large values that nothing points to, and receipts that have run out"
    parser = command(commands, "sweep", run, text, settings=True)
    parser.add_argument(
        "--older-than",
        type=age,
        default=timedelta(days=1),
        metavar="AGE",
        help="leave alone what is younger: 1d, 12h, 90m (default: 1d)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be deleted")


async def sweep(graph: Graph, older_than: timedelta, *, dry_run: bool) -> int:
    """Find orphans, and delete them unless it is a dry run; say so, and give the exit code. Raises StoreError."""
    found = await orphans(graph, datetime.now(UTC) - older_than)
    for entry in found:
        sys.stdout.write(f"{entry.bucket}/{entry.key}  {entry.bytes:,} bytes  {entry.modified:%Y-%m-%d %H:%M}\n")
    if not dry_run:
        await delete(graph, found)
    done = "would be deleted" if dry_run else "deleted"
    sys.stdout.write(f"{len(found)} objects with {sum(entry.bytes for entry in found):,} bytes {done}\n")
    receipts = await spent_receipts(graph)
    if not dry_run:
        await drop_receipts(graph, receipts)
    sys.stdout.write(f"{len(receipts)} receipts of idempotency keys {done}\n")
    return 0
