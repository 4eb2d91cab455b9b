"""Items: those that fit no type, come near 400 KB, hold what nobody reads, or lie in an index for nothing."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from graph.apply.state import Target
from graph.doctor.findings import Code, Finding
from graph.doctor.indexes import layouts_read, uses_of
from graph.doctor.prices import monthly, shown_bytes, storage
from graph.doctor.sample import Sample, held_bytes, held_names
from graph.doctor.shares import share_of
from graph.entity import read_entity
from graph.keys import OURS
from graph.maintenance.subjects import key_of
from graph.model import Layout, Model
from graph.ours import is_ours
from graph.requests import Item, ItemKey
from graph.scalars import AttributeValue
from graph.sizes import item_bytes
from graph.transaction import shown
from graph.writes.stored import declared_attributes

LIMIT_BYTES = 400 * 1024
"""Source: DynamoDB Developer Guide, "Item size"."""
LARGE_BYTES = 300 * 1024
NEAR_BYTES = 390 * 1024
LEAST_UNREAD = 0.01
LEAST_WASTED_BYTES = 100 * 10**6
SHOWN = 5

_VARIABLE = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9]+")


class Items:
    """Is shown the items of a sample, page by page, and keeps sums of them."""

    def __init__(self, target: Target, described: Any) -> None:
        self._target = target
        self._described = described
        model = target.model
        own = [one for item in model.items.values() for one in item.layouts if one.table == target.table.name]
        self._layouts = {one.name: one for one in own}
        kept = [(item.name, item.history) for item in model.items.values() if item.history is not None]
        self._versions = [(name, one) for name, one in kept if one.table == target.table.name]
        self._declared = {one.name: _readable(model, one) for one in own}
        uses = uses_of(model)
        self._read = {
            index.name or "": layouts_read(uses.get((target.table.name, index.name), {}))
            for index in target.table.indexes
            if not index.local
        }
        self._held = {
            index.name or "": held_names(described, index) for index in target.table.indexes if not index.local
        }
        self.strangers: Counter[str] = Counter()
        self.examples: dict[str, ItemKey] = {}
        self.large: list[tuple[float, ItemKey]] = []
        self.unread: defaultdict[tuple[str, str], defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
        self.wasted: dict[str, defaultdict[int, list[float]]] = {
            name: defaultdict(lambda: [0.0, 0.0]) for name in self._read
        }
        """By index and segment: bytes for nothing, and all bytes."""

    def visit(self, place: int, items: list[Item]) -> None:
        """Take a page of a segment."""
        for item in items:
            if not is_ours(item, self._target.table):
                self._take(place, item)

    def _take(self, place: int, item: Item) -> None:
        size = item_bytes(item)
        if size >= LARGE_BYTES:
            self.large.append((size, key_of(self._target.table, self._target.name, item)))
        layout = self._layout(item)
        if layout is None:
            shape = self._shape(item)
            self.strangers[shape] += 1
            self.examples.setdefault(shape, key_of(self._target.table, self._target.name, item))
        else:
            for name in item.keys() - self._declared[layout.name]:
                if not name.startswith(OURS):
                    self.unread[layout.type_name, name][place] += _bytes_of(name, item[name])
        for index in self._target.table.indexes:
            if index.name in self.wasted and (held := held_bytes(self._described, index, item, size)):
                sums = self.wasted[index.name][place]
                sums[0] += held - self._read_bytes(index.name, layout, item, held)
                sums[1] += held

    def _read_bytes(self, index: str, layout: Layout | None, item: Item, held: float) -> float:
        if layout is None or layout.name not in self._read[index]:
            return 0.0
        declared, names = self._declared[layout.name], self._held[index]
        if item.keys() <= declared:
            return held
        read = {name: item[name] for name in item.keys() & declared if names is None or name in names}
        return float(item_bytes(read))

    def _layout(self, item: Item) -> Layout | None:
        model = self._target.model
        own = (one for one in self._layouts.values() if read_entity(model, one, item) is not None)
        if (found := next(own, None)) is not None:
            return found
        # An earlier version of an item is as good as the item.
        return next(
            (model.items[name].layouts[0] for name, one in self._versions if read_entity(model, one, item) is not None),
            None,
        )

    def _shape(self, item: Item) -> str:
        """Write the key with digits and UUIDs left out, and the type that the item says it is of."""
        keys = (next(iter(item[name].values())) for name in self._target.table.key_attributes)
        shape = " / ".join(_VARIABLE.sub("…", str(key)[:200]) for key in keys)
        name = self._target.table.type_attribute
        type_ = item.get(name, {}).get("S") if name else None
        return f"{shape} ({type_})" if type_ else shape

    # --- findings

    def findings(self, sample: Sample) -> Iterator[Finding]:
        """Tell what was found, once the sample is drawn."""
        yield from self._large()
        yield from self._strangers(sample)
        yield from self._unread(sample)
        yield from self._overfull(sample)

    def _large(self) -> Iterator[Finding]:
        near = [one for one in self.large if one[0] >= NEAR_BYTES]
        others = [one for one in self.large if one[0] < NEAR_BYTES]
        for code, least, found in (
            (Code.ITEM_TOO_LARGE, NEAR_BYTES, near),
            (Code.ITEM_LARGE, LARGE_BYTES, others),
        ):
            if not found:
                continue
            found.sort(key=lambda one: -one[0])
            told = "; ".join(f"{shown(key)} {size / 1024:,.0f} KB" for size, key in found[:SHOWN])
            yield Finding(
                code,
                self._target.name,
                "",
                f"{len(found):,} of the items seen have {least // 1024} KB or more of 400: {told}",
                "keep large fields compressed or in S3, @blob(gzip: true, s3: …), or lists as items of their own",
                {"items": len(found), "largestBytes": round(found[0][0]), "limitBytes": LIMIT_BYTES},
                weight=found[0][0],
            )

    def _strangers(self, sample: Sample) -> Iterator[Finding]:
        if not self.strangers:
            return
        count = sum(self.strangers.values())
        told = "; ".join(
            f"{number:,} like {shape}, for one {shown(self.examples[shape])}"
            for shape, number in self.strangers.most_common(SHOWN)
        )
        more = f"; {len(self.strangers) - SHOWN} shapes more" if len(self.strangers) > SHOWN else ""
        yield Finding(
            Code.ITEMS_OF_NO_TYPE,
            self._target.name,
            "",
            f"{count:,} of {sample.count:,} items seen ({count / sample.count:.1%}) have the key of no type: "
            f"{told}{more}",
            "give them a type, mend the template that should fit them, or delete them; `tablegraph verify` names each",
            {"items": count, "of": sample.count, "shapes": dict(self.strangers.most_common(20))},
            weight=count / sample.count,
        )

    def _unread(self, sample: Sample) -> Iterator[Finding]:
        total = sum(sum(one.values()) for one in self.unread.values())
        if not sample.bytes or total / sample.bytes < LEAST_UNREAD:
            return
        by_place: defaultdict[int, float] = defaultdict(float)
        for one in self.unread.values():
            for place, size in one.items():
                by_place[place] += size
        share = share_of([(by_place[number], one.bytes) for number, one in enumerate(sample.segments)], sample.read)
        largest = sorted(self.unread.items(), key=lambda one: -sum(one[1].values()))
        told = ", ".join(
            f"{type_}.{name} {sum(one.values()) / sample.bytes:.1%}" for (type_, name), one in largest[:10]
        )
        size = share.value * sample.table_bytes
        yield Finding(
            Code.ATTRIBUTES_UNREAD,
            self._target.name,
            "",
            f"{share} of the bytes are in attributes that the model does not name: {told}; some {shown_bytes(size)}, "
            f"{storage(size)}",
            "name them in the model if they are wanted; else no query shows them: take them out of the items, or of "
            "the projections of the indexes, if no other application reads them",
            {**share.as_json(), "bytes": round(size), "monthlyUsd": round(monthly(size), 4)},
            weight=share.value,
        )

    def _overfull(self, sample: Sample) -> Iterator[Finding]:
        sizes = {one["IndexName"]: one for one in self._described.get("GlobalSecondaryIndexes") or ()}
        for name, wasted in self.wasted.items():
            if not self._read[name]:
                continue  # It is not read at all.
            share = share_of([(one, all_) for one, all_ in wasted.values()], sample.read)
            size = share.low * sizes.get(name, {}).get("IndexSizeBytes", 0)
            if size < LEAST_WASTED_BYTES:
                continue
            yield Finding(
                Code.INDEX_OVERFULL,
                self._target.name,
                name,
                f"{share} of its bytes are of items, or attributes, that no query of the model reads by it: "
                f"{shown_bytes(size)} or more, {storage(size)}",
                "an index of its own key attributes holds only the items that have them, @indexed(by: …), and one with "
                'projection: ["…"] only what is named; what else is asked for is then read by BatchGetItem',
                {**share.as_json(), "bytes": round(size), "monthlyUsd": round(monthly(size), 4)},
                weight=size,
            )


def _readable(model: Model, layout: Layout) -> frozenset[str]:
    """List the attributes that a query may read of an item: a copy may hold more of a node than we would copy."""
    ends = model.items[layout.type_name].fields[layout.copy].refs if layout.copy else ()
    return declared_attributes(model, layout) | {
        one.attribute for end in ends for one in model.items[end].fields.values()
    }


def _bytes_of(name: str, value: AttributeValue) -> float:
    return item_bytes({name: value})
