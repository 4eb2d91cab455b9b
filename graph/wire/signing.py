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


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs requests to one host for a service in a region."""

    host: str
    region: str
    service: str = "dynamodb"

    def signed(self, headers: Mapping[str, str], body: bytes, keys: Keys, now: float) -> dict[str, str]:
        """Give the headers of a request with those that sign it, all names in lower case; `now` is seconds since 1970.

        Source: AWS, "Create a signed AWS API request".
        """
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        day = moment[:8]
        signed = {"host": self.host, **headers, "x-amz-date": moment}
        if keys.token:
            signed["x-amz-security-token"] = keys.token
        names = sorted(signed)
        listed = ";".join(names)
        lines = "\n".join([f"{name}:{' '.join(signed[name].split())}" for name in names])
        canonical = f"POST\n/\n\n{lines}\n\n{listed}\n{hashlib.sha256(body).hexdigest()}"
        scope = f"{day}/{self.region}/{self.service}/aws4_request"
        text = f"{ALGORITHM}\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = _hmac(signing_key(keys.secret_key, day, self.region, self.service), text).hex()
        signed["authorization"] = (
            f"{ALGORITHM} Credential={keys.access_key}/{scope}, SignedHeaders={listed}, Signature={signature}"
        )
        return signed


# The key changes once a day and with the credentials: a few are worth keeping, for a change under way.
@lru_cache(maxsize=4)
def signing_key(secret_key: str, day: str, region: str, service: str) -> bytes:
    """Derive the key that signs a day's requests to a service in a region."""
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, service, "aws4_request"):
        key = _hmac(key, part)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
