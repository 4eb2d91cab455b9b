"""Subgraphs of others, each with entities that are ours: what they add to them, and fields that name some."""

from __future__ import annotations

from datetime import date

import strawberry
from strawberry.federation import Schema
from strawberry.federation.schema_directives import Key
from strawberry.federation.types import FieldSet


@strawberry.federation.type(keys=["id"])
class Pallet:
    """A pallet, by its global id."""

    id: strawberry.ID

    @strawberry.field
    def customs(self) -> str:
        """Say whether it may enter."""
        return f"cleared {self.id}"


@strawberry.federation.type(keys=["id"])
class Container:
    """A container, by its global id."""

    id: strawberry.ID


@strawberry.type(name="Query")
class Customs:
    """What the customs know."""

    @strawberry.field
    def fleet(self, ids: list[strawberry.ID]) -> list[Container | None]:
        """List containers."""
        return [Container(id=one) for one in ids]


@strawberry.federation.type(keys=[Key(fields=FieldSet("number"), resolvable=False)])
class Employee:
    """An employee, of whom nothing else is known here."""

    number: strawberry.ID


@strawberry.federation.type(keys=["employee { number } startDate"])
class JobHistory:
    """A job that somebody has begun."""

    employee: Employee
    start_date: date


@strawberry.type(name="Query")
class Careers:
    """What the headhunters know."""

    @strawberry.field
    def post(self, of: strawberry.ID, since: date) -> JobHistory:
        """Name a job."""
        return JobHistory(employee=Employee(number=of), start_date=since)


@strawberry.federation.type(keys=["name"])
class Tag:
    """A tag, as it is drawn."""

    name: strawberry.ID

    @strawberry.field
    def colour(self) -> str:
        """Give its colour."""
        return "green"


@strawberry.type(name="Query")
class Colours:
    """What the designers know."""

    @strawberry.field
    def tags(self, names: list[strawberry.ID]) -> list[Tag]:
        """List tags."""
        return [Tag(name=one) for one in names]


CUSTOMS = Schema(Customs, types=[Pallet])
CAREERS = Schema(Careers)
COLOURS = Schema(Colours)
