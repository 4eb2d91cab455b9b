"""JSON Web Tokens: checked by the issuer's keys once, and known again by their hash until they expire.

Source: RFC 7519 (JWT), RFC 8725 (best practices), RFC 9068 (access tokens).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

import jwt

from graph.identity import Identity
from server.identity.claims import Named, second
from server.identity.issuer import Keys
from server.identity.jwks import Key, KeySet
from server.identity.refusals import Unauthenticated

MOST_CHARACTERS: Final = 16_384
MOST_KNOWN: Final = 4096
"""How many verified tokens are remembered; those not seen for longest are forgotten."""

# The audience is looked at below.
_OPTIONS: Final[Any] = {"require": ["exp", "iss"], "verify_aud": False}
_REASONS: Final[Mapping[type[Exception], str]] = {
    jwt.ExpiredSignatureError: "EXPIRED",
    jwt.ImmatureSignatureError: "NOT_YET_VALID",
    jwt.InvalidIssuerError: "WRONG_ISSUER",
    jwt.InvalidAlgorithmError: "WRONG_ALGORITHM",
    jwt.InvalidSignatureError: "WRONG_SIGNATURE",
    jwt.MissingRequiredClaimError: "WRONG_CLAIMS",
    jwt.InvalidIssuedAtError: "WRONG_CLAIMS",
    jwt.exceptions.InvalidSubjectError: "WRONG_CLAIMS",
    jwt.exceptions.InvalidJTIError: "WRONG_CLAIMS",
}


class Demands(NamedTuple):
    """What a token must be."""

    issuer: str
    audiences: frozenset[str]
    algorithms: tuple[str, ...]
    leeway_secs: float


class Tokens:
    """Knows who a token speaks for."""

    def __init__(self, keys: Keys, demands: Demands, named: Named, clock: Callable[[], float] = time.time) -> None:
        self._keys = keys
        self._demands = demands
        self._named = named
        self._clock = clock
        self._known: OrderedDict[bytes, Identity] = OrderedDict()
        """By the token's hash: the tokens themselves are not kept."""
        self._known_by: KeySet = ()
        """The keys that they were checked by."""

    def start(self) -> None:
        """Have the keys fetched, if they are, before the first token comes."""
        self._keys.known()

    async def identify(self, token: str) -> Identity:
        """Make sure of a token, and say who it speaks for.

        Cost: a hash and a look-up where it is known, else a check of its signature; where its key is not known, a
              fetch of the issuer's keys, at times.
        Raises: Refusal.
        """
        name = sha256(token.encode()).digest()
        if (known := self._known_as(name)) is not None:
            return known
        identity = await self._check(token)
        self._forget_old_keys()
        self._known[name] = identity
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return identity

    def _known_as(self, name: bytes) -> Identity | None:
        self._forget_old_keys()
        known = self._known.get(name)
        if known is None or known.expires is None or known.expires <= self._clock():
            return None
        self._known.move_to_end(name)
        return known

    def _forget_old_keys(self) -> None:
        keys = self._keys.known()
        if keys is not self._known_by:
            # What they were checked by may be what was withdrawn.
            self._known.clear()
            self._known_by = keys

    async def _check(self, token: str) -> Identity:
        if len(token) > MOST_CHARACTERS:
            raise Unauthenticated("MALFORMED", f"a token of {len(token)} characters")
        id_, algorithm = self._header(token)
        found = await self._keys.find(id_, algorithm)
        if not found:
            raise Unauthenticated("UNKNOWN_KEY", f"kid {id_}, alg {algorithm}")
        claims = self._verified(token, found, algorithm)
        self._check_audience(claims)
        subject, expires = self._named.subject_of(claims), second(claims["exp"])
        if subject is None or expires is None:
            raise Unauthenticated("WRONG_CLAIMS", f"expected {self._named.subject}, a text, and exp, a number")
        return Identity(subject, self._named.roles_of(claims), claims, expires + self._demands.leeway_secs)

    def _header(self, token: str) -> tuple[str | None, str]:
        """Read the key's id and the algorithm, by which a key is chosen of those pinned, and nothing more."""
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError) as error:
            raise Unauthenticated("MALFORMED", str(error)) from None
        id_, algorithm = header.get("kid"), header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in self._demands.algorithms:
            raise Unauthenticated("WRONG_ALGORITHM", f"alg {algorithm}")
        if not isinstance(id_, str | None):
            raise Unauthenticated("MALFORMED", "its kid is no string")
        return id_, algorithm

    def _verified(self, token: str, keys: list[Key], algorithm: str) -> dict[str, Any]:
        refused = Unauthenticated("WRONG_SIGNATURE")
        for key in keys:
            try:
                return jwt.decode(
                    token,
                    key.material,
                    algorithms=[algorithm],
                    issuer=self._demands.issuer,
                    leeway=self._demands.leeway_secs,
                    options=_OPTIONS,
                )
            except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
                refused = Unauthenticated(_REASONS.get(type(error), "MALFORMED"), str(error))
                # Issuers may give two keys one id.
                if refused.reason != "WRONG_SIGNATURE":
                    break
        raise refused

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        # Access tokens of Cognito have a client_id in its place, and API Gateway reads them in this way too.
        audience = claims.get("aud", claims.get("client_id"))
        named = audience if isinstance(audience, list) else [audience]
        if not any(isinstance(each, str) and each in self._demands.audiences for each in named):
            raise Unauthenticated("WRONG_AUDIENCE", f"aud {audience}")
