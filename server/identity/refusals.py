"""What is wrong with credentials, as callers are told: what they may know, and nothing of what they sent."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from server.view import Refusal

logger = logging.getLogger(__name__)

REASONS: Final[Mapping[str, str]] = {
    "MISSING": "Expected credentials, got none; send a token or key by the header `Authorization: Bearer …`.",
    "MALFORMED": "Expected credentials in a form that can be read, got something else; send one token or key, as "
    "`Authorization: Bearer …`.",
    "EXPIRED": "The credentials have expired; get new ones.",
    "NOT_YET_VALID": "The token is not valid yet; wait, or set the clock right that it was issued by.",
    "WRONG_ISSUER": "Expected a token of this server's issuer, got one of another; get it there.",
    "WRONG_AUDIENCE": "Expected a token for this server, got one for another; ask the issuer for the right one.",
    "WRONG_ALGORITHM": "Expected a token signed by an algorithm that this server takes, got another.",
    "WRONG_SIGNATURE": "Expected a token as its issuer signed it, got one that is not; get a new one.",
    "WRONG_CLAIMS": "Expected a token that says who it is for and until when, got one with claims missing or wrong.",
    "UNKNOWN_KEY": "Expected a token signed by a key that the issuer has published, got another; get a new one.",
    "UNKNOWN_API_KEY": "Expected a key that this server knows, got another; ask for a new one.",
    "UNTRUSTED_PEER": "Only a proxy that this server trusts may say who asks; leave its headers out.",
}
"""Each `extensions.reason` of UNAUTHENTICATED, and what the caller is told."""


class Unauthenticated(Refusal):
    """It is not certain who asks."""

    def __init__(self, reason: str, detail: str = "") -> None:
        """Take the reason, and for the log alone what else there is to know; never credentials."""
        # Who sent none is only told how. Source: RFC 6750, 3.
        error = "" if reason == "MISSING" else ' error="invalid_token"'
        super().__init__(401, "UNAUTHENTICATED", REASONS[reason], (b"www-authenticate", f"Bearer{error}".encode()))
        self.reason = reason
        self.detail = detail

    def body(self) -> dict[str, Any]:
        """Put the refusal into the form of a GraphQL error."""
        return {"errors": [{"message": str(self), "extensions": {"code": self.code, "reason": self.reason}}]}

    def log(self) -> None:
        """Write it down."""
        fields = {"reason": self.reason} | ({"detail": self.detail[:200]} if self.detail else {})
        logger.info("unauthenticated", extra={"fields": fields})


def unavailable(retry_secs: float) -> Refusal:
    """Say that credentials cannot be checked now."""
    message = "The keys that tokens are checked by cannot be had from their issuer now; ask again."
    return Refusal(503, "IDENTITY_UNAVAILABLE", message, (b"retry-after", b"%d" % max(1, round(retry_secs))))
