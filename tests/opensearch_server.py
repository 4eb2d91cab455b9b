"""A server that answers as OpenSearch documents it, for what the index asks of it, and refuses everything else.

It holds documents by index, with external versions that outlive deletions, aliases, and so much of the query language
as is used: a request that OpenSearch would refuse is refused. What it cannot tell is how OpenSearch ranks.
Sources: OpenSearch documentation: Create index, Index APIs, Bulk, Search, Sort and search_after, Query DSL.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from graph.search.typos import Wanted

Json = dict[str, Any]


class Refused(Exception):
    """What OpenSearch answers with a status of its own."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        super().__init__(reason)


class Cluster:
    """What the server holds, and every request that it got."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.indexes: dict[str, Json] = {}
        self.documents: dict[str, dict[str, tuple[int, Json | None]]] = {}
        """By index and id the version and what it is; None for what was deleted."""
        self.aliases: dict[str, set[str]] = {}
        self.asked: list[str] = []
        self.fail_next: int | None = None

    def answer(self, method: str, path: str, body: bytes) -> Any:
        """Answer a request. Raises Refused."""
        self.asked.append(f"{method} {path}")
        if self.fail_next is not None:
            status, self.fail_next = self.fail_next, None
            raise Refused(status, "rejected execution")
        parts = path.strip("/").split("/")
        match method, parts:
            case "POST", ["_bulk"]:
                return self._bulk(body)
            case "POST", ["_aliases"]:
                return self._alias(json.loads(body)["actions"])
            case "GET", ["_alias", alias]:
                found = sorted(self.aliases.get(alias, ()))
                if not found:
                    raise Refused(404, f"alias [{alias}] missing")
                return {index: {"aliases": {alias: {}}} for index in found}
            case "PUT", [index]:
                return self._create(index, json.loads(body))
            case "DELETE", [index]:
                self._index(index)
                del self.indexes[index], self.documents[index]
                for names in self.aliases.values():
                    names.discard(index)
                return {"acknowledged": True}
            case _, [name, what]:
                return self._answer_of(name, method, what, body)
        raise Refused(400, f"no handler found for uri [{path}] and method [{method}]")

    def _answer_of(self, name: str, method: str, what: str, body: bytes) -> Any:
        match method, what:
            case "POST", "_refresh":
                self._index(name)
                return {"_shards": {"failed": 0}}
            case "GET", "_mapping":
                return {index: {"mappings": self.indexes[index]["mappings"]} for index in self._behind(name)}
            case "POST", "_count":
                return {"count": len(self._hits(name, json.loads(body)))}
            case "POST", "_search":
                return self._search(name, json.loads(body))
        raise Refused(400, f"no handler found for {method} {what}")

    def _index(self, name: str) -> None:
        if name not in self.indexes:
            raise Refused(404, f"no such index [{name}]")

    def _behind(self, name: str) -> list[str]:
        found = sorted(self.aliases.get(name, ())) or ([name] if name in self.indexes else [])
        if not found:
            raise Refused(404, f"no such index [{name}]")
        return found

    def _create(self, name: str, body: Json) -> Json:
        if name != name.lower() or name[0] in "-_+" or set(name) & set('\\/*?"<>| ,#:') or len(name.encode()) > 255:
            raise Refused(400, f"invalid index name [{name}]")
        if name in self.indexes or self.aliases.get(name):
            raise Refused(400, f"index [{name}] already exists")
        assert body.keys() <= {"settings", "mappings", "aliases"}
        assert body["settings"]["index"].keys() <= {"gc_deletes"}
        for field in body["mappings"]["properties"].values():
            assert field["type"] in ("text", "keyword")
        self.indexes[name] = body
        self.documents[name] = {}
        for alias in body.get("aliases", {}):
            self.aliases.setdefault(alias, set()).add(name)
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def _alias(self, actions: list[Json]) -> Json:
        for action in actions:
            ((kind, what),) = action.items()
            self._index(what["index"])
            names = self.aliases.setdefault(what["alias"], set())
            if kind == "remove" and what["index"] not in names:
                raise Refused(404, "aliases missing")
        for action in actions:
            ((kind, what),) = action.items()
            (self.aliases[what["alias"]].add if kind == "add" else self.aliases[what["alias"]].discard)(what["index"])
        return {"acknowledged": True}

    def _bulk(self, body: bytes) -> Json:
        if not body.endswith(b"\n"):
            raise Refused(400, "The bulk request must be terminated by a newline [\\n]")
        lines = iter(body.splitlines())
        items = []
        for line in lines:
            ((action, meta),) = json.loads(line).items()
            document = json.loads(next(lines)) if action == "index" else None
            items.append({action: {"_index": meta["_index"], "_id": meta["_id"], **self._put(action, meta, document)}})
        return {"errors": any(item["status"] >= 300 for one in items for item in one.values()), "items": items}

    def _put(self, action: str, meta: Json, document: Json | None) -> Json:
        assert meta.keys() == {"_index", "_id", "version", "version_type"}
        assert meta["version_type"] == "external_gte"
        assert 0 <= meta["version"] < 2**63
        if len(meta["_id"].encode()) > 512:
            return {"status": 400, "error": {"type": "illegal_argument_exception", "reason": "id is too long"}}
        if meta["_index"] not in self.indexes:
            return {"status": 404, "error": {"type": "index_not_found_exception", "reason": "no such index"}}
        fields = self.indexes[meta["_index"]]["mappings"]["properties"]
        if document is not None and not document.keys() <= fields.keys():
            return {"status": 400, "error": {"type": "strict_dynamic_mapping_exception", "reason": "not allowed"}}
        held = self.documents[meta["_index"]]
        version, before = held.get(meta["_id"], (-1, None))
        if meta["version"] < version:
            return {"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "conflict"}}
        held[meta["_id"]] = (meta["version"], document)
        if action == "delete" and before is None:
            return {"status": 404, "result": "not_found"}
        return {"status": 200, "result": action}

    # --- searching ---

    def _hits(self, name: str, body: Json) -> list[tuple[float, Json]]:
        held = [one for index in self._behind(name) for _, one in self.documents[index].values() if one is not None]
        scored = [(score(body["query"], one), one) for one in held]
        return [(found, one) for found, one in scored if found is not None]

    def _search(self, name: str, body: Json) -> Json:
        assert body.keys() <= {"size", "_source", "track_total_hits", "query", "sort", "search_after"}
        assert body["sort"] == [{"_score": "desc"}, {"id": "asc"}]
        if body["size"] > 10_000:
            raise Refused(400, "Result window is too large")
        hits = sorted((-found, one["id"]) for found, one in self._hits(name, body))
        if "search_after" in body:
            after_score, after_id = body["search_after"]
            hits = [hit for hit in hits if hit > (-after_score, after_id)]
        return {"hits": {"hits": [{"_score": -low, "sort": [-low, id_]} for low, id_ in hits[: body["size"]]]}}


def score(query: Json, document: Json) -> float | None:
    """Rank a document, None where it is no hit: by how often a word is in it, which is enough to have an order."""
    ((kind, body),) = query.items()
    if kind == "match_all":
        return 1.0
    if kind == "dis_max":
        return max((found for one in body["queries"] if (found := score(one, document)) is not None), default=None)
    if kind == "constant_score":
        return None if score(body["filter"], document) is None else float(body["boost"])
    if kind == "bool":
        assert body.keys() <= {"must", "should", "filter"}
        for one in body.get("filter", ()):
            ((field, values),) = one["terms"].items()
            if document.get(field) not in values:
                return None
        must = [score(one, document) for one in body["must"]]
        if any(one is None for one in must):
            return None
        more = [score(one, document) for one in body.get("should", ())]
        return sum(one for one in (*must, *more) if one is not None)
    ((field, asked),) = body.items()
    words = document.get(field, "").split()
    return _leaf(kind, asked, words)


def _leaf(kind: str, asked: Json, words: list[str]) -> float | None:
    count = 0
    if kind == "match_phrase":
        wanted = asked["query"].split()
        count = sum(words[place : place + len(wanted)] == wanted for place in range(len(words)))
    elif kind == "term":
        count = words.count(asked["value"])
    elif kind == "prefix":
        count = sum(word.startswith(asked["value"]) for word in words)
    elif kind == "fuzzy":
        assert asked["fuzziness"] in (1, 2)
        wanted_word = Wanted(asked["value"])
        count = sum(wanted_word.whole(word)[0] <= asked["fuzziness"] for word in words)
    else:
        raise Refused(400, f"unknown query [{kind}]")
    return float(asked["boost"]) * count / (count + 1) if count else None


@contextmanager
def opensearch(login: str = "") -> Iterator[tuple[str, Cluster]]:
    """Run a server, and give its address and what it holds; with a login it refuses everybody else."""
    cluster = Cluster()
    wanted = f"Basic {base64.b64encode(login.encode()).decode()}" if login else None

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_bulk = self.path == "/_bulk"
            try:
                if self.headers.get("Authorization") != wanted:
                    raise Refused(401, "Unauthorized")
                assert self.headers["Content-Type"] == ("application/x-ndjson" if is_bulk else "application/json")
                with cluster.lock:
                    status, answer = 200, cluster.answer(self.command, self.path, body)
            except Refused as refused:
                error = {"type": "exception", "reason": str(refused)}
                status, answer = refused.status, {"error": error, "status": refused.status}
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _answer

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", cluster
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
