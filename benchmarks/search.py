"""The search index in a file: what it takes of the processor to be built, kept and asked, and how large it is.

    python -m benchmarks.search --documents 100000

Words are made of syllables and drawn as those of a language are, a few of them nearly always.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from graph.search.index import Document, Searched
from graph.search.sqlite import SqliteIndex
from graph.search.words import tokens, wanted
from graph.streams.change import Place

OF = Searched("Store", "stores", ("id", "type"), {"number": 1.0, "name": 2.0, "about": 1.0})
SYLLABLES = tuple(map("".join, itertools.product("bcdfgklmnprstv", "aeiou")))
VOCABULARY = 40_000
BATCH = 1000
PAGE = 51
TIMES = 9


def vocabulary(chance: random.Random) -> list[str]:
    """Make words, the most frequent first."""
    return ["".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(VOCABULARY)]


def documents(count: int, chance: random.Random, words: list[str]) -> list[Document]:
    """Make documents of a number, a name of 4 words and a text of 12."""
    weights = list(itertools.accumulate(1 / (place + 5) for place in range(len(words))))

    def draw(length: int) -> str:
        return " ".join(chance.choices(words, cum_weights=weights, k=length))

    return [
        Document(OF, f'["S{number:07}","store"]', {"number": f"s{number:07}", "name": draw(4), "about": draw(12)})
        for number in range(count)
    ]


async def timed(times: int, work: Callable[[], Awaitable[object]]) -> float:
    """Give the median of the processor's time that some work takes, in milliseconds: others take turns here too."""
    found = []
    for _ in range(times):
        began = time.process_time()
        await work()
        found.append(time.process_time() - began)
    return statistics.median(found) * 1000


def size_of(folder: Path) -> int:
    """Add up the sizes of a folder's files, in bytes."""
    return sum(path.stat().st_size for path in folder.iterdir())


async def measure(folder: Path, count: int) -> None:
    """Build, keep and ask an index."""
    chance = random.Random(1)
    words = vocabulary(chance)
    made = documents(count, chance, words)
    index = SqliteIndex(folder / "search.db")
    began = time.process_time()
    building = await index.rebuild([OF])
    for start in range(0, count, BATCH):
        await building.add(made[start : start + BATCH])
    await building.finish()
    print(f"build: {count / (time.process_time() - began):,.0f} documents a second")
    sequences = itertools.count(1)
    for size in (1, 100):

        async def change(size: int = size) -> None:
            changed = chance.sample(made, size)
            await index.apply([Document(OF, one.id, one.texts, Place("shard", next(sequences))) for one in changed])

        print(f"apply {size}: {await timed(30, change):.1f} ms")
    await index.close()
    text = sum(len(one) for document in made for one in (document.texts or {}).values()) / count
    held = size_of(folder) / count
    print(f"size: {held:.0f} bytes for each document of {text:.0f} characters")
    asked = {
        "a code": "s0000123",
        "a rare word": words[3000],
        "two words": f"{words[100]} {words[900]}",
        "five letters": words[700][:5],
        "one letter": words[0][:1],
        "the commonest word": words[0],
        "a typo": f"{words[2500][:-1]}x",
        "nothing": "zzzzqqqqq",
    }
    for what, text_ in asked.items():
        sought = wanted(tokens(text_))

        async def search() -> object:
            return await index.search(OF, sought, PAGE, None)  # noqa: B023

        hits = await index.count(OF, sought)
        print(f"{what}: {await timed(TIMES, search):.1f} ms, {hits:,} hits")
    await index.close()
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB with the documents")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder), options.documents))


if __name__ == "__main__":
    main()
