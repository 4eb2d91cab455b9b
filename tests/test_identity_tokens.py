"""Tokens: real ones, of a real issuer whose keys rotate and whose server fails."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from server.identity import tokens as tokens_module
from server.identity.claims import Named
from server.identity.issuer import FRESH_SECS, MOST_BYTES, PAUSE_SECS, KeysOfFile, KeysOfIssuer
from server.identity.jwks import read_jwks, read_keys, read_secret
from server.identity.refusals import Unauthenticated
from server.identity.tokens import Demands, Tokens
from server.identity.watched import LOOK_SECS, Watched
from server.settings import SettingsError
from server.view import Refusal
from tests.issuer import AUDIENCE, ISSUER, SECRET, Issuer, jwk, pem, private_key, running_issuer, token

ALL = ("RS256", "PS256", "ES256", "ES384", "EdDSA")


class Clock:
    """A monotonic clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def demanding(**other: Any) -> Demands:
    fine = {"issuer": ISSUER, "audiences": frozenset((AUDIENCE,)), "algorithms": ALL, "leeway_secs": 0.0}
    return Demands(**{**fine, **other})


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running_issuer() as issuer:
        yield issuer


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(issuer: Issuer, clock: Clock) -> Tokens:
    return Tokens(KeysOfIssuer(issuer.url, clock=clock), demanding(), Named())


async def refused(tokens: Tokens, credential: str) -> str:
    with pytest.raises(Unauthenticated) as raised:
        await tokens.identify(credential)
    return raised.value.reason


# What a token says


@pytest.mark.parametrize("algorithm", ALL)
async def test_a_token_of_each_algorithm_says_who_asks(issuer: Issuer, tokens: Tokens, algorithm: str) -> None:
    issuer.keys = [jwk(algorithm, "one"), jwk("RS256", "two"), jwk("ES256", "three")]

    identity = await tokens.identify(token(algorithm, "one", tenant="acme"))

    assert (identity.subject, identity.roles) == ("ada", frozenset(("reader",)))
    assert identity.claims["tenant"] == "acme"
    assert identity.expires == identity.claims["exp"]


@pytest.mark.parametrize(
    ("path", "given", "roles"),
    [
        pytest.param("roles", {"roles": ["a", "b"]}, {"a", "b"}, id="list"),
        pytest.param("scope", {"scope": "read:x write:x"}, {"read:x", "write:x"}, id="scope"),
        pytest.param("realm_access.roles", {"realm_access": {"roles": ["a"]}}, {"a"}, id="keycloak"),
        pytest.param("cognito:groups", {"cognito:groups": ["a"]}, {"a"}, id="cognito"),
        pytest.param("https://x.example/roles", {"https://x.example/roles": ["a"]}, {"a"}, id="url"),
        pytest.param("roles", {"roles": ["a", 1, None, {"b": 1}]}, {"a"}, id="texts-alone"),
        pytest.param("roles", {"roles": {"a": True}}, set(), id="object"),
        pytest.param("realm_access.roles", {"realm_access": "roles"}, set(), id="no-object-on-the-way"),
        pytest.param("absent", {}, set(), id="absent"),
    ],
)
def test_roles_are_found_where_they_are_said_to_be(path: str, given: dict[str, Any], roles: set[str]) -> None:
    assert Named("sub", path).roles_of(given) == roles


async def test_the_subject_may_be_another_claim(issuer: Issuer) -> None:
    tokens = Tokens(KeysOfIssuer(issuer.url), demanding(), Named("email"))

    assert (await tokens.identify(token(email="ada@x.example"))).subject == "ada@x.example"
    assert await refused(tokens, token()) == "WRONG_CLAIMS"
    assert await refused(tokens, token(email=["ada@x.example"])) == "WRONG_CLAIMS"


async def test_one_of_several_audiences_is_enough_and_a_client_id_stands_in_for_none(issuer: Issuer) -> None:
    tokens = Tokens(KeysOfIssuer(issuer.url), demanding(audiences=frozenset(("a", "b"))), Named())

    for fine in (token(aud="b"), token(aud=["x", "a"]), token(aud=None, client_id="a")):
        assert (await tokens.identify(fine)).subject == "ada"
    for other in (token(aud=["x"], client_id="a"), token(aud=None, client_id="x"), token(aud=None), token(aud=[["a"]])):
        assert await refused(tokens, other) == "WRONG_AUDIENCE"


