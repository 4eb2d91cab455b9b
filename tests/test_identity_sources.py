"""Sources of identity as settings and files name them: API keys, proxies, authorizers of AWS, and none at all."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.app import build_app
from server.cli import main
from server.identity.api_keys import ApiKeys, read_api_keys
from server.identity.aws import Authorizer
from server.identity.claims import Named
from server.identity.configured import authenticator_of, check_identity
from server.identity.proxy import Headers, Proxy
from server.identity.refusals import REASONS, Unauthenticated
from server.identity.watched import LOOK_SECS, Watched
from server.peers import Peers
from server.settings import Settings, SettingsError, load_settings
from tests.conftest import ROOT
from tests.counting import CountingApi
from tests.issuer import SECRET, jwk, pem
from tests.test_identity_tokens import Clock

HASH = hashlib.sha256(b"tg_x").hexdigest()


# API keys


def file_of(tmp_path: Path, content: str) -> Path:
    file = tmp_path / "keys.toml"
    file.write_text(content)
    return file


@pytest.mark.parametrize("form", ["TOML", "JSON"])
def test_a_file_says_who_has_a_key(tmp_path: Path, form: str) -> None:
    toml = f"""
        [[keys]]
        name = "export"
        sha256 = "{HASH.upper()}"
        roles = ["reader", "exporter"]
        claims = {{ tenant = "acme" }}
        expires = 2100-01-01T00:00:00Z
    """
    as_json = json.dumps({"keys": [{**tomllib.loads(toml)["keys"][0], "expires": "2100-01-01T01:00:00+01:00"}]})
    keys = ApiKeys(Watched(file_of(tmp_path, toml if form == "TOML" else as_json), read_api_keys, "--api-keys"))

    identity = keys.identify("tg_x")

    assert (identity.subject, identity.roles) == ("export", frozenset(("reader", "exporter")))
    assert (identity.claims, identity.expires) == ({"sub": "export", "tenant": "acme"}, 4102444800.0)


def test_a_key_counts_from_its_entry_to_its_removal_and_not_after_it_expires(tmp_path: Path) -> None:
    clock, now = Clock(), Clock()
    file = file_of(tmp_path, "")
    keys = ApiKeys(Watched(file, read_api_keys, "--api-keys", clock), now)

    def answer() -> str:
        clock.now += LOOK_SECS
        try:
            return str(keys.identify("tg_x").subject)
        except Unauthenticated as refusal:
            return refusal.reason

    entry = f'[[keys]]\nname = "export"\nsha256 = "{HASH}"\n'
    assert answer() == "UNKNOWN_API_KEY"
    file.write_text(entry)
    assert answer() == "export"
    file.write_text(entry + "expires = 1970-01-01T00:20:00Z")
    assert answer() == "export"
    now.now = 1200.0
    assert answer() == "EXPIRED"
    file.write_text(entry + "expire = 1")
    assert answer() == "EXPIRED", "what cannot be read changes nothing"
    file.write_text("")
    assert answer() == "UNKNOWN_API_KEY"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param("keys = 1", "a list of keys", id="no-list"),
        pytest.param("[[key]]\nname = 'a'", "a list of keys and nothing else", id="another-table"),
        pytest.param("[[keys]", "TOML or JSON", id="no-toml"),
        pytest.param("{", "TOML or JSON", id="no-json"),
        pytest.param('{"keys": [1]}', "each key to be a table", id="no-table"),
        pytest.param(f"[[keys]]\nsha256 = '{HASH}'", "a name", id="no-name"),
        pytest.param("[[keys]]\nname = 'a'", "64 hexadecimal digits", id="no-hash"),
        pytest.param("[[keys]]\nname = 'a'\nsha256 = 'tg_x'", "64 hexadecimal digits", id="key-in-place-of-hash"),
        pytest.param(f"[[keys]]\nname = 'a'\nsha256 = '{HASH}'\nroles = 'x'", "a list of texts", id="roles"),
        pytest.param(f"[[keys]]\nname = 'a'\nsha256 = '{HASH}'\nclaims = 'x'", "a table", id="claims"),
        pytest.param(f"[[keys]]\nname = 'a'\nsha256 = '{HASH}'\nrole = 'x'", "got role as well", id="unknown"),
        pytest.param(f"[[keys]]\nname = 'a'\nsha256 = '{HASH}'\nexpires = 2027-01-01", "with its zone", id="day"),
        pytest.param(
            f"[[keys]]\nname = 'a'\nsha256 = '{HASH}'\nexpires = 2027-01-01T00:00:00", "with its zone", id="no-zone"
        ),
        pytest.param(f"[[keys]]\nname = 'a'\nsha256 = '{HASH}'\n" * 2, "each name once", id="twice"),
        pytest.param(
            "".join(f"[[keys]]\nname = '{name}'\nsha256 = '{HASH}'\n" for name in "ab"), "each key", id="shared-key"
        ),
    ],
)
def test_a_file_of_keys_with_a_mistake_is_refused_at_start(tmp_path: Path, content: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        authenticator_of(Settings(api_keys=file_of(tmp_path, content)))

    assert str(refused.value).startswith("--api-keys: ")
    assert HASH not in str(refused.value)


def test_a_key_is_made_with_the_entry_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["key", 'the "export"', "--roles", "reader, écrivain", "--days", "30"]) == 0

    key, _, entry = capsys.readouterr().out.partition("\n\n")
    assert key.startswith("tg_")
    assert len(key) == 46
    assert key not in entry
    identity = ApiKeys(Watched(file_of(tmp_path, entry), read_api_keys, "--api-keys")).identify(key)
    assert (identity.subject, identity.roles) == ('the "export"', frozenset(("reader", "écrivain")))
    assert identity.expires is not None
    assert main(["key", "another"]) == 0
    assert capsys.readouterr().out.partition("\n\n")[0] != key


# A proxy


@pytest.mark.parametrize(
    ("host", "is_trusted"),
    [
        pytest.param("10.1.2.3", True, id="within"),
        pytest.param("11.1.2.3", False, id="without"),
        pytest.param("::ffff:10.1.2.3", True, id="IPv4-in-IPv6"),
        pytest.param("::ffff:11.1.2.3", False, id="another-IPv4-in-IPv6"),
        pytest.param("fd00::7", True, id="IPv6"),
        pytest.param("fd01::7", False, id="another-IPv6"),
        pytest.param("unix:", False, id="no-address"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_a_peer_is_trusted_by_its_address(host: str, is_trusted: bool) -> None:
    proxy = Proxy(Headers(b"x-user"), Peers("10.0.0.0/8, fd00::/64"), Named())
    scope = {"headers": [(b"x-user", b"ada")], "client": (host, 1) if host else None}

    if is_trusted:
        identity = proxy.identify({b"x-user": b"ada"}, scope)
        assert identity is not None
        assert identity.subject == "ada"
    else:
        with pytest.raises(Unauthenticated) as refused:
            proxy.identify({b"x-user": b"ada"}, scope)
        assert refused.value.reason == "UNTRUSTED_PEER"


def test_roles_may_be_among_the_claims_of_a_proxy() -> None:
    proxy = Proxy(Headers(b"x-user", claims=b"x-claims"), Peers("10.0.0.1"), Named("sub", "scope"))
    headers = {b"x-user": b"ada", b"x-claims": b'{"scope": "a b", "sub": "another", "exp": 4102444800}'}

    identity = proxy.identify(headers, {"headers": list(headers.items()), "client": ("10.0.0.1", 1)})

    assert identity is not None
    assert (identity.subject, identity.roles, identity.expires) == ("ada", frozenset("ab"), 4102444800.0)
    assert identity.claims["sub"] == "ada"


# Authorizers of AWS

# As API Gateway's documentation has them, shortened.
AUTHORIZERS: dict[str, tuple[Any, str, set[str]]] = {
    "HTTP API, JWT": (
        {"jwt": {"claims": {"sub": "ada", "roles": "[reader writer]", "exp": "1795203918"}, "scopes": None}},
        "ada",
        {"reader", "writer"},
    ),
    "HTTP API, one role": ({"jwt": {"claims": {"sub": "ada", "roles": "reader"}}}, "ada", {"reader"}),
    "HTTP API, Lambda": ({"lambda": {"sub": "ada", "roles": ["reader"], "tenant": "acme"}}, "ada", {"reader"}),
    "HTTP API, IAM": ({"iam": {"userArn": "arn:aws:iam::1:user/ada", "userId": "A"}}, "arn:aws:iam::1:user/ada", set()),
    "REST API, Cognito": ({"claims": {"sub": "ada", "roles": "reader,writer"}}, "ada", {"reader", "writer"}),
    "REST API, Lambda": (
        {"principalId": "ada", "roles": "reader", "integrationLatency": 7},
        "ada",
        {"reader"},
    ),
}


@pytest.mark.parametrize("kind", AUTHORIZERS)
def test_an_authorizer_says_who_asks(kind: str) -> None:
    authorizer, subject, roles = AUTHORIZERS[kind]

    identity = Authorizer(Named()).identify({"aws.event": {"requestContext": {"authorizer": authorizer}}})

    assert identity is not None
    assert (identity.subject, identity.roles, identity.claims["sub"]) == (subject, frozenset(roles), subject)
    assert "integrationLatency" not in identity.claims


@pytest.mark.parametrize(
    "scope",
    [
        pytest.param({}, id="no-lambda"),
        pytest.param({"aws.event": {}}, id="no-context"),
        pytest.param({"aws.event": {"requestContext": {"authorizer": None}}}, id="null"),
        pytest.param({"aws.event": {"requestContext": {"authorizer": {}}}}, id="empty"),
        pytest.param({"aws.event": {"requestContext": {"authorizer": {"lambda": None}}}}, id="lambda-without"),
        pytest.param({"aws.event": {"requestContext": {"authorizer": {"integrationLatency": 7}}}}, id="latency"),
    ],
)
def test_without_an_authorizer_nobody_is_known(scope: dict[str, Any]) -> None:
    assert Authorizer(Named()).identify(scope) is None


def test_an_authorizer_that_names_nobody_is_refused() -> None:
    with pytest.raises(Unauthenticated) as refused:
        Authorizer(Named()).identify({"aws.event": {"requestContext": {"authorizer": {"lambda": {"roles": "admin"}}}}})

    assert refused.value.reason == "WRONG_CLAIMS"


# Settings


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        pytest.param({"jwt_keys": "https://x/jwks"}, "--jwt-issuer: expected what the tokens have", id="no-issuer"),
        pytest.param({"jwt_keys": "https://x/jwks", "jwt_issuer": "i"}, "--jwt-audience: expected", id="no-audience"),
        pytest.param({"jwt_issuer": "i"}, "--jwt-issuer: expected --jwt-keys or --jwt-secret", id="no-keys"),
        pytest.param(
            {"jwt_keys": "k", "jwt_secret": Path("s"), "jwt_issuer": "i", "jwt_audience": "a"}, "got both", id="both"
        ),
        pytest.param(
            {"jwt_keys": "http://issuer.example/jwks", "jwt_issuer": "i", "jwt_audience": "a"}, "https://", id="http"
        ),
        pytest.param(
            {"jwt_keys": "file:///etc/keys", "jwt_issuer": "i", "jwt_audience": "a"}, "https://", id="another-scheme"
        ),
        pytest.param(
            {"jwt_keys": "/absent", "jwt_issuer": "i", "jwt_audience": "a"}, "/absent cannot be read", id="no-file"
        ),
        pytest.param({"api_keys": Path("/absent")}, "--api-keys: /absent cannot be read", id="no-key-file"),
        pytest.param({"proxy_headers": "subject=X-User"}, "--trusted-proxies: expected the addresses", id="no-peers"),
        pytest.param(
            {"proxy_headers": "roles=X-Roles", "trusted_proxies": "::1"}, "expected subject=… among them", id="subject"
        ),
        pytest.param({"proxy_headers": "X-User", "trusted_proxies": "::1"}, "expected like subject=", id="header"),
        pytest.param(
            {"proxy_headers": "subject=X User", "trusted_proxies": "::1"}, "expected like subject=", id="header-name"
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_refused_at_start(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        build_app(CountingApi(), Settings(**settings))


@pytest.mark.parametrize("algorithms", ["none", "HS256", "RS256,HS256", "rs256", "", "ES256K"])
def test_algorithms_are_pinned_to_asymmetric_ones(algorithms: str) -> None:
    if algorithms:
        with pytest.raises(SettingsError, match="--jwt-algorithms: expected some of RS256"):
            load_settings({}, {"jwt_algorithms": algorithms})
    assert load_settings({}, {"jwt_algorithms": "ES384, EdDSA"}).jwt_algorithms == "ES384, EdDSA"


FILES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "jwks": lambda file: {"jwt_keys": str(_written(file, json.dumps({"keys": [jwk("RS256", "one")]}).encode()))},
    "pem": lambda file: {"jwt_keys": str(_written(file, pem("ES256")))},
    "secret": lambda file: {"jwt_secret": _written(file, SECRET)},
}


def _written(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("kind", FILES)
def test_keys_may_lie_in_files(tmp_path: Path, kind: str) -> None:
    settings = Settings(**FILES[kind](tmp_path / "keys"), jwt_issuer="i", jwt_audience="a")

    authenticator = authenticator_of(settings)

    assert authenticator.tokens is not None
    assert not authenticator.anonymous


def test_a_model_with_rules_is_not_served_where_nobody_can_be_known(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"name a source of identity, --jwt-keys, .* or .* --anonymous true"):
        check_identity(Settings(), model_needs_identity=True)

    check_identity(Settings(), model_needs_identity=False)
    check_identity(Settings(anonymous=True), model_needs_identity=True)
    for source in (
        {"jwt_keys": "https://x/jwks"},
        {"jwt_secret": tmp_path},
        {"api_keys": tmp_path},
        {"proxy_headers": "subject=X-User"},
        {"aws_authorizer": True},
    ):
        check_identity(Settings(**source), model_needs_identity=True)


RULED = """
extend schema @table(name: "identity-asked-for", partitionKey: "pk")
type Box @node(partition: "BOX#{number}") @auth(roles: ["staff"]) { number: ID! }
"""


def test_commands_that_serve_ask_for_a_source_of_identity(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = tmp_path / "schema.graphql"
    schema.write_text(RULED)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")

    codes = [main([command, "--schema", str(schema), "--endpoint-url", engine]) for command in ("demo", "serve")]

    assert codes == [2, 2]
    assert capsys.readouterr().err.count("name a source of identity") == 2


def test_a_server_without_tokens_does_not_import_what_checks_them() -> None:
    program = "import sys, server.app, server.websocket; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    told = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True, text=True)

    assert {"jwt", "cryptography"}.isdisjoint(told.stdout.split())


def test_every_reason_says_what_to_do() -> None:
    assert all(text.endswith(".") for text in REASONS.values())
