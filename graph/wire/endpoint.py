"""Where requests go and how they are written: read from a client of boto3, so that botocore's rules hold."""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from botocore.httpsession import get_cert_path
from botocore.utils import get_environ_proxies

from graph.boto import BotoTransport
from graph.wire.pool import Address
from graph.wire.signing import Keys, Signer

PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One host that speaks DynamoDB's API."""

    url: str
    address: Address
    signer: Signer
    content_type: str
    target: str

    def request(self, operation: str, body: bytes, keys: Keys) -> bytes:
        """Write a signed request as it goes over the connection."""
        headers = {"content-type": self.content_type, "x-amz-target": f"{self.target}.{operation}"}
        signed = self.signer.signed(headers, body, keys, time.time())
        lines = "".join([f"{name}: {value}\r\n" for name, value in signed.items()])
        # identity: DynamoDB's checksum would be that of the compressed bytes.
        head = f"POST / HTTP/1.1\r\n{lines}accept-encoding: identity\r\ncontent-length: {len(body)}\r\n\r\n"
        return head.encode() + body


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
