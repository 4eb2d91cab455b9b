"""The keys that cursors and global ids are signed with: made, and read, with every one that cannot be used named."""

from __future__ import annotations

import argparse
import sys
from hashlib import blake2b
from pathlib import Path

LEAST_CHARACTERS = 32


def read_keys(text: str) -> list[bytes]:
    """Read keys, with commas between them, or in the file that `@` stands before, one on each line.

    Raises: ValueError with the expectation as its message, and never a key in it.
    """
    expected = f"keys of at least {LEAST_CHARACTERS} characters, as `tablegraph secret` makes them"
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ValueError(f"a file with {expected}, but it cannot be read ({type(error).__name__})") from None
        keys = [line.strip() for line in text.splitlines() if line.strip()]
    else:
        keys = [key.strip() for key in text.split(",")]
    if not keys or any(len(key) < LEAST_CHARACTERS for key in keys):
        raise ValueError(f"{expected}, with commas between them, or @FILE with one on each line")
    # Of one length, whatever their own: BLAKE2b takes keys of 64 bytes.
    return [blake2b(key.encode()).digest() for key in keys]


def print_key(_: argparse.Namespace, settings: object) -> int:
    """Print a new key."""
    import secrets

    sys.stdout.write(f"{secrets.token_urlsafe(32)}\n")
    return 0
