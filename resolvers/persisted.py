"""Persisted documents: those that a client names instead of sending them.

The trusted ones are known from the start. Any other that was sent together with the hash of its text is kept under it
for a while (automatic persisted queries), for this process alone: a client that asks another one sends it once more.

Source: GraphQL over HTTP, Appendix A; https://www.apollographql.com/docs/apollo-server/performance/apq
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from graphql import GraphQLError

from resolvers.operation import Request

PREFIX = "sha256:"
"""What the hash of a document begins with where it is its id."""
DOCUMENTS_KEPT = 10_000

NAMED = len(PREFIX) + 64

_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Persistence:
    """Which documents a client may name, and whether it may send any other."""

    trusted: Mapping[str, str] = field(default_factory=dict)
    """The text of each trusted document, by its id."""
    only_trusted: bool = False
    most_bytes: int = 10_000_000
    """Size of all documents together that are kept under their hashes; 0: none is."""


def hash_of(text: str) -> str:
    """Give the SHA-256 of a text in hexadecimal digits."""
    return sha256(text.encode()).hexdigest()


def is_hash(document_id: str) -> bool:
    """Say whether an id has the form of a hash."""
    return _HASH.fullmatch(document_id) is not None


def bare(document_id: str) -> str:
    """Give a hash without what says that it is one, as Apollo's clients have it; any other id as it is."""
    return document_id[len(PREFIX) :] if len(document_id) == NAMED and document_id.startswith(PREFIX) else document_id


class PersistedDocuments:
    """The documents that are known by an id; each text is there once."""

    def __init__(self, persistence: Persistence) -> None:
        texts = {text: text for text in persistence.trusted.values()}
        self._trusted = {hash_of(text): text for text in texts}
        self._trusted |= {id_: texts[text] for id_, text in persistence.trusted.items()}
        self._texts = frozenset(texts)
        self._only_trusted = persistence.only_trusted
        self._most_bytes = 0 if persistence.only_trusted else persistence.most_bytes
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._bytes = 0

    def is_trusted(self, text: str) -> bool:
        """Say whether a text is that of a trusted document."""
        return text in self._texts

    def text(self, request: Request) -> str | GraphQLError:
        """Give the text of the document that a request sends or names."""
        id_, sent = request.document_id, request.query
        if id_ is None:
            return self._admitted(sent)
        known = self._trusted.get(id_)
        if known is None and (known := self._kept.get(id_)) is not None:
            self._kept.move_to_end(id_)
        if not sent:
            return self._missing(id_) if known is None else known
        is_another = known != sent if known is not None else is_hash(id_) and hash_of(sent) != id_
        return _mismatch(id_) if is_another else self._admitted(sent if known is None else known)

    def keep(self, document_id: str, text: str) -> None:
        """Keep a document under its hash, in the place of those that were not asked for the longest."""
        if not is_hash(document_id) or document_id in self._trusted or document_id in self._kept:
            return
        size = len(text.encode())
        if size > self._most_bytes:
            return
        self._kept[document_id] = text
        self._bytes += size
        while self._bytes > self._most_bytes or len(self._kept) > DOCUMENTS_KEPT:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest.encode())

    def _admitted(self, text: str) -> str | GraphQLError:
        if self._only_trusted and text not in self._texts:
            return _refused(
                "DOCUMENT_NOT_TRUSTED",
                "expected one of the trusted documents, got another one: add it to the file that "
                "TABLEGRAPH_TRUSTED_DOCUMENTS names, and start the server anew",
            )
        return text

    def _missing(self, id_: str) -> GraphQLError:
        if self._only_trusted:
            return _refused(
                "DOCUMENT_NOT_TRUSTED",
                f"expected the id of a trusted document, got {id_[:100]!r}: add the document to the file that "
                "TABLEGRAPH_TRUSTED_DOCUMENTS names, and start the server anew",
            )
        if not is_hash(id_):
            return _refused(
                "PERSISTED_QUERY_NOT_FOUND",
                f"the server has no document {id_[:100]!r}: expected the id of a trusted one, or the SHA-256 of the "
                "text as sha256:…, in lower case, with the text as `query` where the server has not seen it yet",
            )
        # Apollo's clients go by these very words.
        if not self._most_bytes:
            return _refused("PERSISTED_QUERY_NOT_SUPPORTED", "PersistedQueryNotSupported")
        return _refused("PERSISTED_QUERY_NOT_FOUND", "PersistedQueryNotFound")


def _mismatch(id_: str) -> GraphQLError:
    return _refused(
        "DOCUMENT_ID_MISMATCH",
        f"expected the document whose id is {id_[:100]!r}, got another one: send either, or the SHA-256 of the text as "
        "it is sent, in lower case",
    )


def _refused(code: str, message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"code": code})
