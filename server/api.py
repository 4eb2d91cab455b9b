"""The API over a graph, as the settings say: the same wherever it runs."""

from __future__ import annotations

from graph.loaders import Graph
from resolvers.persisted import Persistence
from resolvers.schema import Api
from server.documents import check_trusted, read_trusted
from server.following import Following
from server.identity.configured import check_identity
from server.settings import Settings


def api_of(
    graph: Graph, settings: Settings, following: Following | None = None, *, checks_documents: bool = True
) -> Api:
    """Make the API; without following nothing goes on, and how old copies are is not known.

    Cost: a few milliseconds for each trusted document that is checked; one that is not is when it is first asked for.
    Raises: SettingsError where a trusted document cannot be read, or does not fit the schema, and where the model asks
    who is asking and nothing would say.
    """
    check_identity(settings, graph.model.has_rules)
    trusted = read_trusted(settings.trusted_documents)
    api = Api(
        graph,
        timeout_secs=settings.operation_timeout_secs,
        introspection=settings.introspection,
        mutations=settings.mutations,
        executor=settings.executor,
        limits=settings.document_limits,
        hide_forbidden=settings.hide_forbidden,
        persistence=Persistence(
            {document.id: document.text for document in trusted}, settings.only_trusted, settings.max_persisted_bytes
        ),
        discreet=settings.production,
        federation=settings.federation,
        hub=following.hub if following else None,
        watermark=following.watermark if following else None,
    )
    if checks_documents:
        check_trusted(api, trusted)
    return api
