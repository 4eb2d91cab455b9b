"""Signature Version 4 for the one shape of request that DynamoDB takes: a POST of a body to the root of a host."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class Keys:
    """What a request is signed with; temporary credentials have a token."""

    access_key: str
    secret_key: str
    token: str | None = None


class Signing:
    """Everything of a signature but what the body adds: good for one second, for all requests with equal headers.

    `headers` are those given and those that sign, all names in lower case; only `authorization` lacks its signature.
    """

    def __init__(self, headers: dict[str, str], canonical: str, text: str, key: bytes) -> None:
        self.headers = headers
        self._canonical = hashlib.sha256(canonical.encode())
        self._text = hmac.new(key, text.encode(), "sha256")

    def signature(self, body: bytes) -> str:
        """Sign a body."""
        canonical, text = self._canonical.copy(), self._text.copy()
        canonical.update(hashlib.sha256(body).hexdigest().encode())
        text.update(canonical.hexdigest().encode())
        return text.hexdigest()


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs requests to one host for a service in a region."""

    host: str
    region: str
    service: str = "dynamodb"

    def signing(self, headers: Mapping[str, str], keys: Keys, second: int) -> Signing:
        """Prepare the signatures of requests with these headers, in a second since 1970.

        Source: AWS, "Create a signed AWS API request".
        """
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
        day = moment[:8]
        signed = {"host": self.host, **headers, "x-amz-date": moment}
        if keys.token:
            signed["x-amz-security-token"] = keys.token
        names = sorted(signed)
        listed = ";".join(names)
        lines = "\n".join([f"{name}:{' '.join(signed[name].split())}" for name in names])
        scope = f"{day}/{self.region}/{self.service}/aws4_request"
        signed["authorization"] = (
            f"{ALGORITHM} Credential={keys.access_key}/{scope}, SignedHeaders={listed}, Signature="
        )
        key = signing_key(keys.secret_key, day, self.region, self.service)
        return Signing(signed, f"POST\n/\n\n{lines}\n\n{listed}\n", f"{ALGORITHM}\n{moment}\n{scope}\n", key)


# The key changes once a day and with the credentials: a few are worth keeping, for a change under way.
@lru_cache(maxsize=4)
def signing_key(secret_key: str, day: str, region: str, service: str) -> bytes:
    """Derive the key that signs a day's requests to a service in a region."""
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
