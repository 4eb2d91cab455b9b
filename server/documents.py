"""Trusted documents, read from a file or a folder in the forms in which clients' build tools write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from resolvers.persisted import bare, hash_of
from resolvers.schema import Api
from server.settings import SettingsError

SETTING = "--trusted-documents"
DOCUMENTS = (".graphql", ".gql")
MANIFEST = "apollo-persisted-query-manifest"
"""Source: https://www.apollographql.com/docs/graphos/platform/security/persisted-queries"""


class TrustedDocument(NamedTuple):
    """A document that clients may name, by one of its ids, and where it was read."""

    id: str
    text: str
    place: str


def read_trusted(path: Path | None) -> list[TrustedDocument]:
    """Read the documents: of a folder those of every file in it, by the file's name, or of lists in JSON.

    Raises: SettingsError with everything that cannot be read.
    """
    if path is None:
        return []
    problems: list[str] = []
    found: dict[str, TrustedDocument] = {}
    for document in _of_files(path, problems):
        first = found.setdefault(document.id, document)
        if first.text != document.text:
            problems.append(
                f"{document.place}: the id {document.id!r} is that of another document in {first.place}: expected an "
                "id for each. Rename one of the two"
            )
    if not found and not problems:
        problems.append(
            f"{path}: there is no document: expected {' or '.join(f'*{end}' for end in DOCUMENTS)}, or a .json that "
            "Relay's compiler, GraphQL Code Generator or Apollo's manifest generator has written. Write them there"
        )
    _raise_if_any(problems)
    return list(found.values())


def check_trusted(api: Api, documents: Iterable[TrustedDocument]) -> None:
    """Check the documents against the schema. Raises: SettingsError with every mistake of every document."""
    places: dict[str, str] = {}
    for document in documents:
        places.setdefault(document.text, document.place)
    _raise_if_any([f"{place}: {fault}" for text, place in places.items() for fault in api.faults(text)])


def _raise_if_any(problems: list[str]) -> None:
    if problems:
        many = f"{len(problems)} mistake{'s' if len(problems) > 1 else ''}"
        raise SettingsError("\n".join([f"{SETTING}: {many}:", *(f"  {problem}" for problem in problems)]))


def _of_files(path: Path, problems: list[str]) -> Iterator[TrustedDocument]:
    if not path.is_dir():
        yield from _of_file(path, problems)
        return
    for one in sorted(path.rglob("*")):
        if one.suffix in (*DOCUMENTS, ".json") and one.is_file():
            yield from _of_file(one, problems)


def _of_file(path: Path, problems: list[str]) -> Iterator[TrustedDocument]:
    try:
        content = path.read_bytes()
        if path.suffix in DOCUMENTS:
            yield from _of_text(path, content.decode())
            return
        listed = orjson.loads(content)
    except OSError as error:
        problems.append(f"{path}: {error.strerror}: expected a file or a folder of documents")
    except ValueError as error:
        kind = "GraphQL" if path.suffix in DOCUMENTS else "JSON"
        problems.append(f"{path}: expected {kind} in UTF-8, got something else ({error})")
    else:
        yield from _of_list(path, listed, problems)


def _of_text(path: Path, text: str) -> Iterator[TrustedDocument]:
    # An editor ends the file with a line feed, which is not in what the client's build has hashed.
    stripped = text.strip()
    for id_ in (path.stem, hash_of(text)):
        yield TrustedDocument(id_, stripped, str(path))


def _of_list(path: Path, listed: Any, problems: list[str]) -> Iterator[TrustedDocument]:
    if not isinstance(listed, dict):
        problems.append(f'{path}: expected an object like {{"<id>": "<text>"}}, got another value')
        return
    entries: Iterable[tuple[Any, Any]] = listed.items()
    if "format" in listed:
        operations = listed.get("operations")
        if listed["format"] != MANIFEST or listed.get("version") != 1 or not isinstance(operations, list):
            problems.append(f"{path}: expected the format {MANIFEST}, version 1, with a list of operations")
            return
        known = [one if isinstance(one, dict) else {} for one in operations]
        entries = [(one.get("id"), one.get("body")) for one in known]
    for number, (id_, text) in enumerate(entries, 1):
        if isinstance(id_, str) and id_ and isinstance(text, str):
            yield TrustedDocument(bare(id_), text, f"{path}: {id_}")
        else:
            problems.append(f"{path}: expected an id and a text as document {number}, got another value")
