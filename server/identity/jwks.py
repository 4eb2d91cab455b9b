"""The keys that tokens are checked by: read from a JWK Set, a public key in PEM, or a shared secret.

Source: RFC 7517 (JWK), RFC 7518 (which key goes with which algorithm), RFC 8725 (what to be wary of).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt import PyJWK, PyJWTError

logger = logging.getLogger(__name__)

RSA: Final = frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"))
CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
LEAST_RSA_BITS: Final = 2048
LEAST_SECRET_BYTES: Final = 32
"""Source: RFC 7518, 3.2: as many as the hash has."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key, and the algorithms that it may be used with: the token does not choose."""

    id: str | None
    algorithms: frozenset[str]
    material: Any = field(compare=False, repr=False)
    fingerprint: str = field(repr=False)
    """Tells it from other keys of the same id."""


KeySet = tuple[Key, ...]


def candidates(keys: KeySet, id_: str | None, algorithm: str) -> list[Key]:
    """Find the keys that a token may be signed by, as its header has it.

    A key without an id, of a PEM file, goes with any token; a token without one only with the one key that there is.
    """
    fitting = [key for key in keys if algorithm in key.algorithms]
    if id_ is None:
        return fitting if len(fitting) == 1 else []
    return [key for key in fitting if key.id in (id_, None)]


def read_keys(content: bytes) -> KeySet:
    """Read a file of keys. Raises: ValueError with the expectation."""
    return (_of_pem(content),) if content.lstrip().startswith(b"-----BEGIN") else read_jwks(content)


def read_secret(content: bytes) -> KeySet:
    """Read a file that holds a secret, without the line's end. Raises: ValueError with the expectation."""
    secret = content.rstrip(b"\r\n")
    if len(secret) < LEAST_SECRET_BYTES:
        raise ValueError(f"a secret of at least {LEAST_SECRET_BYTES} bytes, got {len(secret)}")
    if b"-----BEGIN" in secret:
        # A public key as the secret would be the very confusion that attackers hope for.
        raise ValueError("a secret that nobody else has, got a key in PEM; that is for --jwt-keys")
    return (Key(None, frozenset(("HS256",)), secret, "secret"),)


def read_jwks(content: bytes) -> KeySet:
    """Read a JWK Set; of its keys those for signatures that we can use. Raises: ValueError with the expectation."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("a JWK Set in JSON, or a public key in PEM, got something else") from None
    members = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(members, list):
        raise ValueError('a JWK Set, {"keys": [...]}, got JSON of another form')
    keys = tuple(_usable(members))
    if not keys:
        raise ValueError("a JWK Set with a public key for signatures by RSA, EC or Ed25519, got one without any")
    return keys


def _usable(members: list[Any]) -> Iterator[Key]:
    for member in members:
        if not isinstance(member, dict):
            continue
        # Sets have keys for other purposes in them as well, and may have kinds that are yet to be invented.
        operations = member.get("key_ops", ["verify"])
        is_for_signatures = isinstance(operations, list) and "verify" in operations
        if member.get("use", "sig") != "sig" or not is_for_signatures or member.get("kty") not in ("RSA", "EC", "OKP"):
            continue
        try:
            yield _of_jwk(member)
        except (ValueError, TypeError, PyJWTError, UnsupportedAlgorithm) as error:
            logger.warning("a key of the issuer is left out: %s", error, extra={"fields": {"kid": member.get("kid")}})


def _of_jwk(member: Mapping[str, Any]) -> Key:
    id_ = member.get("kid")
    if not isinstance(id_, str | None):
        raise ValueError("expected its kid to be a string")
    if "d" in member:
        raise ValueError("it is a private key, and so no secret any more")
    # By its kind alone: what its `alg` says is looked at below.
    kind = dict(member)
    named = kind.pop("alg", None)
    key = _key(PyJWK(kind).key, id_)
    if named is None:
        return key
    # An algorithm that we do not know leaves none.
    return Key(id_, key.algorithms & {named}, key.material, key.fingerprint)


def _of_pem(content: bytes) -> Key:
    if b"PRIVATE KEY" in content:
        raise ValueError("a public key, got a private one, which is for the issuer alone")
    try:
        return _key(load_pem_public_key(content), None)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"a public key in PEM, of RSA, EC or Ed25519, got something else ({error})") from None


def _key(material: Any, id_: str | None) -> Key:
    if isinstance(material, RSAPublicKey):
        if material.key_size < LEAST_RSA_BITS:
            raise ValueError(f"expected at least {LEAST_RSA_BITS} bits of RSA, got {material.key_size}")
        numbers = material.public_numbers()
        return Key(id_, RSA, material, f"RSA {numbers.e:x} {numbers.n:x}")
    if isinstance(material, EllipticCurvePublicKey) and material.curve.name in CURVES:
        point = material.public_numbers()
        algorithms = frozenset((CURVES[material.curve.name],))
        return Key(id_, algorithms, material, f"{material.curve.name} {point.x:x} {point.y:x}")
    if isinstance(material, Ed25519PublicKey):
        return Key(id_, frozenset(("EdDSA",)), material, f"Ed25519 {material.public_bytes_raw().hex()}")
    raise ValueError("expected RSA, P-256, P-384, P-521 or Ed25519, got another kind of key")
