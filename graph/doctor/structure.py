"""How a table differs from its model, as far as its descriptions show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graph.apply.plan import Drift, Kind, plan, refusals
from graph.apply.state import State, Target
from graph.doctor.findings import Code, Finding, Severity
from graph.model import CopyMode
from graph.tables import has_stream, shown_stream

APPLY = "`tablegraph table apply --yes` does it"
STEPS = {
    Kind.WAIT: (Code.BEING_CHANGED, "ask again when it has ended"),
    Kind.CREATE_TABLE: (Code.TABLE_MISSING, f"{APPLY}; or name the right one in @table(name: …), or with --table"),
    Kind.CREATE_INDEX: (Code.INDEX_MISSING, f"{APPLY}, and fills it"),
    Kind.BACKFILL: (Code.BACKFILL_DUE, f"{APPLY}"),
    Kind.TTL: (Code.TTL_OFF, APPLY),
    Kind.STREAM: (Code.STREAM_OFF, APPLY),
}
DRIFTS = {
    Drift.STATUS: Code.BEING_CHANGED,
    Drift.KEY: Code.KEY_DRIFT,
    Drift.KEY_TYPE: Code.KEY_DRIFT,
    Drift.LOCAL_INDEX: Code.INDEX_MISSING,
    Drift.INDEX: Code.INDEX_DRIFT,
    Drift.PROJECTION: Code.PROJECTION_LACKS,
    Drift.STREAM_VIEW: Code.STREAM_DRIFT,
    Drift.TTL_ATTRIBUTE: Code.TTL_DRIFT,
}
UNREADABLE = frozenset((Code.TABLE_MISSING, Code.KEY_DRIFT))
"""After these, items are not read: they would be taken for something else."""


def differences_of(target: Target, state: State) -> Iterator[Finding]:
    """Find what `tablegraph table apply` would do, and what it could not."""
    for refusal in refusals(target, state):
        what, _, cure = refusal.text.partition(": ")
        yield Finding(DRIFTS[refusal.drift], target.name, refusal.subject, what, cure or what)
    fresh = any(step.kind is Kind.CREATE_INDEX for step in plan(target, state))
    for step in plan(target, state):
        code, cure = STEPS[step.kind]
        if step.kind is Kind.BACKFILL and fresh:
            continue  # It goes without saying.
        if step.kind is Kind.TTL and (state.table is None or _is_of_another(target, state)):
            continue
        followed = step.kind is Kind.STREAM and target.table.copies is CopyMode.STREAM
        worse = Severity.SERIOUS if followed else Severity.HINT
        found = {
            Kind.STREAM: "it has no stream",
            Kind.BACKFILL: f"{step.subject} may be missing from items: {step.reason}",
        }.get(step.kind, step.reason)
        yield Finding(code, target.name, step.index or step.subject, found, cure, at_least=worse)


def _is_of_another(target: Target, state: State) -> bool:
    return any(refusal.drift is Drift.TTL_ATTRIBUTE for refusal in refusals(target, state))


def habits_of(target: Target, described: Mapping[str, Any], backups: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Find what a careful owner of a table would have otherwise; `backups` are None where nobody tells of them."""
    specification = described.get("StreamSpecification") or {}
    if specification.get("StreamEnabled") and not has_stream(described) and target.table.copies is not CopyMode.STREAM:
        yield Finding(
            Code.STREAM_OFF,
            target.name,
            "",
            f"it has {shown_stream(described)}, and what follows changes wants one of new and old images",
            "turn it off with UpdateTable once nobody reads it; then `tablegraph table apply --yes` turns the other on",
        )
    recovery = (backups or {}).get("PointInTimeRecoveryDescription", {})
    if backups is not None and recovery.get("PointInTimeRecoveryStatus") != "ENABLED":
        cure = f"aws dynamodb update-continuous-backups --table-name {target.name} "
        cure += "--point-in-time-recovery-specification PointInTimeRecoveryEnabled=true; about as dear as the storage"
        yield Finding(Code.BACKUPS_OFF, target.name, "", "point-in-time recovery is off", cure)
    if not described.get("DeletionProtectionEnabled"):
        cure = f"aws dynamodb update-table --table-name {target.name} --deletion-protection-enabled"
        yield Finding(Code.UNPROTECTED, target.name, "", "deletion protection is off", cure)
    if replicas := [one["RegionName"] for one in described.get("Replicas") or ()]:
        yield Finding(
            Code.REPLICATED,
            target.name,
            "",
            f"it is a global table, with replicas in {', '.join(replicas)}",
            "send mutations to the servers of one region, and read near you",
            {"regions": replicas},
        )
