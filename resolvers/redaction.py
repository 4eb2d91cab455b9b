"""Documents as operators may read them: without the values in them, which may be personal."""

from __future__ import annotations

from functools import lru_cache

from graphql import GraphQLSyntaxError, Lexer, Source, TokenKind

CHARACTERS = 2000
"""Length of a document that is shown at most."""
HIDDEN = "…"
SIZES = ("first", "last")
"""The arguments whose numbers are shown: how long a page is tells why an operation is slow."""

_VALUES = (TokenKind.INT, TokenKind.FLOAT, TokenKind.STRING, TokenKind.BLOCK_STRING)


@lru_cache(maxsize=64)
def redacted(text: str) -> str:
    """Write a document on one line, shortened, with … for texts and numbers and without comments."""
    lexer = Lexer(Source(text))
    parts: list[str] = []
    length = end = 0
    names = ["", ""]
    try:
        while (token := lexer.advance()).kind is not TokenKind.EOF and length <= CHARACTERS:
            shown = text[token.start : token.end]
            if token.kind in _VALUES and not (token.kind is TokenKind.INT and names[0] in SIZES and names[1] == ":"):
                shown = HIDDEN
            parts.append(f" {shown}" if parts and token.start > end else shown)
            length += len(parts[-1])
            end = token.end
            names = [names[1], shown]
    except GraphQLSyntaxError:
        parts.append(f" {HIDDEN}")
    shortened = "".join(parts)
    return shortened if len(shortened) <= CHARACTERS else shortened[: CHARACTERS - 1] + HIDDEN
