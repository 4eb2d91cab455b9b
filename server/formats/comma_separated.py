"""CSV: records as rows under a header of dotted paths."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from graph.bulk.cells import record_of, row_of
from graph.bulk.shapes import TYPENAME, columns
from graph.errors import InputError
from graph.model import ItemType, Model
from server.formats import RECORDS, Damaged

# An item has 400 KB at most, and JSON may take six letters for one of them.
csv.field_size_limit(4 * 1024 * 1024)


class CommaSeparated:
    """A CSV file (RFC 4180) in UTF-8; `type_name` is the type of its rows, unless a column `__typename` says."""

    kind = RECORDS

    def __init__(self, path: Path, model: Model, type_name: str | None) -> None:
        self.size_bytes = path.stat().st_size
        self._path = path
        self._model = model
        self._type_name = type_name

    def read(self) -> Iterator[tuple[int, Any]]:
        """Read every row, with the number of the line on which it begins: a record, or Damaged."""
        # Bytes that are not UTF-8 become what no value may hold, so that their line is refused and no other.
        with self._path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, None)
            if not header:
                raise InputError(f"{self._path}: expected a header with the names of the columns")
            if len(set(header)) < len(header):
                raise InputError(f"{self._path}: expected a header that names each column once")
            paths = [tuple(name.split(".")) for name in header]
            while True:
                number = reader.line_num + 1
                try:
                    row = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    yield number, Damaged(f"is not CSV: {error}")
                    continue
                if row:
                    yield number, self._record(paths, row)

    def _record(self, paths: list[tuple[str, ...]], row: list[str]) -> Any:
        if len(row) != len(paths):
            return Damaged(f"has {len(row)} cells: expected {len(paths)}, as the header has columns")
        name = row[paths.index((TYPENAME,))] if (TYPENAME,) in paths else self._type_name
        try:
            return record_of(self._model, self._model.items.get(name or ""), paths, row)
        except ValueError as error:
            return Damaged(str(error))

    def where(self, number: int) -> str:
        """Say where a line stands."""
        return f"line {number}"


class CommaSeparatedWriter:
    """Writes the records of one type."""

    def __init__(self, file: IO[bytes], model: Model, type_: ItemType) -> None:
        self._file = file
        self._model = model
        self._type = type_
        self._paths = columns(model, type_)
        self._write([[".".join(path) for path in self._paths]])

    def write(self, contents: list[dict[str, Any]]) -> None:
        """Write the rows of some records."""
        self._write([row_of(self._model, self._type, self._paths, content) for content in contents])

    def _write(self, rows: list[list[str]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(rows)
        self._file.write(text.getvalue().encode())

    def close(self) -> None:
        """Have nothing more to write."""
