"""Findings of the doctor: what can be found, how bad it is, why it matters, and how it is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from typing import Any


class Severity(Enum):
    """How bad a finding is, the worst first."""

    SERIOUS = "answers are wrong or requests fail, or will soon"
    WARNING = "it costs money or speed, or fails under load"
    HINT = "worth knowing"


@unique
class Code(Enum):
    """What is found, in a word that stays the same: how bad it is, and why it matters. The worst come first."""

    TABLE_MISSING = Severity.SERIOUS, "every request fails"
    KEY_DRIFT = Severity.SERIOUS, "every read and write by key fails"
    INDEX_MISSING = Severity.SERIOUS, "every query that reads it fails, and `serve` does not start"
    INDEX_DRIFT = Severity.SERIOUS, "every query that reads it fails, or finds other items"
    PROJECTION_LACKS = Severity.SERIOUS, "what the index lacks would read as null"
    STREAM_DRIFT = Severity.SERIOUS, "nothing can follow the table: copies, subscriptions, search, live queries"
    BACKFILL_DUE = Severity.SERIOUS, "items without the attributes of an index are missing from its lists"
    ITEMS_WRONG = Severity.SERIOUS, "lists lack items or show them in a wrong place, or values are old"
    COLLECTION_LIMIT = (
        Severity.SERIOUS,
        "a table with a local index takes 10 GB in a partition: then every write that lets it grow is refused",
    )
    ITEM_TOO_LARGE = Severity.SERIOUS, "an item takes 400 KB: then every write that lets it grow is refused"
    TTL_DRIFT = Severity.SERIOUS, "expired items are never deleted, or others are"
    TTL_OFF = Severity.WARNING, "expired items are not shown, but stay: they are stored and read at their price"
    STREAM_OFF = Severity.WARNING, "subscriptions, live queries and the upkeep of search are refused"
    PARTITION_SKEWED = (
        Severity.WARNING,
        "a partition takes 1,000 write and 3,000 read units a second, however large the table's capacity",
    )
    SHARDS_SKEWED = Severity.WARNING, "the fullest shard is throttled before the others carry their part"
    ITEM_LARGE = (
        Severity.WARNING,
        "reading an item takes a unit for each 8 KB, whatever is asked for, and writing it one for each 1 KB, again in "
        "each index that holds it",
    )
    ITEMS_OF_NO_TYPE = Severity.WARNING, "they are stored, and read along with others, and never shown"
    INDEX_UNKNOWN = Severity.WARNING, "each write of an item in it is paid for once more, and its storage"
    INDEX_UNUSED = Severity.WARNING, "each write of an item in it is paid for once more, and its storage, for no reader"
    INDEX_NEVER_READ = Severity.WARNING, "each write of an item in it is paid for once more, and perhaps for nobody"
    COLLECTION_UNKNOWN = (
        Severity.HINT,
        "a table with a local index takes 10 GB in a partition, and the sample cannot say that none comes near",
    )
    SHARDS_FEW = Severity.HINT, "one partition gives 3,000 read units a second, so that reading them all takes longer"
    INDEX_OVERFULL = Severity.HINT, "what an index holds is stored, and written, once more"
    ATTRIBUTES_UNREAD = Severity.HINT, "they are stored, read along and written into indexes at their price"
    BACKUPS_OFF = Severity.HINT, "what is overwritten or deleted by mistake is gone"
    UNPROTECTED = Severity.HINT, "one DeleteTable ends it"
    REPLICATED = Severity.HINT, "transactions do not span regions: another one shows a write in parts, and last wins"
    BEING_CHANGED = Severity.HINT, "until that has ended, some of what is told here may not be so"
    NOT_EXAMINED = Severity.HINT, "what is not looked at may be wrong"

    def __init__(self, severity: Severity, why: str) -> None:
        self.severity = severity
        self.why = why


_RANKS = {one: number for number, one in enumerate(Code)}
_SEVERITIES = {one: number for number, one in enumerate(Severity)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is found about a table; `numbers` are what a program wants of it, and `weight` ranks its like."""

    code: Code
    table: str
    subject: str
    found: str
    cure: str
    numbers: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    weight: float = 0.0
    at_least: Severity = Severity.HINT
    """Worse than its code says, where this table needs more."""

    @property
    def severity(self) -> Severity:
        """Say how bad it is."""
        return min(self.code.severity, self.at_least, key=_SEVERITIES.__getitem__)

    def text(self) -> str:
        """Write the finding for a person."""
        where = f"{self.table}: {self.subject}" if self.subject not in ("", self.table) else self.table
        return (
            f"{self.severity.name} {self.code.name} {where}\n"
            f"  found: {self.found}\n"
            f"  why:   {self.code.why}\n"
            f"  do:    {self.cure}\n"
        )

    def as_json(self) -> dict[str, Any]:
        """Give the finding as a JSON object."""
        return {
            "severity": self.severity.name,
            "code": self.code.name,
            "table": self.table,
            "subject": self.subject or None,
            "found": self.found,
            "why": self.code.why,
            "do": self.cure,
            "numbers": dict(self.numbers),
        }


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings, the most important first."""
    return sorted(findings, key=lambda one: (_SEVERITIES[one.severity], _RANKS[one.code], -one.weight, one.subject))
