"""Partitions: those that hold too much of a table or an index, or come near a limit; and shards, which share a load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from graph.doctor.findings import Code, Finding
from graph.doctor.prices import READ_USD, SOURCE, dollars, shown_bytes
from graph.doctor.sample import UNIT_BYTES, Collection, Partition, Sample, indexes_of
from graph.doctor.shares import Share, share_of
from graph.keys import KeyValue, Path, Shard, Template, shard_path
from graph.model import Index, Layout
from graph.scalars import number_text
from graph.sharding import shards_needed

SKEWED = 0.1
"""A partition with a tenth of all items is the first one to be throttled."""
LEAST_ITEMS = 200
LEAST_BYTES = 1_000_000
"""Less than a megabyte is nobody's load."""
LIMIT_BYTES = 10 * 10**9
"""Source: DynamoDB Developer Guide, "Item collection size limit"."""
NEAR = 0.8
UNEVEN = 1.5
"""How much fuller than on average the fullest shard may be."""
SHOWN = 3


def skewed_of(sample: Sample) -> Iterator[Finding]:
    """Find partitions of the table, and of each index, that hold a tenth or more of it."""
    if sample.count >= LEAST_ITEMS and sample.table_bytes >= LEAST_BYTES:
        yield from _skewed_table(sample)
    for index in indexes_of(sample):
        whole = sample.in_index[index.name or ""].values()
        items, size = (sum(one[place] for one in whole) for place in (0, 1))
        if items >= LEAST_ITEMS and size / sample.read >= LEAST_BYTES:
            yield from _skewed_index(sample, index)


def _skewed_table(sample: Sample) -> Iterator[Finding]:
    large = [one for one in sample.collections if one.bytes / sample.table_bytes >= SKEWED]
    if large:
        shares = [f"{shown(one.partition)} {_size(one)} of {shown_bytes(sample.table_bytes)}" for one in large[:SHOWN]]
        yield Finding(
            Code.PARTITION_SKEWED,
            sample.target.name,
            "the table itself",
            f"{len(large)} of {sample.partitions:,} partitions seen hold a tenth or more each: {'; '.join(shares)}",
            "put a field with more values into the partition key, or `{shard(N)}` (`tablegraph shards` computes N)",
            {"partitions": [_figures(one, sample) for one in large]},
            weight=large[0].bytes / sample.table_bytes,
        )


def _size(one: Collection) -> str:
    return f"{'' if one.is_whole else 'at least '}{shown_bytes(one.bytes)}"


def _figures(one: Collection, sample: Sample) -> dict[str, object]:
    return {
        "partition": shown(one.partition),
        "items": one.items,
        "bytes": round(one.bytes),
        "isWhole": one.is_whole,
        "share": round(one.bytes / sample.table_bytes, 4),
    }


def _skewed_index(sample: Sample, index: Index) -> Iterator[Finding]:
    name = index.name or ""
    shares = {
        partition: share
        for partition in sample.by_index[name]
        if (share := sample.share(name, partition)).low >= SKEWED and not _is_sharded(sample, index, partition)
    }
    if shares:
        largest = sorted(shares.items(), key=lambda one: -one[1].value)
        told = "; ".join(f"{shown(partition)} {share}" for partition, share in largest[:SHOWN])
        yield Finding(
            Code.PARTITION_SKEWED,
            sample.target.name,
            name,
            f"{len(shares)} of {len(sample.by_index[name]):,} partitions seen hold a tenth or more of the index's "
            f"items each: {told}",
            f"put `{{shard(N)}}` into its partition key, @indexed(by: {name!r}, partition: …); `tablegraph shards` "
            "computes N, and queries fan out over the shards by themselves".replace("'", '"'),
            {"partitions": [{"partition": shown(one), **share.as_json()} for one, share in largest]},
            weight=largest[0][1].value,
        )


def shown(partition: Partition) -> str:
    """Write a partition's key for a person."""
    return " / ".join(f'"{value}"' if isinstance(value, str) else number_text(value) for value in partition)


# --- the limit of tables with local indexes -----------------------------------------------------------------------


def limited_of(sample: Sample) -> Iterator[Finding]:
    """Find partitions near 10 GB, where a table has a local index; say so where the sample cannot know."""
    if not any(index.local for index in sample.target.table.indexes):
        return
    near = [one for one in sample.collections if one.total_bytes >= NEAR * LIMIT_BYTES]
    for one in near:
        held = f"{'' if one.is_whole else 'at least '}{shown_bytes(one.total_bytes)}"
        yield Finding(
            Code.COLLECTION_LIMIT,
            sample.target.name,
            shown(one.partition),
            f"its partition holds {held} of 10 GB, {shown_bytes(one.local_bytes)} of them in local indexes",
            "move its items to other partitions: put a period or `{shard(N)}` into the partition key (a new table: "
            "`tablegraph export`, `tablegraph load`), or let the projection of the local indexes hold less",
            {**_figures(one, sample), "bytes": round(one.total_bytes), "limitBytes": LIMIT_BYTES},
            weight=one.total_bytes,
        )
    described = sample.described
    local = sum(one.get("IndexSizeBytes", 0) for one in described.get("LocalSecondaryIndexes") or ())
    if not near and not sample.is_whole and sample.table_bytes + local >= NEAR * LIMIT_BYTES:
        largest = sample.collections[0].total_bytes if sample.collections else 0
        units = 2 * ceil(sample.table_bytes / UNIT_BYTES)
        yield Finding(
            Code.COLLECTION_UNKNOWN,
            sample.target.name,
            "",
            f"the table and its local indexes hold {shown_bytes(sample.table_bytes + local)}; the largest of "
            f"{sample.partitions:,} partitions seen holds {shown_bytes(largest)}, and each was seen with a chance of "
            f"{sample.read:.2%}",
            f"look at all of it: --sample {units} (at most {dollars(units * READ_USD)} {SOURCE}); or have your "
            "writes ask for ReturnItemCollectionMetrics, which tells the size of a partition",
            {"largestBytes": round(largest), "read": round(sample.read, 6), "limitBytes": LIMIT_BYTES},
        )


