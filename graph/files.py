"""Files that are whole or not there, whatever dies meanwhile."""

from __future__ import annotations

import os
from pathlib import Path


def put_file(path: Path, content: bytes, unfinished: Path) -> None:
    """Write a file under another name first, and give it its own when the content is safe on the disk."""
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder stay as they are when the machine's power fails."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