async def test_clocks_may_differ_by_the_leeway(issuer: Issuer) -> None:
    tokens = Tokens(KeysOfIssuer(issuer.url), demanding(leeway_secs=60.0), Named())
    now = int(time.time())

    late = await tokens.identify(token(exp=now - 30))
    assert late.expires == now + 30
    assert (await tokens.identify(token(nbf=now + 30, iat=now + 30))).subject == "ada"
    assert await refused(tokens, token(exp=now - 90)) == "EXPIRED"
    assert await refused(tokens, token(nbf=now + 90)) == "NOT_YET_VALID"


# Remembered


async def test_a_verified_token_is_not_verified_again_until_it_expires(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Clock()
    now.now = time.time()
    tokens = Tokens(KeysOfIssuer(issuer.url), demanding(), Named(), now)
    verified: list[str] = []
    decode = jwt.decode

    def recorded(token: str, *arguments: Any, **options: Any) -> Any:
        verified.append(token)
        return decode(token, *arguments, **options)

    monkeypatch.setattr(jwt, "decode", recorded)
    fine = token()

    first = await tokens.identify(fine)
    assert [await tokens.identify(fine) for _ in range(5)] == [first] * 5
    assert len(verified) == 1

    now.now += 601
    await tokens.identify(fine)
    assert len(verified) == 2, "it has expired by the clock that what is remembered goes by"


async def test_as_many_tokens_are_remembered_as_there_is_room_for(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens_module, "MOST_KNOWN", 3)
    a, b, c, d = (token(jti=name) for name in "abcd")

    known = {name: await tokens.identify(each) for name, each in zip("abc", (a, b, c), strict=True)}
    assert await tokens.identify(a) is known["a"]
    await tokens.identify(d)

    assert len(tokens._known) == 3
    assert await tokens.identify(a) is known["a"], "used last"
    assert await tokens.identify(b) is not known["b"], "not used for longest"


async def test_no_token_is_kept_as_it_is(tokens: Tokens) -> None:
    fine = token()
    identity = await tokens.identify(fine)

    assert fine not in repr(tokens._known) + repr(identity)
    assert fine.rpartition(".")[2] not in repr(tokens._known) + repr(identity)


# The issuer's keys


async def test_keys_are_fetched_once_for_all_who_come_together(issuer: Issuer, tokens: Tokens) -> None:
    issuer.open.clear()
    coming = [asyncio.create_task(tokens.identify(token(jti=str(number)))) for number in range(50)]
    await until(lambda: issuer.fetches == 1)
    issuer.open.set()

    assert {identity.subject for identity in await asyncio.gather(*coming)} == {"ada"}
    assert issuer.fetches == 1


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - it knows no event of ours
            await asyncio.sleep(0.001)


async def test_a_caller_who_goes_does_not_take_the_fetch_along(issuer: Issuer, tokens: Tokens) -> None:
    issuer.open.clear()
    first, second = (asyncio.create_task(tokens.identify(token(jti=name))) for name in "ab")
    await until(lambda: issuer.fetches == 1)
    first.cancel()
    issuer.open.set()

    assert (await second).subject == "ada"
    assert issuer.fetches == 1


async def test_a_key_that_the_issuer_adds_is_found(issuer: Issuer, tokens: Tokens, clock: Clock) -> None:
    await tokens.identify(token())
    issuer.keys = [jwk("RS256", "one"), jwk("RS256", "two")]
    clock.now += PAUSE_SECS

    assert (await tokens.identify(token("RS256", "two"))).subject == "ada"
    assert (await tokens.identify(token())).subject == "ada"
    assert issuer.fetches == 2


async def test_made_up_key_ids_do_not_flood_the_issuer(issuer: Issuer, tokens: Tokens, clock: Clock) -> None:
    await tokens.identify(token())

    for number in range(100):
        assert await refused(tokens, token("RS256", str(number % 7), key=private_key("RS256", "x"))) == "UNKNOWN_KEY"
    assert issuer.fetches == 1, "the set has only just come"

    clock.now += PAUSE_SECS
    made_up = [refused(tokens, token("RS256", f"more-{number}", key=private_key("RS256", "x"))) for number in range(50)]
    assert set(await asyncio.gather(*made_up)) == {"UNKNOWN_KEY"}
    assert issuer.fetches == 2


async def test_a_key_that_the_issuer_withdraws_is_refused_and_what_it_signed_forgotten(
    issuer: Issuer, tokens: Tokens, clock: Clock
) -> None:
    fine = token()
    await tokens.identify(fine)
    issuer.keys = [jwk("RS256", "two")]

    clock.now += FRESH_SECS
    assert (await tokens.identify(fine)).subject == "ada", "nobody waits for the fetch"
    await until(lambda: issuer.fetches == 2 and [key.id for key in tokens._keys.known()] == ["two"])

    assert await refused(tokens, fine) == "UNKNOWN_KEY"


async def test_a_key_that_changes_under_its_id_is_the_new_one(issuer: Issuer, tokens: Tokens, clock: Clock) -> None:
    fine = token()
    await tokens.identify(fine)
    issuer.keys = [{**jwk("RS256", "another"), "kid": "one"}]
    clock.now += FRESH_SECS
    await tokens.identify(fine)
    await until(lambda: not tokens._keys._fetching or tokens._keys._fetching.done())  # type: ignore[attr-defined]

    assert await refused(tokens, fine) == "WRONG_SIGNATURE"
    assert (await tokens.identify(token("RS256", "one", key=private_key("RS256", "another")))).subject == "ada"


@pytest.mark.parametrize(
    ("status", "content"),
    [
        pytest.param(500, None, id="500"),
        pytest.param(302, None, id="redirect"),
        pytest.param(200, b"<html>", id="page"),
        pytest.param(200, b'{"keys": []}', id="empty"),
        pytest.param(200, b'{"keys": "all"}', id="no-list"),
        pytest.param(200, b"[]", id="another-form"),
        pytest.param(200, b" " * (MOST_BYTES + 1), id="too-large"),
        pytest.param(200, b"[" * 100_000, id="nested"),
    ],
)
async def test_the_old_keys_hold_while_the_issuer_is_down(
    issuer: Issuer, tokens: Tokens, clock: Clock, caplog: pytest.LogCaptureFixture, status: int, content: bytes | None
) -> None:
    await tokens.identify(token())
    issuer.status, issuer.content = status, content

    for _ in range(3):
        clock.now += FRESH_SECS
        assert (await tokens.identify(token(jti=str(clock.now)))).subject == "ada"
        await until(lambda: tokens._keys._fetching.done())  # type: ignore[attr-defined]

    assert issuer.fetches == 4
    assert "going on with those that were there before" in caplog.text
    issuer.status, issuer.content = 200, None
    issuer.keys = [jwk("RS256", "two")]
    clock.now += PAUSE_SECS
    assert (await tokens.identify(token("RS256", "two"))).subject == "ada"


async def test_without_any_keys_nobody_is_refused_for_good(issuer: Issuer, tokens: Tokens, clock: Clock) -> None:
    issuer.status = 503
    for _ in range(10):
        with pytest.raises(Refusal) as raised:
            await tokens.identify(token())
        assert (raised.value.status, raised.value.code) == (503, "IDENTITY_UNAVAILABLE")
        assert (b"retry-after", b"10") in raised.value.headers
    assert issuer.fetches == 1

    issuer.status = 200
    clock.now += PAUSE_SECS
    assert (await tokens.identify(token())).subject == "ada"


async def test_the_event_loop_goes_on_while_keys_are_fetched(issuer: Issuer, tokens: Tokens) -> None:
    issuer.open.clear()
    coming = asyncio.create_task(tokens.identify(token()))
    await until(lambda: issuer.fetches == 1)
    for _ in range(1000):
        await asyncio.sleep(0)
    assert not coming.done()
    issuer.open.set()

    assert (await coming).subject == "ada"


def test_of_a_set_the_keys_for_signatures_are_taken(caplog: pytest.LogCaptureFixture) -> None:
    weak = {**jwk("RS256", "weak"), "n": "f" * 171}
    members = [
        jwk("RS256", "rsa"),
        jwk("ES384", "ec", alg="ES384"),
        jwk("RS256", "pinned", alg="PS512"),
        jwk("RS256", "for-encryption", use="enc"),
        jwk("RS256", "signs-only", key_ops=["sign"]),
        jwk("RS256", "of-the-future", alg="RS1024"),
        jwk("RS256", "no-list", key_ops=None),
        {"kty": "oct", "kid": "secret", "k": "c2VjcmV0"},
        {"kty": "XYZ", "kid": "unknown"},
        {**jwk("ES256", "leaked"), "d": "c2VjcmV0"},
        {**jwk("ES256", "off"), "x": "AAAA"},
        {**jwk("ES256", "n"), "kid": 7},
        weak,
        "nonsense",
    ]

    keys = {key.id: key.algorithms for key in read_jwks(json.dumps({"keys": members}).encode())}

    assert {id_: sorted(algorithms) for id_, algorithms in keys.items()} == {
        "rsa": ["PS256", "PS384", "PS512", "RS256", "RS384", "RS512"],
        "ec": ["ES384"],
        "pinned": ["PS512"],
        "of-the-future": [],
    }
    assert len([record for record in caplog.records if "left out" in record.message]) == 4


# Keys of a file


@pytest.mark.parametrize("algorithm", ALL)
async def test_a_public_key_in_pem_will_do(tmp_path: Path, algorithm: str) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(pem(algorithm, "one"))
    tokens = Tokens(KeysOfFile(Watched(file, read_keys, "--jwt-keys")), demanding(), Named())

    assert (await tokens.identify(token(algorithm, "one"))).subject == "ada"
    assert (await tokens.identify(token(algorithm, None, key=private_key(algorithm, "one")))).subject == "ada"
    assert await refused(tokens, token(algorithm, "two")) == "WRONG_SIGNATURE"


async def test_a_file_of_keys_is_read_anew_when_it_changes(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [jwk("ES256", "one")]}))
    tokens = Tokens(KeysOfFile(Watched(file, read_keys, "--jwt-keys", clock)), demanding(), Named())
    one, two = token("ES256", "one"), token("ES256", "two")
    await tokens.identify(one)

    file.write_text(json.dumps({"keys": [jwk("ES256", "two"), jwk("RS256", "one")]}))
    clock.now += LOOK_SECS
    assert (await tokens.identify(two)).subject == "ada"
    assert await refused(tokens, one) == "UNKNOWN_KEY"

    file.write_text("{")
    for _ in range(3):
        clock.now += LOOK_SECS
        assert (await tokens.identify(two)).subject == "ada", "what there was holds"
    file.unlink()
    for _ in range(3):
        clock.now += LOOK_SECS
        assert (await tokens.identify(two)).subject == "ada"
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 2, "each is told once"

    file.write_text(json.dumps({"keys": [jwk("ES256", "one")]}))
    clock.now += LOOK_SECS
    assert (await tokens.identify(one)).subject == "ada"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(b"-----BEGIN PRIVATE KEY-----", "got a private one", id="private"),
        pytest.param(
            b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "a public key in PEM", id="damaged"
        ),
        pytest.param(b"nonsense", "a JWK Set in JSON, or a public key in PEM", id="nonsense"),
    ],
)
def test_a_file_that_holds_no_keys_is_refused_at_start(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "keys"
    file.write_bytes(content)

    with pytest.raises(SettingsError, match=told) as refused:
        Watched(file, read_keys, "--jwt-keys")
    assert str(refused.value).startswith(f"--jwt-keys: {file}")
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        Watched(tmp_path / "absent", read_keys, "--jwt-keys")


# A shared secret


async def test_a_shared_secret_serves_hs256_alone(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(SECRET + b"\n")
    keys = KeysOfFile(Watched(file, read_secret, "--jwt-secret"))
    tokens = Tokens(keys, demanding(algorithms=("HS256",)), Named())

    assert (await tokens.identify(token("HS256", None, key=SECRET))).subject == "ada"
    assert await refused(tokens, token("HS256", None, key=SECRET + b"\n")) == "WRONG_SIGNATURE"
    for algorithm in ("HS384", "HS512"):
        assert await refused(tokens, token(algorithm, None, key=SECRET * 2)) == "WRONG_ALGORITHM"
    assert await refused(tokens, token("RS256")) == "WRONG_ALGORITHM"


@pytest.mark.parametrize("content", [b"short", b"", pem("RS256")])
def test_what_is_no_secret_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="a secret"):
        read_secret(content)
