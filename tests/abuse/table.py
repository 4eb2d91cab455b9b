"""All of the table: the kinds of abuse in their order, and their cases by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.abuse.over_http import HTTP, JSON
from tests.abuse.sockets import EVENTS_, SOCKETS
from tests.abuse.values import FILTERS, IDS, KEYS, PAGES, VALUES, WRITES
from tests.abuse.wire import Case, graphql
from tests.test_limits import ABUSIVE

TABLE: Final[Mapping[str, Mapping[str, Case]]] = {
    "HTTP": HTTP,
    "JSON": JSON,
    "Documents": {name: graphql(query) for name, (query, _) in ABUSIVE.items()},
    "Values": VALUES,
    "Keys": KEYS,
    "Ids": IDS,
    "Pages": PAGES,
    "Filters": FILTERS,
    "Writes": WRITES,
    "WebSockets": SOCKETS,
    "Events": EVENTS_,
}
