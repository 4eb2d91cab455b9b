"""What the invocations of one AWS Lambda container share, made once."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass

from graph.loaders import Graph
from graph.model import Model
from server.logs import configure_logging
from server.settings import Settings, load_settings
from server.tables import graph_of, model_of, region
from server.transports import Way, open_transport


@dataclass(frozen=True, slots=True)
class Container:
    """A graph, and the one event loop that its connections belong to: it stands still between invocations."""

    settings: Settings
    model: Model
    transport: Way
    graph: Graph
    runner: asyncio.Runner

    def close(self) -> None:
        """Close connections and loop; AWS Lambda does not, it ends the process."""
        self.transport.close()
        self.runner.close()


def open_container(defaults: Mapping[str, str] | None = None) -> Container:
    """Make it as the TABLEGRAPH_* variables say, and as `defaults` where they say nothing.

    Raises: SettingsError, ModelError, FileNotFoundError, AccessRefused.
    """
    settings = load_settings({**(defaults or {}), **os.environ})
    _take_over_the_log(settings)
    model = model_of(settings)
    transport = open_transport(settings, region(settings))
    return Container(settings, model, transport, graph_of(model, transport, settings), asyncio.Runner())


def _take_over_the_log(settings: Settings) -> None:
    root = logging.getLogger()
    # Lambda's runtime has a handler of its own there, and would write every line a second time.
    for handler in [each for each in root.handlers if type(each).__name__.startswith("LambdaLogger")]:
        root.removeHandler(handler)
    configure_logging(settings.log_format, settings.log_level)
