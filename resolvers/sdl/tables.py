"""From @table and @index to the tables of the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from graph.model import CopyMode, Index, Projection, Table
from graph.periods import FORMATS, Period
from resolvers.sdl.declarations import Declarations, Directive
from resolvers.sdl.report import Report, listed, near

HOLE = re.compile(r"\{[^{}]*\}")
STORED_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}|arn:\S{1,1020}")
GLOBAL_INDEXES = 20
LOCAL_INDEXES = 5
KEY_ATTRIBUTES = 4
PROJECTED_ATTRIBUTES = 100
STAND_IN = "the table"


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of a file by the names that it uses, in its order, and how each makes attributes of fields."""

    by_name: Mapping[str, Table]
    cases: Mapping[str, str]
    are_sure: bool = True
    """False where the file has a mistake in its tables: what does not fit them may then only follow from it."""

    def named(self, name: str | None) -> Table | None:
        """Give a table, the first one when no name is given."""
        return next(iter(self.by_name.values())) if name is None else self.by_name.get(name)

    def stored(self, name: str) -> Table:
        """Give a table by the name that it has in DynamoDB."""
        return next(table for table in self.by_name.values() if table.name == name)

    def case(self, name: str | None) -> str:
        """Give the attribute case of a table, of the first one when no name, or an unknown one, is given."""
        return self.cases.get(name or "", next(iter(self.cases.values())))


def read_tables(declared: Declarations, report: Report, rename: str | None) -> Tables:
    """Make the tables and their attribute cases; `rename` serves another table as the first one."""
    uses: dict[str, Directive] = {}
    for name, use in declared.schema:
        if name == "table":
            if use.get("name") in uses:
                report.add(
                    use.at("name"),
                    f"the table `{use.get('name')}` is declared twice: expected each table once. Merge the two",
                )
            uses.setdefault(use.get("name"), use)
    if not uses:
        return _stand_in(declared, report)
    indexes = _read_indexes(declared, uses, report)
    made: dict[str, Table] = {}
    for position, (name, use) in enumerate(uses.items()):
        stored = rename if rename and position == 0 else name
        period = _period(use, stored, report)
        primary = Index(stored, None, _names(use, "partitionKey"), _names(use, "sortKey"), period=period)
        found = tuple(replace(index, table=stored, period=period) for _, index in indexes[name])
        made[name] = Table(stored, primary, found, use.get("type"), CopyMode[use.get("copies")])
        _check_table(use, made[name], report)
        _check_indexes(indexes[name], made[name], report)
    cases = {name: use.get("attributeCase") for name, use in uses.items()}
    return Tables(made, cases, not report.blames(*declared.schema_nodes))


def _stand_in(declared: Declarations, report: Report) -> Tables:
    """Make a table in place of the one that is missing or broken, so that the types can be checked all the same."""
    if not report.blames(*declared.schema_nodes):
        report.add(
            declared.schema_nodes[0] if declared.schema_nodes else None,
            'no table is named: expected `extend schema @table(name: "…", partitionKey: "…", sortKey: "…")`. Write it '
            "before the types, with the table's own key attributes",
        )
    sorts = any(use.get("sort") or use.get("key") for type_ in declared.items.values() for use in type_.keys)
    primary = Index(STAND_IN, None, ("its partition key",), ("its sort key",) if sorts else ())
    return Tables({STAND_IN: Table(STAND_IN, primary, ())}, {STAND_IN: "AS_WRITTEN"}, are_sure=False)


def _read_indexes(
    declared: Declarations, tables: Mapping[str, Directive], report: Report
) -> dict[str, list[tuple[Directive, Index]]]:
    found: dict[str, list[tuple[Directive, Index]]] = {name: [] for name in tables}
    for name, use in declared.schema:
        if name != "index":
            continue
        table = use.get("table") if use.get("table") is not None else next(iter(tables))
        if table not in found:
            report.add(
                use.at("table"),
                f"the index `{use.get('name')}` is of the table `{table}`, which no @table declares: expected "
                f"{listed(found, 'or')}. Name one of them{near(table, found)}",
            )
            continue
        found[table].append((use, _index(use, table, report)))
    return found


