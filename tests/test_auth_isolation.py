"""Two tenants, and the owners within one, on random models: no answer depends on what its caller may not read."""

from __future__ import annotations

import pytest

from graph import guard
from graph.entity import Entity
from tests import isolation, isolation_writes
from tests.conftest import way_to

WORLDS, CASES = range(1, 16), 12


def test_no_answer_depends_on_what_is_anothers() -> None:
    report = isolation.run(WORLDS, CASES)

    assert not report.leaks, "\n\n".join(report.leaks[:2])
    for kind in ("with nodes of ours", "with owners", "that name the other tenant", "with data", "with errors"):
        assert report.tally[kind] > len(WORLDS), kind


def test_a_leak_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the guard to let items pass, or nodes be shown by their names, it would be told."""
    monkeypatch.setattr(guard.Guard, "_kept", lambda _, __, items: list(items))
    assert isolation.run(range(2, 4), CASES).leaks
    monkeypatch.undo()

    monkeypatch.setattr(guard.Sight, "is_reachable", lambda *_: True)
    assert not isolation.run(range(2, 4), CASES).leaks, "what is asked for in vain is kept back by its items"
    monkeypatch.undo()

    lacks = Entity.lacks
    monkeypatch.setattr(Entity, "lacks", lambda self, names: not self.type.virtual and lacks(self, names))
    assert isolation.run(range(15, 16), CASES).leaks


async def test_no_write_touches_or_depends_on_what_is_the_other_tenants(engine: str) -> None:
    transport = way_to(engine)
    report = await isolation_writes.run(range(1, 9), 20, transport)
    transport.close()

    assert not report.problems, "\n\n".join(report.problems[:2])
    kinds = ("done", "NOT_FOUND", "FORBIDDEN", "BAD_INPUT", "ALREADY_EXISTS", "that name the other tenant")
    assert [kind for kind in kinds if not report.tally[kind]] == []
