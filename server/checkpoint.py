"""Where a load stands, in a file: what a run that was killed had written is not written again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from graph.files import put_file

HEAD_BYTES = 64 * 1024


@dataclass(slots=True)
class State:
    """What a load has done: every line up to `line` is written."""

    identity: Mapping[str, Any]
    seed: str
    began: str
    total: int
    """Items of all lines."""
    line: int = 0
    items: int = 0
    """Items of the lines up to `line`."""


def identity(path: Path, **options: Any) -> dict[str, Any]:
    """Describe an input, so that another one, or the same one changed, is told from it."""
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    head = hashlib.sha256()
    for file in files:
        with file.open("rb") as content:
            head.update(content.read(HEAD_BYTES))
    stats = [file.stat() for file in files]
    return {
        "size": sum(one.st_size for one in stats),
        "mtime": max((one.st_mtime_ns for one in stats), default=0),
        "head": head.hexdigest(),
        **options,
    }


class Checkpoint:
    """The file; without a path nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def read(self, wanted: Mapping[str, Any]) -> State | None:
        """Give what an earlier run left behind, if it loaded just this input in just this way."""
        if self._path is None or not self._path.exists():
            return None
        try:
            state = State(**orjson.loads(self._path.read_bytes()))
        except (ValueError, TypeError):
            return None
        return state if state.identity == wanted else None

    @property
    def exists(self) -> bool:
        """Say whether an earlier run left anything behind."""
        return self._path is not None and self._path.exists()

    def write(self, state: State) -> None:
        """Keep the state: after a kill at any moment the file holds this one, or the one before it."""
        if self._path is None:
            return
        put_file(self._path, orjson.dumps(asdict(state)), self._path.with_name(self._path.name + ".new"))

    def remove(self) -> None:
        """Forget it: the load is done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
