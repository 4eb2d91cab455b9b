"""From @table and @index to the tables of the model."""

from __future__ import annotations

import re
from dataclasses import replace

from graph.model import Index, Projection, Table
from graph.periods import FORMATS, Period
from resolvers.sdl.declarations import Declarations, Directive
from resolvers.sdl.report import Report, listed, near


def read_tables(declared: Declarations, report: Report, rename: str | None) -> tuple[dict[str, Table], dict[str, str]]:
    """Make the tables and attribute cases, by the names in the file; `rename` serves another table as the first."""
    uses = [directive for name, directive in declared.schema if name == "table"]
    if not uses:
        report.add(
            None,
            'no table is named: expected `extend schema @table(name: "…", partitionKey: "…", sortKey: "…")` before '
            "the types",
        )
    indexes: dict[str, list[tuple[Directive, Index]]] = {use.get("name"): [] for use in uses}
    for name, use in declared.schema:
        if name == "index" and uses:
            table = use.get("table") or uses[0].get("name")
            if table not in indexes:
                report.add(
                    use.at("table"), f"no @table is named `{table}`: expected {listed(indexes)}.{near(table, indexes)}"
                )
                continue
            indexes[table].append((use, _index(use, table)))
    made: dict[str, Table] = {}
    cases: dict[str, str] = {}
    for position, use in enumerate(uses):
        name = use.get("name")
        if name in made:
            report.add(use.at("name"), f"the table `{name}` is named twice: write it once")
        stored = rename if rename and position == 0 else name
        made[name] = _table(use, stored, [index for _, index in indexes[name]], report)
        cases[name] = use.get("attributeCase")
        _check_indexes(indexes[name], made[name], report)
    return made, cases


def _index(use: Directive, table: str) -> Index:
    given: list[str] = use.get("projection")
    projection = Projection(given[0]) if given in (["ALL"], ["KEYS_ONLY"]) else frozenset(given)
    return Index(table, use.get("name"), use.get("partitionKey"), use.get("sortKey"), projection, use.get("local"))


def _table(use: Directive, stored: str, indexes: list[Index], report: Report) -> Table:
    period = _period(use, stored, report)
    primary = Index(stored, None, use.get("partitionKey"), use.get("sortKey"), period=period)
    renamed = tuple(replace(index, table=stored, period=period) for index in indexes)
    return Table(stored, primary, renamed, use.get("type"))


def _check_indexes(uses: list[tuple[Directive, Index]], table: Table, report: Report) -> None:
    seen: set[str | None] = set()
    for use, index in uses:
        if index.name in seen:
            report.add(use.at("name"), f"the index `{index.name}` is named twice: write it once")
        seen.add(index.name)
        if index.local and index.partition_key != table.primary.partition_key:
            report.add(
                use.at("partitionKey"),
                f"a local index shares the table's partition key: expected `{table.primary.partition_key}`, got "
                f"`{index.partition_key}`",
            )


def _period(use: Directive, name: str, report: Report) -> Period | None:
    """Read the period that the name of a time series' table says, like `events_{time:yyyyMM}`."""
    if "{" not in name:
        return None
    match = re.fullmatch(r"([^{}]*)\{(\w+):(\w+)\}([^{}]*)", name)
    if match is None or match[3] not in FORMATS:
        report.add(
            use.at("name"),
            f"the table's name {name!r} holds a period that cannot be read: expected one field with one of the formats "
            f"{listed(FORMATS)}, like events_{{time:yyyyMM}}",
        )
        return None
    return Period(match[2], match[3], match[1], match[4])
