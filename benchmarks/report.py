"""The tables that the benchmarks print."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.measure import Cost, Measured
from benchmarks.servers import SERVERS

HEADS = ("requests", "units", "CPU ms", "ratio", "req/s", "ratio", "p50 ms")


def show(query: str, lanes: int, found: Mapping[str, Measured], costs: Mapping[str, Cost]) -> None:
    """Print a line for each server; the ratios are to the first one."""
    print(f"\n{query}, {lanes} at once".ljust(37) + "".join(f"{head:>10}" for head in HEADS))
    first = next(iter(found.values()))
    for name, one in found.items():
        cost = costs.get(name)
        asked = f"{cost.requests:>10}{cost.units:>10.1f}" if cost else f"{'-':>10}{'-':>10}"
        print(
            f"{SERVERS[name].title:36}{asked}{one.cpu_ms:>10.3f}{one.cpu_ms / first.cpu_ms:>9.2f}x"
            f"{one.per_sec:>10,.0f}{one.per_sec / first.per_sec:>9.2f}x{one.p50_ms:>10.2f}",
            flush=True,
        )


def show_chain(query: str, latency_ms: float, found: Mapping[str, tuple[int, Measured]]) -> None:
    """Print how long one client waits, beside the rounds of requests that its answer cannot do without."""
    print(f"\n{query}, 1 at once, {latency_ms:g} ms a request".ljust(37), end="")
    print("".join(f"{head:>10}" for head in ("rounds", "their ms", "p50 ms", "the rest")))
    for name, (rounds, one) in found.items():
        waited = rounds * latency_ms
        print(
            f"{SERVERS[name].title:36}{rounds:>10}{waited:>10.1f}{one.p50_ms:>10.2f}{one.p50_ms - waited:>10.2f}",
            flush=True,
        )
