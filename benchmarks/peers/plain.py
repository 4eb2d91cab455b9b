"""The five answers by hand: asyncio, a thin client and orjson, without GraphQL."""

from __future__ import annotations

import asyncio
import base64
import gc
import os
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import uvicorn

from benchmarks.peers.thin import Item, Table
from benchmarks.queries import BOXES, CONTAINERS, INDEX

HEADERS = [(b"content-type", b"application/json")]


async def container(table: Table, number: str) -> Any:
    """Answer with a container."""
    item = await table.node(f"CONTAINER_{number}")
    if item is None:
        return None
    name = base64.urlsafe_b64encode(orjson.dumps(["Container", f"CONTAINER_{number}"])).decode().rstrip("=")
    return {"id": name, "number": number, "operator": _text(item, "Operator")}


async def full_container(table: Table, number: str, pallets: int, boxes: int) -> Any:
    """Answer with a container, its pallets and their boxes."""
    item, edges = await table.with_edges(f"CONTAINER_{number}", "PALLET_", pallets)
    if item is None:
        return None
    keys = [edge["relatedObjectId"]["S"] for edge in edges]
    reads = asyncio.gather(*(table.edges(key, "BOX_", boxes) for key in keys))
    nodes, pages = await asyncio.gather(table.nodes(keys), reads)
    found = await table.nodes(edge["relatedObjectId"]["S"] for page in pages for edge in page)
    answers = []
    for edge, page in zip(edges, pages, strict=True):
        answer = _pallet_edge(edge, nodes)
        if answer["node"]:
            answer["node"]["boxes"] = {"edges": [_box_edge(entry, found) for entry in page]}
        answers.append(answer)
    return {"number": number, "pallets": {"edges": answers}}


async def boxes_with_operators(table: Table, numbers: list[str]) -> Any:
    """Answer with boxes, and the pallet and the operator that each hangs on."""
    boxes = [f"BOX_{number}" for number in numbers]
    reads = asyncio.gather(*(table.parent(key, "PALLET_", INDEX) for key in boxes))
    found, pallets = await asyncio.gather(table.nodes(boxes), reads)
    unique = [pallet for pallet in dict.fromkeys(pallets) if pallet]
    parents = await asyncio.gather(*(table.parent(key, "CONTAINER_", INDEX) for key in unique))
    containers = await table.nodes(key for key in parents if key)
    operators = {
        pallet: {"operator": _text(containers[key], "Operator")} if key in containers else None
        for pallet, key in zip(unique, parents, strict=True)
    }
    answer = {}
    for number, box, pallet in zip(numbers, boxes, pallets, strict=True):
        above = {"number": pallet[7:], "container": operators[pallet]} if pallet else None
        answer[f"b{number}"] = {"number": number, "pallet": above} if box in found else None
    return answer


async def first_pallets(table: Table, number: str, pallets: int) -> Any:
    """Answer with the first pallets of a container, with cursors."""
    item, edges = await table.with_edges(f"CONTAINER_{number}", "PALLET_", pallets + 1)
    if item is None:
        return None
    shown = edges[:pallets]
    nodes = await table.nodes(edge["relatedObjectId"]["S"] for edge in shown)
    cursors = [_cursor(edge) for edge in shown]
    page = {"hasNextPage": len(edges) > pallets, "endCursor": cursors[-1] if cursors else None}
    answers = [{**_pallet_edge(edge, nodes), "cursor": cursor} for edge, cursor in zip(shown, cursors, strict=True)]
    return {"pallets": {"edges": answers, "pageInfo": page}}


async def pallets_of_containers(table: Table, numbers: list[str], pallets: int) -> Any:
    """Answer with the pallets of several containers."""
    pages = await asyncio.gather(*(table.with_edges(f"CONTAINER_{n}", "PALLET_", pallets) for n in numbers))
    nodes = await table.nodes(edge["relatedObjectId"]["S"] for _, edges in pages for edge in edges)
    return {
        f"c{number}": {"pallets": {"edges": [_pallet_edge(edge, nodes) for edge in edges]}} if item else None
        for number, (item, edges) in zip(numbers, pages, strict=True)
    }


def _pallet_edge(edge: Item, nodes: dict[str, Item]) -> dict[str, Any]:
    key = edge["relatedObjectId"]["S"]
    item = nodes.get(key)
    node = None
    if item is not None:
        node = {"number": key[7:], "origin": _text(item, "Origin"), "destination": _text(item, "Destination")}
    return {"linkedBy": _text(edge, "LinkedBy"), "linkedDatetime": _text(edge, "LinkedDatetime"), "node": node}


def _box_edge(edge: Item, nodes: dict[str, Item]) -> dict[str, Any]:
    key = edge["relatedObjectId"]["S"]
    item = nodes.get(key)
    node = None
    if item is not None:
        node = {
            "number": key[4:],
            "weightInKg": float(item["WeightInKg"]["N"]) if "WeightInKg" in item else None,
            "isDangerous": item["IsDangerous"]["BOOL"] if "IsDangerous" in item else None,
        }
    return {"linkedBy": _text(edge, "LinkedBy"), "node": node}


def _text(item: Item, name: str) -> str | None:
    return item[name]["S"] if name in item else None


def _cursor(edge: Item) -> str:
    content = orjson.dumps([1, "edges", [edge["relatedObjectId"]["S"]]])
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


async def _container_alone(answer: Awaitable[Any]) -> Any:
    return {"container": await answer}


ANSWERS: dict[str, Callable[[Table], Awaitable[Any]]] = {
    "q1": lambda table: _container_alone(container(table, "000001")),
    "q2": lambda table: _container_alone(full_container(table, "000001", 20, 15)),
    "q3": lambda table: boxes_with_operators(table, BOXES),
    "q4": lambda table: _container_alone(first_pallets(table, "000001", 10)),
    "q5": lambda table: pallets_of_containers(table, CONTAINERS, 20),
}


class App:
    """A bare ASGI application: POST with an operation's name, answered in JSON."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        body = message["body"]
        while message["more_body"]:
            message = await receive()
            body += message["body"]
        answer = await ANSWERS[orjson.loads(body)["operationName"]](self._table)
        data = orjson.dumps({"data": answer})
        headers = [*HEADERS, (b"content-length", b"%d" % len(data))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": data})


def main() -> None:
    """Serve on the port that the environment names."""
    environ = os.environ
    table = Table(
        environ["AWS_ENDPOINT_URL_DYNAMODB"],
        environ["AWS_REGION"],
        environ["AWS_ACCESS_KEY_ID"],
        environ["AWS_SECRET_ACCESS_KEY"],
        environ["TABLE"],
    )
    gc.freeze()
    uvicorn.run(App(table), port=int(environ["PORT"]), log_level="warning", access_log=False, lifespan="off")


if __name__ == "__main__":
    main()