def _written(use: Directive, argument: str) -> list[str]:
    """List the attributes of a key as they are written: a table has one, an index may have several."""
    given = use.get(argument)
    return given if isinstance(given, list) else [] if given is None else [given]


def _names(use: Directive, argument: str) -> tuple[str, ...]:
    """Read the names of a key's attributes; those that cannot be, which are reported, are filled in."""
    stand_in = "its partition key" if argument == "partitionKey" else "its sort key"
    written = _written(use, argument) or ([] if use.get(argument) is None else [""])
    return tuple(dict.fromkeys(name or stand_in for name in written))


def _index(use: Directive, table: str, report: Report) -> Index:
    given: list[str] = use.get("projection")
    projection = Projection(given[0]) if given in (["ALL"], ["KEYS_ONLY"]) else frozenset(given)
    if isinstance(projection, frozenset) and (not projection or projection & {"ALL", "KEYS_ONLY"}):
        report.add(
            use.at("projection"),
            f'the projection of the index `{use.get("name")}` is {given}: expected "ALL" or "KEYS_ONLY" alone, or a '
            'list of attributes. For the keys and nothing else write projection: "KEYS_ONLY"',
        )
    partition_keys, sort_keys = _names(use, "partitionKey"), _names(use, "sortKey")
    return Index(table, use.get("name"), partition_keys, sort_keys, projection, use.get("local"))


def _check_table(use: Directive, table: Table, report: Report) -> None:
    _check_name(use, "table", report)
    _check_attributes(use, "table", report)
    if use.get("type") == "" or table.type_attribute in table.key_attributes:
        report.add(
            use.at("type"),
            f"`type` of the table `{use.get('name')}` is {use.get('type')!r}: expected an attribute beside the key "
            "that holds the type's name. Where a key holds it, leave `type` out and let the types' keys begin with it",
        )


def _period(use: Directive, name: str, report: Report) -> Period | None:
    """Read the period that the name of a time series' table says, like `events_{time:yyyyMM}`."""
    if "{" not in name:
        return None
    match = re.fullmatch(r"([^{}]*)\{(\w+):(\w+)\}([^{}]*)", name)
    if match is None or match[3] not in FORMATS:
        report.add(
            use.at("name"),
            f"the name of the table {name!r} holds a period that cannot be read: expected one field with a format, "
            f"{listed(FORMATS, 'or')}. Write it like events_{{time:yyyyMM}}",
        )
        return None
    return Period(match[2], match[3], match[1], match[4])


def _check_name(use: Directive, what: str, report: Report) -> None:
    name = HOLE.sub("000000", use.get("name"))
    if not STORED_NAME.fullmatch(name) and not report.blames(use.at("name")):
        report.add(
            use.at("name"),
            f"the name of the {what} cannot be `{use.get('name')}`: DynamoDB expects 3 to 255 of the characters a-z "
            f"A-Z 0-9 _ . - and nothing else. Write the {what}'s name as DynamoDB has it",
        )


def _check_attributes(use: Directive, what: str, report: Report) -> None:
    owner = f"the {what} `{use.get('name')}`"
    seen: dict[str, str] = {}
    for argument in ("partitionKey", "sortKey"):
        names = _written(use, argument)
        _check_number(use, argument, names, owner, report)
        for place, name in enumerate(names):
            if not 1 <= len(name.encode()) <= 255:
                report.add(
                    use.at(argument, place),
                    f"`{argument}` of {owner} has {len(name.encode())} bytes: DynamoDB expects the name of an "
                    "attribute, 1 to 255 bytes. Write the attribute's name",
                )
            if name and name in seen:
                report.add(use.at(argument, place), _twice(name, owner, is_both=seen[name] != argument))
            seen.setdefault(name, argument)


