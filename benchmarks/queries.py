"""The five queries, over the demo's fleet; each is named, so that a server without GraphQL can answer it too."""

from __future__ import annotations

TABLE, INDEX = "banana-delivery", "reverse-lookup-index"

BOXES = [f"C001{pallet:03}{box:02}" for pallet in range(1, 6) for box in range(1, 11)]
CONTAINERS = [f"{number:06}" for number in range(1, 11)]
PALLET_FIELDS = "edges { linkedBy linkedDatetime node { number origin destination"

QUERIES = {
    "Q1": 'query q1 { container(number: "000001") { id number operator } }',
    "Q2": f'query q2 {{ container(number: "000001") {{ number pallets(first: 20) {{ {PALLET_FIELDS} '
    "boxes(first: 15) { edges { linkedBy node { number weightInKg isDangerous } } } } } } } }",
    "Q3": "query q3 { "
    + " ".join(
        f'b{box}: box(number: "{box}") {{ number pallet {{ number container {{ operator }} }} }}' for box in BOXES
    )
    + " }",
    "Q4": f'query q4 {{ container(number: "000001") {{ pallets(first: 10) {{ {PALLET_FIELDS} }} cursor }} '
    "pageInfo { hasNextPage endCursor } } } }",
    "Q5": "query q5 { "
    + " ".join(
        f'c{n}: container(number: "{n}") {{ pallets(first: 20) {{ {PALLET_FIELDS} }} }} }} }}' for n in CONTAINERS
    )
    + " }",
}
