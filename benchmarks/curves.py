"""What a query costs as it grows: deeper, wider, and by longer pages."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.client import request_of
from benchmarks.measure import Pace, comparable, measure, once, warm_up
from benchmarks.servers import SERVERS, Running

LANES = 8

# One link each; ten items on a level, so that only depth grows.
STEPS = (
    'container(number: "000001") { number %s }',
    "pallets(first: 10) { edges { node { number %s } } }",
    "boxes(first: 1) { edges { node { number weightInKg %s } } }",
    "pallet { number origin %s }",
    "container { number operator %s }",
)


def depth(levels: int) -> str:
    """Write a query of so many levels."""
    document = ""
    for step in reversed(STEPS[:levels]):
        document = step % document
    return f"query depth {{ {document} }}"


def width(fields: int) -> str:
    """Write a query for so many containers."""
    lookups = (f'c{n}: container(number: "{n:06}") {{ number operator }}' for n in range(1, fields + 1))
    return f"query width {{ {' '.join(lookups)} }}"


def page(size: int) -> str:
    """Write a query for a page of so many boxes on each of ten pallets."""
    boxes = f"boxes(first: {size}) {{ edges {{ linkedBy node {{ number weightInKg }} }} }}"
    return f'query page {{ container(number: "000001") {{ pallets(first: 10) {{ edges {{ node {{ {boxes} }} }} }} }} }}'


CURVES = {
    "depth": (depth, (1, 2, 3, 4, 5)),
    "width": (width, (1, 5, 10, 25, 50)),
    "page": (page, (1, 2, 5, 10, 15)),
}


async def run(running: Mapping[str, Running], pace: Pace) -> None:
    """Print each curve: CPU for each request, and beside ours."""
    for name, (write, sizes) in CURVES.items():
        heads = "".join(f"{SERVERS[server].title[:24]:>26}" for server in running)
        print(f"\n{name:8}{heads}   (CPU ms, and beside the first; {LANES} at once)")
        for size in sizes:
            request = request_of(write(size), name)
            answers = [comparable((await once(one, request)).body) for one in running.values()]
            if any(answer != answers[0] for answer in answers):
                raise SystemExit(f"{name} {size}: the servers do not answer alike")
            await warm_up(running, request, LANES)
            found = await measure(running, request, LANES, pace)
            ours = next(iter(found.values())).cpu_ms
            cells = (f"{one.cpu_ms:>18.3f}{one.cpu_ms / ours:>7.2f}x" for one in found.values())
            print(f"{size:<8}{''.join(cells)}", flush=True)
