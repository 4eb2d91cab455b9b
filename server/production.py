"""What a server that is open to others has to be told: nobody is to find out later that it was left out."""

from __future__ import annotations

from collections.abc import Callable

from server.identity.configured import SOURCES, has_source
from server.settings import PREFIX, Settings, SettingsError

Requirement = Callable[[Settings], str | None]
"""Says what is missing and how to mend it; None where nothing is."""


def check_production(settings: Settings) -> None:
    """Refuse to serve with `--production` where something is missing. Raises: SettingsError with a line for each."""
    if not settings.production:
        return
    problems = [problem for requirement in REQUIREMENTS if (problem := requirement(settings)) is not None]
    if problems:
        raise SettingsError("\n".join(problems))


def _signing_keys(settings: Settings) -> str | None:
    if settings.signing_keys:
        return None
    return (
        f"{PREFIX}SIGNING_KEYS: expected keys with --production, or anybody could make up cursors and ids: make one by "
        "`tablegraph secret`, and give the same to every server"
    )


def _who_asks(settings: Settings) -> str | None:
    if has_source(settings) or settings.anonymous:
        return None
    return f"{PREFIX}ANONYMOUS: expected true with --production where nothing says who asks, or what says so: {SOURCES}"


REQUIREMENTS: tuple[Requirement, ...] = (_signing_keys, _who_asks)
"""What is asked of the settings, in the order in which it is told."""
