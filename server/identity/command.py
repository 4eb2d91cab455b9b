"""The command `key`: a new API key, and the entry that makes a server know it."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from server.identity.api_keys import hash_of, make_key
from server.settings import Settings


def add_key(commands: Any) -> None:
    """Add the command to the command line."""
    text = "make an API key: prints it, once, and the entry for the file of --api-keys"
    key = commands.add_parser("key", help=text, description=text)
    key.set_defaults(run=_key)
    key.add_argument("name", help="who has it: the subject of their requests")
    key.add_argument("--roles", default="", metavar="ROLES", help="their roles, with commas between them")
    key.add_argument("--days", type=int, metavar="N", help="days until it expires; never when left out")


def _key(options: argparse.Namespace, _: Settings) -> int:
    key = make_key()
    sys.stdout.write(f"{key}\n\n{_entry(options, key)}")
    sys.stderr.write("\nThe key is shown this once; the entry goes to the file of --api-keys, which holds its hash.\n")
    return 0


def _entry(options: argparse.Namespace, key: str) -> str:
    roles = [role.strip() for role in options.roles.split(",") if role.strip()]
    lines = ["[[keys]]", f"name = {_text(options.name)}", f'sha256 = "{hash_of(key)}"']
    if roles:
        lines.append(f"roles = [{', '.join(map(_text, roles))}]")
    if options.days is not None:
        moment = datetime.now(UTC).replace(microsecond=0) + timedelta(days=options.days)
        lines.append(f"expires = {moment:%Y-%m-%dT%H:%M:%SZ}")
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    # A basic string of TOML has JSON's escapes.
    return json.dumps(text)
