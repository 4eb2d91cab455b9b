"""GraphiQL: its page, filled with a configuration, and its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import orjson
from starlette.responses import Response as HttpResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from server.negotiation import HTML
from server.settings import Settings
from server.view import Answer

ENDPOINT = "/graphql"
IDE_DIST = Path(__file__).parent / "ide" / "dist"

_HEADERS = (
    (b"content-type", f"{HTML}; charset=utf-8".encode()),
    (b"vary", b"Accept"),
    (
        b"content-security-policy",
        # Scripts are files of ours alone. Styles may be inline, for Monaco writes thousands of them as it draws; what
        # they can ask for is as bounded as all else.
        b"default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self'; style-src 'self' "
        b"'unsafe-inline'; font-src 'self' data:; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
        b"frame-ancestors 'none'",
    ),
    (b"cross-origin-opener-policy", b"same-origin"),
    # The page names its hashed files, so an old page must not outlive them.
    (b"cache-control", b"no-cache"),
)


def ide_page(dist: Path, settings: Settings, tabs: Sequence[Mapping[str, str]]) -> Answer:
    """Fill the built page with its configuration, or say how to build it."""
    config = {"endpoint": ENDPOINT, "title": settings.title, "tabs": list(tabs), "costHeader": "Tablegraph-Cost"}
    try:
        page = (dist / "index.html").read_text(encoding="utf-8")
    except FileNotFoundError:
        page = _page_without_ide(settings)
    else:
        # A "<" inside a query could otherwise end the script element that holds the configuration.
        page = page.replace("__TABLEGRAPH_CONFIG__", orjson.dumps(config).decode().replace("<", "\\u003c"))
    return Answer(200, page.encode(), _HEADERS)


def _page_without_ide(settings: Settings) -> str:
    url = f"http://{settings.host}:{settings.port}{ENDPOINT}"
    curl = f"""curl {url} -H 'Content-Type: application/json' -d '{{"query": "{{ __typename }}"}}'"""
    return (
        "<!doctype html>\n"
        '<html lang="en"><meta charset="utf-8"><title>tablegraph</title>\n'
        "<h1>The GraphQL API is running</h1>\n"
        "<p>GraphiQL is not built yet: <code>make run</code> builds it and starts the server.</p>\n"
        f"<p>From a shell:</p>\n<pre>{escape(curl)}</pre>\n"
    )


class IdeFiles(StaticFiles):
    """The built files of GraphiQL; those whose names carry a hash of their content may be kept for ever."""

    async def get_response(self, path: str, scope: Scope) -> HttpResponse:
        """Serve a file, with how long it may be kept."""
        response = await super().get_response(path, scope)
        hashed = path.startswith("assets/")
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if hashed else "no-cache"
        return response