def _twice(name: str, owner: str, *, is_both: bool) -> str:
    if is_both:
        return (
            f"`{name}` is partition key and sort key of {owner}: expected two attributes. Name another one, or leave "
            "`sortKey` out"
        )
    return f"`{name}` is named twice in the key of {owner}: expected each attribute once. Remove one of the two"


def _check_number(use: Directive, argument: str, names: list[str], owner: str, report: Report) -> None:
    if use.get(argument) == []:
        report.add(
            use.at(argument),
            f"`{argument}` of {owner} names nothing: expected from 1 to {KEY_ATTRIBUTES} attributes. Name one"
            + (", or leave `sortKey` out" if argument == "sortKey" else ""),
        )
    if len(names) > KEY_ATTRIBUTES:
        report.add(
            use.at(argument, KEY_ATTRIBUTES),
            f"`{argument}` of {owner} names {len(names)} attributes: DynamoDB expects {KEY_ATTRIBUTES} at most. Put "
            "values together in the template of one: @indexed fills it with {a}#{b}",
        )
    if len(names) > 1 and use.get("local"):
        report.add(
            use.at(argument),
            f"`{argument}` of {owner} names {len(names)} attributes: only a global index may have several, expected "
            "one. Put the values together in its template, or leave `local` out",
        )


def _check_indexes(uses: list[tuple[Directive, Index]], table: Table, report: Report) -> None:
    seen: set[str | None] = set()
    for use, index in uses:
        _check_name(use, "index", report)
        _check_attributes(use, "index", report)
        if index.name in seen:
            report.add(
                use.at("name"),
                f"the index `{index.name}` is declared twice: expected each index once. Remove one, or rename it",
            )
        seen.add(index.name)
        if index.local:
            _check_local(use, index, table, report)
    _check_limits(uses, report)


def _check_local(use: Directive, index: Index, table: Table, report: Report) -> None:
    (partition_key,) = table.primary.partition_keys
    if len(index.partition_keys) == 1 and index.partition_keys != (partition_key,):
        report.add(
            use.at("partitionKey"),
            f"the local index `{index.name}` has the partition key `{index.partition_keys[0]}`: a local index shares "
            f"the table's, expected `{partition_key}`. Write that, or leave `local` out",
        )
    if not index.sort_keys or not table.primary.sort_keys:
        lacking = "the table" if not table.primary.sort_keys else f"the local index `{index.name}`"
        report.add(
            use.at("local"),
            f"{lacking} has no sort key: expected one in both, for a local index is another sort key of a table that "
            "has one. Add `sortKey`, or leave `local` out",
        )


def _check_limits(uses: list[tuple[Directive, Index]], report: Report) -> None:
    local = [use for use, index in uses if index.local]
    others = [use for use, index in uses if not index.local]
    if len(local) > LOCAL_INDEXES:
        report.add(
            local[LOCAL_INDEXES].node,
            f"this is local index number {LOCAL_INDEXES + 1} of {len(local)}: DynamoDB expects {LOCAL_INDEXES} at most "
            "on a table. Make it a global one: leave `local` out",
        )
    if len(others) > GLOBAL_INDEXES:
        report.warn(
            others[GLOBAL_INDEXES].node,
            f"this is global index number {GLOBAL_INDEXES + 1} of {len(others)}: DynamoDB allows {GLOBAL_INDEXES} on a "
            "table unless AWS has raised the quota. Ask for more, or let types share an index",
        )
    projected = 0
    for use, index in uses:
        projected += len(index.projection) if isinstance(index.projection, frozenset) else 0
        if projected > PROJECTED_ATTRIBUTES:
            report.add(
                use.at("projection"),
                f"with the index `{index.name}` the indexes of the table list {projected} attributes: DynamoDB expects "
                f'{PROJECTED_ATTRIBUTES} at most, all lists together. List fewer, or project "ALL"',
            )
            break
