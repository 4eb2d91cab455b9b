"""What a cursor costs, unsigned and signed: `python -m benchmarks.seals`."""

from __future__ import annotations

import hmac
import timeit
from collections.abc import Callable

from graph.cursor import Issuer, write_cursors
from graph.seals import Seal

TEXTS = [f"PALLET_{number:06}" for number in range(100)]
ROUNDS = 2_000


class HmacSeal(Seal):
    """The same by HMAC-SHA256, cut to as many bytes."""

    def write(self, content: bytes) -> str:
        """Make a text."""
        return super().write(content + hmac.digest(b"k" * 32, content, "sha256")[:16])


def nanoseconds(work: Callable[[], object]) -> int:
    """Measure what a cursor takes, at best."""
    return round(min(timeit.repeat(work, number=ROUNDS, repeat=5)) / ROUNDS / len(TEXTS) * 1e9)


def main() -> None:
    """Print nanoseconds for each cursor."""
    keys = [b"k" * 32]
    for name, seal in {
        "unsigned": Seal(b"cursor"),
        "BLAKE2b": Seal(b"cursor", keys),
        "HMAC-SHA256": HmacSeal(b"cursor"),
    }.items():
        issuer = Issuer("AbCdEfGhIjKl", seal)
        print(f"{name:12} {nanoseconds(lambda issuer=issuer: write_cursors(TEXTS, issuer)):5} ns")  # type: ignore[misc]
    for name, seal in {"unsigned": Seal(b"cursor"), "BLAKE2b": Seal(b"cursor", keys)}.items():
        text = seal.write(b'[1,"AbCdEfGhIjKl",["PALLET_000001"]]')
        print(f"read {name:7} {nanoseconds(lambda seal=seal, text=text: [seal.read(text) for _ in TEXTS]):5} ns")  # type: ignore[misc]


if __name__ == "__main__":
    main()
