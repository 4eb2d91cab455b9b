"""The pages for people, GraphiQL, the graph and the model, each filled with a configuration; and their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import orjson
from starlette.responses import Response as HttpResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from graph.doctor.prices import PRICES_AS_OF, READ_USD, WRITE_USD
from graph.doctor.prices import SOURCE as PRICE_SOURCE
from server.negotiation import HTML
from server.settings import Settings
from server.view import Answer

ENDPOINT = "/graphql"
OUTLINE = "/schema.json"
COST_HEADER = "Tablegraph-Cost"
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


def pages(
    dist: Path, settings: Settings, tabs: Sequence[Mapping[str, str]], *, has_outline: bool
) -> Mapping[str, Answer]:
    """Fill the built pages with their configuration, by path, or have them say how to build them."""
    config = {
        "endpoint": ENDPOINT,
        "title": settings.title,
        "tabs": list(tabs),
        "costHeader": COST_HEADER,
        "outline": OUTLINE if has_outline else None,
        "prices": {"read": READ_USD, "write": WRITE_USD, "source": PRICE_SOURCE, "asOf": PRICES_AS_OF},
    }
    # A "<" inside a query could otherwise end the script element that holds the configuration.
    written = orjson.dumps(config).decode().replace("<", "\\u003c")
    shown = {ENDPOINT: "index.html", "/graph": "graph.html"} | ({"/schema": "schema.html"} if has_outline else {})
    return {path: _page(dist / name, settings, written) for path, name in shown.items()}


def may_outline(settings: Settings) -> bool:
    """Say whether the model may be shown: where everybody may read the schema, and all of it."""
    return settings.graphiql and settings.introspection and not settings.hide_forbidden


def _page(file: Path, settings: Settings, config: str) -> Answer:
    try:
        page = file.read_text(encoding="utf-8").replace("__TABLEGRAPH_CONFIG__", config)
    except FileNotFoundError:
        page = _page_without_ide(settings)
    return Answer(200, page.encode(), _HEADERS)


def _page_without_ide(settings: Settings) -> str:
    url = f"http://{settings.host}:{settings.port}{ENDPOINT}"
    curl = f"""curl {url} -H 'Content-Type: application/json' -d '{{"query": "{{ __typename }}"}}'"""
    return (
        "<!doctype html>\n"
        '<html lang="en"><meta charset="utf-8"><title>tablegraph</title>\n'
        "<h1>The GraphQL API is running</h1>\n"
        "<p>Its pages are not built yet: <code>make run</code> builds them and starts the server.</p>\n"
        f"<p>From a shell:</p>\n<pre>{escape(curl)}</pre>\n"
    )


class IdeFiles(StaticFiles):
    """The built files of the pages; those whose names carry a hash of their content may be kept for ever."""

    async def get_response(self, path: str, scope: Scope) -> HttpResponse:
        """Serve a file, with how long it may be kept."""
        response = await super().get_response(path, scope)
        hashed = path.startswith("assets/")
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if hashed else "no-cache"
        return response
