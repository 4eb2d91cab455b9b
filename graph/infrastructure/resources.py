"""What a model needs to exist: its tables, the buckets of its large values, and the rights of its server."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import wrap

from graph.apply.state import Target, targets
from graph.infrastructure.rights import Right, rights_of
from graph.model import Model
from graph.requests import CreateTable
from graph.sweep import buckets_of
from graph.tables import lasting_table

POLICY = "server"


@dataclass(frozen=True, slots=True)
class TableResource:
    """A table as CreateTable makes it, and the attribute by which its items expire."""

    request: CreateTable
    expiry: str | None


@dataclass(frozen=True, slots=True)
class Resources:
    """Everything that a template declares, and what is to be said about it."""

    tables: tuple[TableResource, ...]
    buckets: tuple[str, ...]
    rights: tuple[Right, ...]
    remarks: tuple[str, ...]


def resources_of(model: Model, period: str | None = None, *, mutations: bool = True, stream: bool = True) -> Resources:
    """List what a model needs; of time series the tables of a period, like 202601, and none without one.

    Raises: InputError when no time series has tables of such a period.
    """
    # A table of another account is named by its ARN, and can only be made there.
    wanted = [target for target in targets(model, period) if not is_elsewhere(target.name)]
    return Resources(
        tuple(TableResource(lasting_table(model, one.table, one.name), one.expiry) for one in wanted),
        tuple(sorted({bucket for bucket, _ in buckets_of(model)})),
        tuple(rights_of(model, mutations=mutations, stream=stream)),
        tuple(_remarks(model, wanted)),
    )


def is_elsewhere(name: str) -> bool:
    """Say whether a table is named by its ARN."""
    return name.startswith("arn:")


def _remarks(model: Model, wanted: Iterable[Target]) -> list[str]:
    made = {id(one.table) for one in wanted}
    remarks = [
        "Encrypted at rest with a key that AWS owns, at no cost; with a KMS key of your own the server also needs "
        "kms:Decrypt and kms:GenerateDataKey on it."
    ]
    for table in model.tables.values():
        if table.period is not None:
            what = "one of its tables is here" if id(table) in made else "none of its tables is here"
            remarks.append(
                f"{table.name} is a time series, and {what}: a template holds what it names, and a series has a table "
                f"for each {table.period.format}. `tablegraph table apply --period {table.period.format}` makes the "
                "next one when its time comes, and the policy covers them all."
            )
        elif is_elsewhere(table.name):
            remarks.append(f"{table.name} lies in another account: make it there.")
    return remarks


def identifiers(names: Iterable[str], separator: str) -> dict[str, str]:
    """Give each name an identifier of letters and digits, with words joined by the separator or by capitals."""
    found: dict[str, str] = {}
    for name in names:
        words = re.findall(r"[A-Za-z0-9]+", name) or ["table"]
        base = separator.join(words).lower() if separator else "".join(word[:1].upper() + word[1:] for word in words)
        if not base[0].isalpha():
            base = f"t{separator}{base}"
        chosen, number = base, 2
        while chosen in found.values():
            chosen, number = f"{base}{separator}{number}", number + 1
        found[name] = chosen
    return found


def commented(remarks: Iterable[str]) -> str:
    """Write remarks as comments, which YAML and HCL begin alike."""
    return "\n".join(line for one in remarks for line in wrap(one, 100, initial_indent="# ", subsequent_indent="#   "))


def quoted(text: str) -> str:
    """Write a text in double quotes, as YAML and HCL read it: what is not plain ASCII by its number."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if " " <= letter <= "~":
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"
