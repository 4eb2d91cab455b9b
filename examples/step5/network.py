"""A larger network for the step-5 example, always the same: 60 places, 120 sensors, 2,400 readings over six months."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

Item = dict[str, dict[str, Any]]

CITIES = {
    "US": ("WA#Seattle", "WA#Spokane", "OR#Portland", "CA#Fresno"),
    "DE": ("BY#Munich", "BY#Nuremberg", "HH#Hamburg", "SN#Leipzig"),
    "BR": ("SP#Santos", "SP#Campinas", "BA#Salvador", "PR#Curitiba"),
}
CHAINS = ("Fresh Corner", "Night Market")
KINDS = ("freezer", "shelf")
READINGS_PER_SENSOR = 24
FIRST = datetime(2023, 1, 1, tzinfo=UTC)
NEVER = datetime(2100, 1, 1, tzinfo=UTC)


def items() -> Iterator[Item]:
    """Yield every item as DynamoDB's JSON: places, each with its sensors, and what these measured."""
    random = Random(5)
    serial = 0
    for country, cities in CITIES.items():
        for city in cities:
            for number in range(1, 6):
                path = f"{city}#Store {number}"
                yield _place(random, country, path)
                for kind in KINDS:
                    serial += 1
                    yield from _sensor(random, f"N{serial:04}", kind, f"{country}#{path}")


def _place(random: Random, country: str, path: str) -> Item:
    opened = (FIRST - timedelta(days=random.randrange(4000))).date().isoformat()
    item = _item(country=country, path=path, name=path.rpartition("#")[2], opened=opened, chain=random.choice(CHAINS))
    item["sensorCount"] = {"N": str(len(KINDS))}
    if random.random() < 0.2:
        item |= _item(inspector="Ida", complainedOn="2023-03-15", complaint="The freezer hums.")
    return item


def _sensor(random: Random, serial: str, kind: str, place: str) -> Iterator[Item]:
    yield _item(serial=serial, kind=kind, place=place)
    mean = -18 if kind == "freezer" else 8
    for number in range(READINGS_PER_SENSOR):
        # April is missing: the network was down, and nobody made a table for it.
        moment = FIRST + timedelta(hours=180 * number)
        if moment.month != 4:
            celsius = round(random.gauss(mean, 1.5), 1)
            yield {**_item(sensor=serial, time=_moment(moment)), "celsius": {"N": str(celsius)}}
    yield {
        **_item(sensor=serial, raised="2023-06-01T06:00:00Z", text="too warm"),
        "expires": {"N": str(int(NEVER.timestamp()))},
    }


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _item(**attributes: str) -> Item:
    return {name: {"S": value} for name, value in attributes.items()}
