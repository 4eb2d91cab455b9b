"""An issuer of tokens that publishes its keys over HTTP, rotates them, and fails when told to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://issuer.example"
AUDIENCE = "tablegraph-test"
SECRET = b"a secret of forty bytes that nobody knows"


@cache
def private_key(algorithm: str, name: str = "") -> Any:
    """Give a key that fits an algorithm, each time the same for the same name."""
    if algorithm[:2] in ("RS", "PS"):
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key({"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1()}[algorithm])


def jwk(algorithm: str, id_: str | None, **more: Any) -> dict[str, Any]:
    """Give the public part of a key as a JWK Set has it."""
    public = private_key(algorithm, id_ or "").public_key()
    kind: Any = {"R": RSAAlgorithm, "P": RSAAlgorithm, "E": ECAlgorithm}[algorithm[0]]
    kind = OKPAlgorithm if algorithm == "EdDSA" else kind
    # PyJWT says as well what the key may be used for, in another way.
    made = {name: value for name, value in json.loads(kind.to_jwk(public)).items() if name != "key_ops"}
    return {**made, "use": "sig", **({} if id_ is None else {"kid": id_}), **more}


def pem(algorithm: str, id_: str = "") -> bytes:
    """Give the public part of a key in PEM."""
    public: bytes = (
        private_key(algorithm, id_).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    return public


def claims(**other: Any) -> dict[str, Any]:
    """Give the claims of a token that is fine but for the others, of which None leaves one out."""
    now = int(time.time())
    fine = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 600, "roles": ["reader"]}
    return {name: value for name, value in {**fine, **other}.items() if value is not None}


def token(algorithm: str = "RS256", id_: str | None = "one", *, key: Any = None, **other: Any) -> str:
    """Issue a token; the key is that of the algorithm and the id unless told."""
    headers = {} if id_ is None else {"kid": id_}
    return jwt.encode(claims(**other), key or private_key(algorithm, id_ or ""), algorithm, headers)


def bearer(credential: str) -> dict[str, str]:
    """Give the header that brings a token or key."""
    return {"authorization": f"Bearer {credential}"}


@dataclass
class Issuer:
    """The issuer's server: what it publishes, and what it was asked."""

    url: str = ""
    keys: list[Mapping[str, Any]] = field(default_factory=lambda: [jwk("RS256", "one")])
    status: int = 200
    content: bytes | None = None
    """Sent in place of the keys."""
    fetches: int = 0
    open: threading.Event = field(default_factory=threading.Event)
    """Cleared, answers wait for it."""

    def answer(self) -> tuple[int, bytes]:
        """Answer one request."""
        self.fetches += 1
        self.open.wait(20)
        body = json.dumps({"keys": self.keys}).encode() if self.content is None else self.content
        return self.status, body


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """Run an issuer with one key, of RSA."""
    issuer = Issuer()
    issuer.open.set()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

        def do_GET(self) -> None:
            status, body = issuer.answer()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if status == 302:
                self.send_header("Location", issuer.url)
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    issuer.url = f"http://127.0.0.1:{server.server_port}/jwks.json"
    try:
        yield issuer
    finally:
        issuer.open.set()
        server.shutdown()
        thread.join()
        server.server_close()
