"""Documents as operators may read them: without the values in them, which may be personal."""

from __future__ import annotations

from functools import lru_cache

from graphql import GraphQLSyntaxError, Lexer, Source, TokenKind

CHARACTERS = 2000
"""Length of a document that is shown at most."""
HIDDEN = "…"
SIZES = ("first", "last")
"""The arguments whose numbers are shown: how long a page is tells why an operation is slow."""

_OPENING = (TokenKind.PAREN_L, TokenKind.BRACE_L, TokenKind.BRACKET_L)
_CLOSING = (TokenKind.PAREN_R, TokenKind.BRACE_R, TokenKind.BRACKET_R)
_VALUES = (TokenKind.INT, TokenKind.FLOAT, TokenKind.STRING, TokenKind.BLOCK_STRING)


@lru_cache(maxsize=64)
def redacted(text: str) -> str:
    """Write a document on one line, shortened, with … for texts and numbers and without comments."""
    lexer = Lexer(Source(text))
    parts: list[str] = []
    length = end = 0
    names, brackets = ["", ""], [""]
    try:
        while (token := lexer.advance()).kind is not TokenKind.EOF and length <= CHARACTERS:
            shown = text[token.start : token.end]
            if token.kind in _OPENING:
                brackets.append(shown)
            elif token.kind in _CLOSING and len(brackets) > 1:
                brackets.pop()
            is_size = brackets[-1] == "(" and names[0] in SIZES and names[1] == ":"
            if token.kind in _VALUES and not (token.kind is TokenKind.INT and is_size):
                shown = HIDDEN
            gap = text[end : token.start].partition("#")[0]
            parts.append(f"{',' if ',' in gap else ''}{' ' if gap and parts else ''}{shown}")
            length += len(parts[-1])
            end = token.end
            names = [names[1], shown]
    except GraphQLSyntaxError:
        parts.append(f" {HIDDEN}")
    shortened = "".join(parts)
    return shortened if len(shortened) <= CHARACTERS else shortened[: CHARACTERS - 1] + HIDDEN
