"""Credentials that are not what they seem, with the reason that each is refused for."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jwt

from tests.issuer import SECRET, bearer, claims, jwk, pem, private_key, token

HOUR = 3600


class Attack(NamedTuple):
    """What is tried."""

    what: str
    headers: Callable[[], dict[str, str]]
    reason: str


def part(value: Any) -> str:
    """Encode a part of a token."""
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def by_hand(header: dict[str, Any], payload: Any = None, secret: bytes | None = None) -> str:
    """Make a token as no library would, signed with HMAC where there is a secret."""
    signed = f"{part(header)}.{part(claims() if payload is None else payload)}"
    return f"{signed}.{part(hmac.digest(secret, signed.encode(), hashlib.sha256)) if secret is not None else ''}"


def changed(**other: Any) -> str:
    """Make a token whose claims were changed after it was signed."""
    header, _, signature = token().split(".")
    return f"{header}.{part(claims(**other))}.{signature}"


def own_key(header: dict[str, Any]) -> str:
    """Make a token that brings along, or points to, the key that it is signed by."""
    return jwt.encode(claims(sub="root"), private_key("RS256", "mine"), "RS256", {"kid": "one", **header})


def _now() -> int:
    return int(time.time())


def _basic() -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(b"ada:secret").decode()}


ATTACKS = (
    Attack("no credentials", dict, "MISSING"),
    Attack("`Basic` in place of `Bearer`", _basic, "MALFORMED"),
    Attack("`Bearer` and nothing", lambda: {"authorization": "Bearer"}, "MALFORMED"),
    Attack("two tokens in one header", lambda: {"authorization": f"Bearer {token()}, Bearer {token()}"}, "MALFORMED"),
    Attack("a token of two parts", lambda: bearer(token().rpartition(".")[0]), "MALFORMED"),
    Attack("a token of five parts (JWE)", lambda: bearer("a.b.c.d.e"), "MALFORMED"),
    Attack("a header that is no JSON", lambda: bearer(f"{part(b'{')}.{part(claims())}.{part(b'x')}"), "MALFORMED"),
    Attack("claims nested 5,000 deep", lambda: bearer(by_hand({"alg": "RS256"}, b"[" * 5000)), "UNKNOWN_KEY"),
    Attack("a token of 20 kB", lambda: bearer(token(padding="x" * 15_000)), "MALFORMED"),
    Attack("`alg: none`, unsigned", lambda: bearer(by_hand({"alg": "none", "kid": "one"})), "WRONG_ALGORITHM"),
    Attack("`alg: nOnE`, unsigned", lambda: bearer(by_hand({"alg": "nOnE", "kid": "one"})), "WRONG_ALGORITHM"),
    Attack("no `alg`", lambda: bearer(by_hand({"kid": "one"}, secret=b"")), "WRONG_ALGORITHM"),
    Attack("`alg` as a list", lambda: bearer(by_hand({"alg": ["RS256"], "kid": "one"})), "WRONG_ALGORITHM"),
    Attack(
        "HS256 with the public key in PEM as its secret",
        lambda: bearer(by_hand({"alg": "HS256", "kid": "one"}, secret=pem("RS256", "one"))),
        "WRONG_ALGORITHM",
    ),
    Attack(
        "HS256 with the JWK as its secret",
        lambda: bearer(by_hand({"alg": "HS256", "kid": "one"}, secret=json.dumps(jwk("RS256", "one")).encode())),
        "WRONG_ALGORITHM",
    ),
    Attack("HS256 with an empty secret", lambda: bearer(by_hand({"alg": "HS256"}, secret=b"")), "WRONG_ALGORITHM"),
    Attack("HS256 with a good secret", lambda: bearer(token("HS256", key=SECRET)), "WRONG_ALGORITHM"),
    Attack(
        "RS256 as header, signed by HMAC",
        lambda: bearer(by_hand({"alg": "RS256", "kid": "one"}, secret=pem("RS256", "one"))),
        "WRONG_SIGNATURE",
    ),
    Attack(
        "RS512, which is not pinned",
        lambda: bearer(jwt.encode(claims(), private_key("RS256", "one"), "RS512", {"kid": "one"})),
        "WRONG_ALGORITHM",
    ),
    Attack("ES256 by the `kid` of a key for RSA", lambda: bearer(token("ES256", "one")), "UNKNOWN_KEY"),
    Attack("another's signature", lambda: bearer(token(key=private_key("RS256", "mine"))), "WRONG_SIGNATURE"),
    Attack("no signature", lambda: bearer(token().rpartition(".")[0] + "."), "WRONG_SIGNATURE"),
    Attack("claims changed after signing", lambda: bearer(changed(sub="root")), "WRONG_SIGNATURE"),
    Attack(
        "an ES256 signature of zeros",
        lambda: bearer(by_hand({"alg": "ES256", "kid": "two"}) + part(bytes(64))),
        "WRONG_SIGNATURE",
    ),
    Attack("a key of its own in `jwk`", lambda: bearer(own_key({"jwk": jwk("RS256", "mine")})), "WRONG_SIGNATURE"),
    Attack("a key of its own by `jku`", lambda: bearer(own_key({"jku": "http://127.0.0.1/jwks"})), "WRONG_SIGNATURE"),
    Attack("a key of its own by `x5u`", lambda: bearer(own_key({"x5u": "http://127.0.0.1/x5u"})), "WRONG_SIGNATURE"),
    Attack("`crit` that nobody understands", lambda: bearer(own_key({"crit": ["exp2"], "exp2": 1})), "MALFORMED"),
    Attack("a `kid` that is not published", lambda: bearer(token(id_="three")), "UNKNOWN_KEY"),
    Attack("a `kid` that is a path", lambda: bearer(token(id_="../../../../dev/null")), "UNKNOWN_KEY"),
    Attack("a `kid` that is SQL", lambda: bearer(token(id_="x' UNION SELECT 'secret")), "UNKNOWN_KEY"),
    Attack("a `kid` that is a number", lambda: bearer(by_hand({"alg": "RS256", "kid": 1})), "MALFORMED"),
    Attack("no `kid`, where several keys fit", lambda: bearer(token(id_=None)), "UNKNOWN_KEY"),
    Attack("an expired token", lambda: bearer(token(exp=_now() - HOUR)), "EXPIRED"),
    Attack("a token that never expires", lambda: bearer(token(exp=None)), "WRONG_CLAIMS"),
    Attack("`exp` as a text", lambda: bearer(token(exp="tomorrow")), "MALFORMED"),
    Attack("`exp` beyond all numbers", lambda: bearer(token(exp=float("inf"))), "MALFORMED"),
    Attack("a token of tomorrow (`nbf`)", lambda: bearer(token(nbf=_now() + HOUR)), "NOT_YET_VALID"),
    Attack("a token issued tomorrow (`iat`)", lambda: bearer(token(iat=_now() + HOUR)), "NOT_YET_VALID"),
    Attack("a token of another issuer", lambda: bearer(token(iss="https://issuer.example.evil")), "WRONG_ISSUER"),
    Attack(
        "`iss` as a list with the right one", lambda: bearer(_unchecked(iss=["https://issuer.example"])), "WRONG_ISSUER"
    ),
    Attack("no issuer", lambda: bearer(token(iss=None)), "WRONG_CLAIMS"),
    Attack("a token for another service", lambda: bearer(token(aud="payroll")), "WRONG_AUDIENCE"),
    Attack("no audience", lambda: bearer(token(aud=None)), "WRONG_AUDIENCE"),
    Attack("no subject", lambda: bearer(token(sub=None)), "WRONG_CLAIMS"),
    Attack("an empty subject", lambda: bearer(token(sub="")), "WRONG_CLAIMS"),
    Attack("a subject that is no text", lambda: bearer(_unchecked(sub={"admin": True})), "WRONG_CLAIMS"),
    Attack("an API key that was never given out", lambda: bearer("tg_" + "A" * 43), "UNKNOWN_API_KEY"),
    Attack(
        "the hash of an API key in its place",
        lambda: bearer(hashlib.sha256(b"tg_known").hexdigest()),
        "UNKNOWN_API_KEY",
    ),
    Attack("an API key that has expired", lambda: bearer("tg_expired"), "EXPIRED"),
    Attack("a proxy's header from elsewhere", lambda: {"x-auth-user": "root"}, "UNTRUSTED_PEER"),
    Attack("the same beside a good token", lambda: {"x-auth-roles": "admin", **bearer(token())}, "UNTRUSTED_PEER"),
    Attack(
        "the same, with `X-Forwarded-For` of the proxy",
        lambda: {"x-auth-user": "root", "x-forwarded-for": "10.1.2.3"},
        "UNTRUSTED_PEER",
    ),
)


def _unchecked(**other: Any) -> str:
    """Issue a token whose claims PyJWT would not issue."""
    content = json.dumps(claims(**other)).encode()
    return jwt.api_jws.encode(content, private_key("RS256", "one"), "RS256", {"kid": "one", "typ": "JWT"})
