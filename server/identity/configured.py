"""The sources of identity that the settings name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from server.identity.authenticator import Authenticator
from server.identity.claims import Named
from server.peers import Peers
from server.settings import Settings, SettingsError

if TYPE_CHECKING:
    from server.identity.api_keys import ApiKeys
    from server.identity.aws import Authorizer
    from server.identity.proxy import Proxy
    from server.identity.tokens import Tokens

LOCAL: Final = ("localhost", "127.0.0.1", "::1")
SOURCES: Final = "--jwt-keys, --jwt-secret, --api-keys, --proxy-headers or --aws-authorizer"


def has_source(settings: Settings) -> bool:
    """Say whether there is any way to know who asks."""
    named = (settings.jwt_keys, settings.jwt_secret, settings.api_keys, settings.proxy_headers)
    return any(named) or settings.aws_authorizer


def check_identity(settings: Settings, model_needs_identity: bool) -> None:
    """Refuse to serve a model that asks who is asking where nobody can be known, unless that is what is wanted.

    Raises: SettingsError with the cure.
    """
    if model_needs_identity and not has_source(settings) and not settings.anonymous:
        raise SettingsError(
            "The model has rules for who may do what, and nothing says who asks: name a source of identity, "
            f"{SOURCES}, or serve only what anybody may do, with --anonymous true."
        )


def authenticator_of(settings: Settings) -> Authenticator:
    """Make what says who asks; files of keys are read now, keys of a URL once the server runs.

    Raises: SettingsError when the settings do not fit together, or a file cannot be used.
    """
    if problems := list(_problems(settings)):
        raise SettingsError("\n".join(problems))
    if not has_source(settings):
        return Authenticator()
    named = Named(settings.subject_claim, settings.roles_claim)
    return Authenticator(
        tokens=_tokens(settings, named),
        api_keys=_api_keys(settings),
        proxy=_proxy(settings, named),
        authorizer=_authorizer(settings, named),
        anonymous=settings.anonymous,
    )


def _problems(settings: Settings) -> Iterator[str]:
    has_tokens = settings.jwt_keys is not None or settings.jwt_secret is not None
    if settings.jwt_keys is not None and settings.jwt_secret is not None:
        # Whoever takes both hopes that no public key ever passes for the secret.
        yield "--jwt-keys, --jwt-secret: expected one of them, got both"
    for flag, value in (("--jwt-issuer", settings.jwt_issuer), ("--jwt-audience", settings.jwt_audience)):
        if has_tokens and not value:
            yield f"{flag}: expected what the tokens have that are meant for this server, got nothing"
        elif value and not has_tokens:
            yield f"{flag}: expected --jwt-keys or --jwt-secret as well, got neither"
    if settings.proxy_headers and not settings.trusted_proxies:
        yield "--trusted-proxies: expected the addresses of the proxies whose headers are believed, got none"


def _tokens(settings: Settings, named: Named) -> Tokens | None:
    if settings.jwt_keys is None and settings.jwt_secret is None:
        return None
    from server.identity.issuer import Keys, KeysOfFile, KeysOfIssuer
    from server.identity.jwks import read_keys, read_secret
    from server.identity.tokens import Demands, Tokens
    from server.identity.watched import Watched

    keys: Keys
    algorithms = _listed(settings.jwt_algorithms)
    if settings.jwt_secret is not None:
        algorithms = ("HS256",)
        keys = KeysOfFile(Watched(settings.jwt_secret, read_secret, "--jwt-secret"))
    elif "://" in (place := settings.jwt_keys or ""):
        keys = KeysOfIssuer(_secure(place))
    else:
        keys = KeysOfFile(Watched(Path(place), read_keys, "--jwt-keys"))
    audiences = frozenset(_listed(settings.jwt_audience))
    return Tokens(keys, Demands(settings.jwt_issuer, audiences, algorithms, settings.jwt_leeway_secs), named)


def _secure(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in LOCAL):
        raise SettingsError(
            f"--jwt-keys: expected a URL that begins with https://, or a file, got {url}; keys that come another way "
            "may be anybody's"
        )
    return url


def _api_keys(settings: Settings) -> ApiKeys | None:
    if settings.api_keys is None:
        return None
    from server.identity.api_keys import ApiKeys, read_api_keys
    from server.identity.watched import Watched

    return ApiKeys(Watched(settings.api_keys, read_api_keys, "--api-keys"))


def _proxy(settings: Settings, named: Named) -> Proxy | None:
    if not settings.proxy_headers:
        return None
    from server.identity.proxy import Headers, Proxy

    found: dict[str, bytes] = {}
    for each in _listed(settings.proxy_headers):
        of, _, header = (part.strip() for part in each.partition("="))
        if of not in Headers._fields or of in found or not re.fullmatch(r"[A-Za-z0-9-]+", header):
            raise SettingsError(
                "--proxy-headers: expected like subject=X-Auth-User,roles=X-Auth-Roles,claims=X-Auth-Claims, the last "
                f"two where there are any, got {settings.proxy_headers}"
            )
        found[of] = header.lower().encode()
    if "subject" not in found:
        raise SettingsError("--proxy-headers: expected subject=… among them, got none")
    return Proxy(Headers(**found), Peers(settings.trusted_proxies), named)


def _authorizer(settings: Settings, named: Named) -> Authorizer | None:
    if not settings.aws_authorizer:
        return None
    from server.identity.aws import Authorizer

    return Authorizer(named)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())