# --- shards -------------------------------------------------------------------------------------------------------


def shards_of(sample: Sample) -> Iterator[Finding]:
    """Find shards that are unevenly full, or too few for what lies in them to be read in a second."""
    for index in indexes_of(sample):
        for attribute, shard, template in _sharded(sample, index):
            yield from _shards(sample, index, index.partition_keys.index(attribute), shard, template)


def _sharded(sample: Sample, index: Index) -> list[tuple[str, Shard, Template]]:
    found = {
        (name, layout.templates[name].source): (name, part, layout.templates[name])
        for layout in _layouts(sample)
        if layout.is_in(index)
        for name in index.partition_keys
        for part in layout.templates[name].parts
        if isinstance(part, Shard)
    }
    return list(found.values())


def _layouts(sample: Sample) -> list[Layout]:
    target = sample.target
    return [one for item in target.model.items.values() for one in item.layouts if one.table == target.table.name]


def _is_sharded(sample: Sample, index: Index, partition: Partition) -> bool:
    return any(
        template.parse(partition[index.partition_keys.index(name)]) is not None
        for name, _, template in _sharded(sample, index)
    )


def _shards(sample: Sample, index: Index, place: int, shard: Shard, template: Template) -> Iterator[Finding]:
    name = index.name or ""
    groups: dict[tuple[object, ...], dict[int, Partition]] = {}
    for partition in sample.by_index[name]:
        text, values = partition[place], template.parse(partition[place])
        if values is None:
            continue
        number = _number(template, shard, values, text)
        if number is not None:
            rest = (*partition[:place], *partition[place + 1 :], *values.values())
            groups.setdefault(rest, {})[number] = partition
    if not groups:
        return
    sums = {rest: _items(sample, name, group) for rest, group in groups.items()}
    largest = max(groups, key=lambda rest: sums[rest][0])
    items, size = sums[largest]
    if items < LEAST_ITEMS:
        return
    group = groups[largest]
    yield from _uneven(sample, index, shard, group)
    needed = ceil(shards_needed(items / sample.read, size / items))
    if needed > shard.count:
        total = items / sample.read
        yield Finding(
            Code.SHARDS_FEW,
            sample.target.name,
            name,
            f"{shard.count} shards hold some {total:,.0f} items of {size / items:,.0f} bytes: to read all of them in a "
            f"second takes {needed}",
            f"what one query reads of them decides: `tablegraph shards --items {total:.0f} --share 1 --size "
            f"{size / items:.0f}`, with its own share; more shards are another template, so a new index",
            {"shards": shard.count, "needed": needed, "items": round(total)},
            weight=needed / shard.count,
        )


def _number(template: Template, shard: Shard, values: Mapping[Path, Any], text: KeyValue) -> int | None:
    """Read the number of a shard out of a key, which a template does not: no field has it."""
    numbers = (one for one in range(shard.count) if template.format({**values, shard_path(shard): one}) == text)
    return next(numbers, None)


def _items(sample: Sample, name: str, group: dict[int, Partition]) -> tuple[float, float]:
    sums = [one for partition in group.values() for one in sample.by_index[name][partition].values()]
    return sum(one[0] for one in sums), sum(one[1] for one in sums)


def _uneven(sample: Sample, index: Index, shard: Shard, group: dict[int, Partition]) -> Iterator[Finding]:
    name = index.name or ""
    shares = {number: _share_in(sample, name, group, partition) for number, partition in group.items()}
    fullest = max(shares, key=lambda number: shares[number].value)
    empty = shard.count - len(group)
    if shares[fullest].low > UNEVEN / shard.count:
        cure = (
            f"`{{shard({shard.count}, {'.'.join(shard.path)})}}` hashes a field with few, or unevenly many, values: "
            "take one with more, or `{shard(N)}`"
            if shard.path
            else "they were written by another model or another application: `tablegraph repair --only STALE_KEY`, or "
            "mend what writes them"
        )
        unused = f"; {empty} of them hold nothing that was seen" if empty else ""
        yield Finding(
            Code.SHARDS_SKEWED,
            sample.target.name,
            name,
            f"of {shard.count} shards number {fullest} holds {shares[fullest]} in place of {1 / shard.count:.1%}"
            f"{unused}",
            cure,
            {"shards": shard.count, "fullest": fullest, "empty": empty, **shares[fullest].as_json()},
            weight=shares[fullest].value * shard.count,
        )


def _share_in(sample: Sample, name: str, group: dict[int, Partition], partition: Partition) -> Share:
    """Estimate which part of the items of all shards lies in one of them."""
    counted = sample.by_index[name]
    places = {place for one in group.values() for place in counted[one]}
    items = {place: sum(counted[one].get(place, (0.0, 0.0))[0] for one in group.values()) for place in places}
    segments = [(counted[partition].get(place, (0.0, 0.0))[0], items[place]) for place in places]
    return share_of(segments, sample.read)
