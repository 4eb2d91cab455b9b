"""The demo's fleet: 50 containers of 20 pallets of 15 boxes, the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

CONTAINERS, PALLETS, BOXES = 50, 20, 15

Item = dict[str, dict[str, Any]]

OPERATORS = (
    "Blue Anchor Lines",
    "Cape Verde Shipping",
    "Meridian Ocean Freight",
    "Nordsee Kontor",
    "TheBoatingCompany",
)
FARMS = (
    ("BR", "Vale do Ribeira Packhouse", ("Fazenda Boa Vista", "Cooperativa Rio Verde")),
    ("CO", "Urabá Packing Station", ("Finca La Esperanza", "Agrícola del Caribe")),
    ("CR", "Limón Packhouse", ("Finca Siquirres", "Banano Tico")),
    ("EC", "Machala Packing Station", ("Hacienda El Oro", "Frutas del Guayas")),
)
PORTS = {"BR": "Santos.Docks", "CO": "Turbo.Docks", "CR": "Moin.Docks", "EC": "Guayaquil.Docks"}
STEVEDORES = {"BR": "Santos Stevedores", "CO": "Turbo Carga", "CR": "Moin Terminal", "EC": "Guayaquil Port Services"}
DESTINATIONS = ("BE", "DE", "GB", "NL", "PL", "SE")


def items() -> Iterator[Item]:
    """Yield every item of the fleet as DynamoDB's JSON: nodes, then the edges that load them."""
    random = Random(2022)
    for container in range(1, CONTAINERS + 1):
        country, packhouse, packers = random.choice(FARMS)
        packed = datetime(2022, 8, 1, 6, tzinfo=UTC) + timedelta(days=container, minutes=random.randrange(240))
        container_key = f"CONTAINER_{container:06}"
        yield _node(container_key, Operator=_text(random.choice(OPERATORS)))
        for pallet in range(1, PALLETS + 1):
            pallet_key = f"PALLET_C{container:03}{pallet:03}"
            yield _node(pallet_key, Origin=_text(country), Destination=_text(random.choice(DESTINATIONS)))
            loaded = packed + timedelta(hours=30, minutes=4 * pallet)
            yield _edge(container_key, pallet_key, loaded, STEVEDORES[country], PORTS[country])
            for box in range(1, BOXES + 1):
                box_key = f"BOX_C{container:03}{pallet:03}{box:02}"
                weight = random.gauss(19.5, 0.6)
                # Gas in the ripening agent: about one box in fifty.
                yield _node(box_key, WeightInKg={"N": f"{weight:.2f}"}, IsDangerous={"BOOL": random.random() < 0.02})
                yield _edge(
                    pallet_key, box_key, packed + timedelta(seconds=80 * box), random.choice(packers), packhouse
                )


def _node(key: str, **attributes: dict[str, Any]) -> Item:
    return {"objectId": _text(key), "relatedObjectId": _text(key), **attributes}


def _edge(one: str, other: str, moment: datetime, by: str, location: str) -> Item:
    return {
        "objectId": _text(one),
        "relatedObjectId": _text(other),
        "LinkedDatetime": _text(moment.strftime("%Y-%m-%dT%H:%M:%SZ")),
        "LinkedBy": _text(by),
        "LinkedAtLocation": _text(location),
    }


def _text(value: str) -> dict[str, str]:
    return {"S": value}
