"""The API over a graph, as the settings say: the same wherever it runs."""

from __future__ import annotations

from graph.loaders import Graph
from resolvers.schema import Api
from server.following import Following
from server.identity.configured import check_identity
from server.settings import Settings


def api_of(graph: Graph, settings: Settings, following: Following | None = None) -> Api:
    """Make the API; without following nothing goes on, and how old copies are is not known.

    Raises: SettingsError where the model asks who is asking and nothing would say.
    """
    check_identity(settings, graph.model.has_rules)
    return Api(
        graph,
        timeout_secs=settings.operation_timeout_secs,
        introspection=settings.introspection,
        mutations=settings.mutations,
        executor=settings.executor,
        limits=settings.document_limits,
        hide_forbidden=settings.hide_forbidden,
        hub=following.hub if following else None,
        watermark=following.watermark if following else None,
    )
