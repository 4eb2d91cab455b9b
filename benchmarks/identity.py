"""What it costs to know who asks: CPU of one request, by the kind of its credentials.

python -m benchmarks.identity
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from server.identity.authenticator import Authenticator
from server.identity.configured import authenticator_of
from server.settings import Settings

ROUNDS = 7
TOKENS = 500
SCOPE = {"client": ("10.0.0.1", 1), "headers": [(b"x-user", b"ada"), (b"x-roles", b"reader")]}
KEYS = {
    "RS256": (rsa.generate_private_key(public_exponent=65537, key_size=2048), RSAAlgorithm),
    "ES256": (ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
    "EdDSA": (ed25519.Ed25519PrivateKey.generate(), OKPAlgorithm),
}

Headers = dict[bytes, bytes]


def bearer(credential: str) -> Headers:
    """Give the headers of a request with a token or key."""
    return {b"authorization": f"Bearer {credential}".encode()}


def tokens(algorithm: str, round_: int) -> list[Headers]:
    """Issue tokens of 775 characters by RS256, no two of them equal."""
    key, _ = KEYS[algorithm]
    common = {"iss": "i", "aud": "a", "exp": int(time.time()) + 3600, "roles": ["reader"] * 10, "jti": "x" * 120}
    subjects = [f"user-{round_ * TOKENS + number}" for number in range(TOKENS)]
    return [bearer(jwt.encode({**common, "sub": each}, key, algorithm, {"kid": algorithm})) for each in subjects]


def every_source(folder: Path) -> Authenticator:
    """Make what takes tokens, one of 1,000 API keys, and a proxy's headers."""
    published = [
        {**json.loads(kind.to_jwk(key.public_key())), "kid": name, "key_ops": ["verify"]}
        for name, (key, kind) in KEYS.items()
    ]
    entries = [{"name": f"k{n}", "sha256": hashlib.sha256(f"tg_{n}".encode()).hexdigest()} for n in range(1000)]
    (folder / "jwks.json").write_text(json.dumps({"keys": published}))
    (folder / "keys.json").write_text(json.dumps({"keys": entries}))
    return authenticator_of(
        Settings(
            jwt_keys=str(folder / "jwks.json"),
            jwt_issuer="i",
            jwt_audience="a",
            api_keys=folder / "keys.json",
            proxy_headers="subject=X-User,roles=X-Roles",
            trusted_proxies="10.0.0.0/8",
        )
    )


async def show(what: str, authenticator: Authenticator, rounds: Sequence[Sequence[Headers]]) -> None:
    """Print what one request takes, in the best of the rounds."""
    costs = []
    for requests in rounds:
        began = time.process_time()
        for headers in requests:
            await authenticator.identify(headers, SCOPE)
        costs.append((time.process_time() - began) / len(requests) * 1e6)
    print(f"{min(costs):8.2f} µs  {what}")


async def main() -> None:
    """Print a line for each kind."""
    with tempfile.TemporaryDirectory() as folder:
        authenticator = every_source(Path(folder))
        await show("no source of identity", authenticator_of(Settings()), [[{}] * 5000] * ROUNDS)
        for name in KEYS:
            first = [tokens(name, number) for number in range(ROUNDS)]
            await show(f"{name}, seen for the first time", authenticator, first)
        known = tokens("RS256", ROUNDS)
        await show("a token seen before", authenticator, [known, *[known * 10] * ROUNDS])
        keys = [bearer(f"tg_{number}") for number in range(1000)]
        await show("an API key, one of 1,000", authenticator, [keys * 5] * ROUNDS)
        await show("a proxy's headers", authenticator, [[dict(SCOPE["headers"])] * 5000] * ROUNDS)


if __name__ == "__main__":
    asyncio.run(main())
