"""Where requests go and how they are written: read from a client of boto3, so that botocore's rules hold."""

from __future__ import annotations

import ssl
import time
from pathlib import Path
from urllib.parse import urlsplit

from botocore.httpsession import get_cert_path
from botocore.utils import get_environ_proxies

from graph.boto import BotoTransport
from graph.wire.pool import Address
from graph.wire.signing import Keys, Signer, Signing

PORTS = {"https": 443, "http": 80}


class Endpoint:
    """One host that speaks DynamoDB's API."""

    def __init__(self, url: str, address: Address, signer: Signer, content_type: str, target: str) -> None:
        self.url = url
        self.address = address
        self.signer = signer
        self._content_type = content_type
        self._target = target
        self._prepared: dict[str, tuple[int, Keys, Signing, bytes]] = {}
        """Of each operation: for which second and keys it is prepared, how to sign it, and how its head begins."""

    def headers(self, operation: str) -> dict[str, str]:
        """Give the headers that say what is asked for."""
        return {"content-type": self._content_type, "x-amz-target": f"{self._target}.{operation}"}

    def request(self, operation: str, body: bytes, keys: Keys) -> bytes:
        """Write a signed request as it goes over the connection."""
        now = int(time.time())
        prepared = self._prepared.get(operation)
        if prepared is None or prepared[0] != now or prepared[1] is not keys:
            prepared = self._prepared[operation] = now, keys, *self._prepare(operation, keys, now)
        _, _, signing, head = prepared
        return b"%b%b\r\ncontent-length: %d\r\n\r\n%b" % (head, signing.signature(body).encode(), len(body), body)

    def _prepare(self, operation: str, keys: Keys, now: int) -> tuple[Signing, bytes]:
        signing = self.signer.signing(self.headers(operation), keys, now)
        # The authorization comes last and without its signature, which is to follow.
        # identity: DynamoDB's checksum would be that of the compressed bytes.
        headers = {"accept-encoding": "identity", **signing.headers}
        lines = [f"{name}: {value}" for name, value in headers.items()]
        return signing, "\r\n".join(["POST / HTTP/1.1", *lines]).encode()


def endpoint_of(boto: BotoTransport) -> Endpoint | None:
    """Read the endpoint that boto3 would use; None where it alone knows the way.

    That is behind a proxy, where the URL has a path, and where each account has to have an endpoint of its own.
    """
    meta = boto.client.meta
    parts = urlsplit(meta.endpoint_url)
    is_plain = not parts.query and parts.path in ("", "/") and parts.scheme in PORTS and parts.hostname
    has_account = getattr(meta.config, "account_id_endpoint_mode", None) == "required"
    if not is_plain or has_account or parts.scheme in get_environ_proxies(meta.endpoint_url):
        return None
    port = parts.port or PORTS[parts.scheme]
    name = f"[{parts.hostname}]" if ":" in str(parts.hostname) else str(parts.hostname)
    host = name if port == PORTS[parts.scheme] else f"{name}:{port}"
    tls = _tls(boto) if parts.scheme == "https" else None
    described = meta.service_model.metadata
    return Endpoint(
        meta.endpoint_url,
        Address(str(parts.hostname), port, tls),
        Signer(host, meta.region_name, meta.service_model.signing_name),
        f"application/x-amz-json-{described['jsonVersion']}",
        described["targetPrefix"],
    )


def _tls(boto: BotoTransport) -> ssl.SSLContext:
    """Trust whom botocore trusts: AWS_CA_BUNDLE, `ca_bundle` of the profile, or else its own list."""
    path = str(get_cert_path(boto.session.get_config_variable("ca_bundle") or True))
    is_folder = Path(path).is_dir()
    return ssl.create_default_context(cafile=None if is_folder else path, capath=path if is_folder else None)
