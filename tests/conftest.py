"""What every test module may use: the engine, and the option that rewrites golden files."""

from collections.abc import Iterator

import pytest
from anyio.from_thread import start_blocking_portal

from server.engine import Engine


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files instead of comparing")


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """The endpoint URL of one engine in memory, shared by the session: tables want names of their own."""
    # Its event loop has a thread of its own, for tests have a loop each and the engine outlives them all.
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Engine()) as running:
        yield running.endpoint_url
