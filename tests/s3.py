"""A small server that speaks as much of S3 as large values need: objects are put, got, listed by pages and deleted."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 3
"""How many objects a list gives at once."""


@dataclass
class Buckets:
    """What the server holds, and what it was asked."""

    url: str = ""
    objects: dict[str, dict[str, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    failing: int = 0
    """How many of the next requests are answered with 503."""
    refusing: bool = False


@contextmanager
def running_s3(*buckets: str) -> Iterator[Buckets]:
    """Run a server with these buckets."""
    held = Buckets(objects={bucket: {} for bucket in buckets})

    class Handler(_Handler):
        buckets = held

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    held.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield held
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    buckets: Buckets
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self._is_refused():
            return
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
        if self.headers["x-amz-checksum-sha256"] != digest:
            self._error(400, "BadDigest")
            return
        self._bucket[self._key] = body
        self._answer(200)

    def do_GET(self) -> None:
        if self._is_refused():
            return
        if not self._key:
            self._list()
        elif self._key in self._bucket:
            self._answer(200, self._bucket[self._key])
        else:
            self._error(404, "NoSuchKey")

    def do_DELETE(self) -> None:
        if not self._is_refused():
            self._bucket.pop(self._key, None)
            self._answer(204)

    @property
    def _place(self) -> tuple[str, str]:
        bucket, _, key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        return bucket, key

    @property
    def _key(self) -> str:
        return self._place[1]

    @property
    def _bucket(self) -> dict[str, bytes]:
        return self.buckets.objects[self._place[0]]

    def _is_refused(self) -> bool:
        self.buckets.asked.append(f"{self.command} {urlsplit(self.path).path}")
        if self.buckets.failing:
            self.buckets.failing -= 1
            self._error(503, "SlowDown")
        elif self.buckets.refusing or "Authorization" not in self.headers:
            self._error(403, "AccessDenied")
        elif self._place[0] not in self.buckets.objects:
            self._error(404, "NoSuchBucket")
        else:
            return False
        return True

    def _list(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        prefix, after = query.get("prefix", [""])[0], query.get("continuation-token", [""])[0]
        keys = [key for key in sorted(self._bucket) if key.startswith(prefix) and key > after]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self._bucket[key])}</Size><LastModified>{now}</LastModified>"
            "</Contents>"
            for key in keys[:PAGE]
        )
        more = len(keys) > PAGE
        token = f"<NextContinuationToken>{escape(keys[PAGE - 1])}</NextContinuationToken>" if more else ""
        text = f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{entries}</ListBucketResult>"
        self._answer(200, text.encode())

    def _error(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{code} it is</Message></Error>".encode())

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
