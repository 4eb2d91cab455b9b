"""What an authorizer of API Gateway, or a function URL, has found out about the caller of an AWS Lambda function.

It is in the event, beside the request: clients cannot write there.

Source: API Gateway Developer Guide, "Working with AWS Lambda proxy integrations for HTTP APIs" and "Input format of a
        Lambda function for proxy integration"; AWS Lambda Developer Guide, "Function URL invocation basics".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.types import Scope

from graph.identity import Identity
from server.identity.claims import Named, found_at, second
from server.identity.refusals import Unauthenticated


class Authorizer:
    """Reads who asks out of an event."""

    def __init__(self, named: Named) -> None:
        self._named = named

    def identify(self, scope: Scope) -> Identity | None:
        """Say who asks; None where no authorizer did. Raises: Unauthenticated where it does not say who."""
        claims = _claims(found_at(scope.get("aws.event", {}), "requestContext.authorizer"))
        if not claims:
            return None
        # Those of other authorizers than for tokens.
        subject = self._named.subject_of(claims) or claims.get("principalId") or claims.get("userArn")
        if not isinstance(subject, str) or not subject:
            raise Unauthenticated("WRONG_CLAIMS", f"expected {self._named.subject} from the authorizer")
        return Identity(subject, self._roles(claims), {"sub": subject, **claims}, second(claims.get("exp")))

    def _roles(self, claims: Mapping[str, Any]) -> frozenset[str]:
        found = found_at(claims, self._named.roles)
        if isinstance(found, str):
            # API Gateway makes texts of lists: "[reader writer]" in HTTP APIs, "reader,writer" in REST APIs.
            return frozenset(re.sub(r"^\[(.*)\]$", r"\1", found).replace(",", " ").split())
        return self._named.roles_of(claims)


def _claims(authorizer: Any) -> Mapping[str, Any]:
    """Find the claims: `jwt` and `lambda` are of HTTP APIs, `claims` and none of them of REST APIs, `iam` of either."""
    if not isinstance(authorizer, Mapping):
        return {}
    token = authorizer.get("jwt")
    for found in (token.get("claims") if isinstance(token, Mapping) else None, authorizer.get("claims")):
        if isinstance(found, Mapping):
            return found
    for name in ("lambda", "iam"):
        if name in authorizer:
            found = authorizer[name]
            return found if isinstance(found, Mapping) else {}
    return {name: value for name, value in authorizer.items() if name != "integrationLatency"}
