"""Whatever comes as credentials, as keys or as claims: it is refused with a reason, or it is what was issued."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from typing import Any

import jwt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.identity import Identity
from server.identity.api_keys import read_api_keys
from server.identity.authenticator import Authenticator
from server.identity.aws import Authorizer
from server.identity.claims import Named
from server.identity.jwks import KeySet, read_jwks
from server.identity.proxy import Headers, Proxy
from server.identity.refusals import Unauthenticated
from server.identity.tokens import Tokens
from server.peers import Peers
from tests.attacks import part
from tests.issuer import claims, jwk, private_key, token
from tests.test_identity_tokens import demanding

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


class Published:
    """Keys that are there."""

    def __init__(self, keys: KeySet) -> None:
        self._keys = keys

    def known(self) -> KeySet:
        return self._keys

    async def find(self, id_: str | None, algorithm: str) -> list[Any]:
        return [key for key in self._keys if key.id == id_ and algorithm in key.algorithms]


KEYS = read_jwks(json.dumps({"keys": [jwk("ES256", "one")]}).encode())


def asked(**headers: str) -> Identity | None:
    """Ask with these headers; None where it is refused."""
    authenticator = Authenticator(tokens=Tokens(Published(KEYS), demanding(), Named()), anonymous=False)
    sent = {name.encode(): value.encode() for name, value in headers.items()}
    try:
        return asyncio.run(authenticator.identify(sent, {"headers": list(sent.items())}))
    except Unauthenticated:
        return None


def signed(payload: Any, header: dict[str, Any]) -> str:
    """Sign anything at all, correctly."""
    content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return jwt.api_jws.encode(content, private_key("ES256", "one"), "ES256", header)


@given(st.text(max_size=200) | st.text("abcXYZ019-_.= ", max_size=200))
def test_no_text_is_a_credential(text: str) -> None:
    assert asked(authorization=f"Bearer {text}") is None
    assert asked(authorization=text) is None


@cache
def issued() -> str:
    """Give one token, always the same: its signature is another each time that it is made."""
    return token("ES256", "one", exp=4102444800)


def test_the_token_that_is_changed_is_fine() -> None:
    identity = asked(authorization=f"Bearer {issued()}")

    assert identity is not None
    assert identity.subject == "ada"


@given(st.data())
def test_a_token_of_which_any_character_was_changed_is_refused(data: st.DataObject) -> None:
    fine = issued()
    place = data.draw(st.integers(0, len(fine) - 1))
    other = data.draw(st.sampled_from("ABCwxyz0189-_.=").filter(lambda character: character != fine[place]))

    assert asked(authorization=f"Bearer {fine[:place]}{other}{fine[place + 1 :]}") is None


@given(
    st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk", "zip", "cty"]), JSON, max_size=4), JSON
)
def test_no_header_by_hand_opens_anything(header: Any, payload: Any) -> None:
    _, body, signature = token("ES256", "one").split(".")

    for sent in (f"{part(header)}.{body}.{signature}", f"{part(header)}.{part(payload)}.{signature}"):
        assert asked(authorization=f"Bearer {sent}") is None


@given(st.dictionaries(st.sampled_from(sorted([*claims(), "nbf", "client_id"])), JSON, max_size=5))
def test_of_what_the_issuer_signs_only_what_is_complete_is_taken(other: dict[str, Any]) -> None:
    given_ = {**claims(), **other}
    identity = asked(authorization=f"Bearer {signed(given_, {'kid': 'one'})}")

    if identity is not None:
        assert identity.subject == given_["sub"] != ""
        assert isinstance(identity.expires, float)
        assert given_["iss"] == claims()["iss"]
        assert "tablegraph-test" in (given_["aud"] if isinstance(given_["aud"], list) else [given_["aud"]])
        assert all(isinstance(role, str) for role in identity.roles)


@given(st.binary(max_size=60))
def test_what_the_issuer_signs_may_be_no_claims_at_all(content: bytes) -> None:
    assert asked(authorization=f"Bearer {signed(content, {'kid': 'one'})}") is None


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["kty", "crv", "n", "e", "x", "y", "d", "kid", "alg", "use", "key_ops"]),
            JSON | st.sampled_from(["RSA", "EC", "OKP", "oct", "P-256", "Ed25519", "AQAB", "A" * 43, "sig", "RS256"]),
        ).map(lambda other: {"kty": "RSA", **other})
        | JSON,
        max_size=3,
    )
    | JSON
)
def test_no_set_of_keys_breaks_the_reader(members: Any) -> None:
    good = jwk("ES256", "good")
    listed = [*members, good] if isinstance(members, list) else members
    if isinstance(members, list):
        assert "good" in [key.id for key in read_jwks(json.dumps({"keys": listed}).encode())]
    else:
        with pytest.raises(ValueError, match="a JWK Set"):
            read_jwks(json.dumps({"keys": listed}).encode())


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps({"keys": value}).encode()))
def test_no_file_of_api_keys_breaks_the_reader(content: bytes) -> None:
    try:
        entries = read_api_keys(content)
    except ValueError:
        return
    assert all(len(name) == 32 and identity.subject for name, identity in entries.items())


@given(JSON)
def test_no_authorizer_breaks_the_reader(authorizer: Any) -> None:
    for context in (authorizer, {"jwt": {"claims": authorizer}}, {"lambda": authorizer}, {"claims": authorizer}):
        try:
            identity = Authorizer(Named()).identify({"aws.event": {"requestContext": {"authorizer": context}}})
        except Unauthenticated:
            continue
        assert identity is None or identity.subject


@given(
    st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40) | JSON.map(lambda v: json.dumps(v).encode())
)
def test_no_header_of_a_proxy_breaks_the_reader(subject: bytes, roles: bytes, given_: bytes) -> None:
    sent = {b"x-s": subject, b"x-r": roles, b"x-c": given_}
    proxy = Proxy(Headers(*sent), Peers("10.0.0.1"), Named())
    try:
        identity = proxy.identify(sent, {"headers": list(sent.items()), "client": ("10.0.0.1", 1)})
    except Unauthenticated:
        return
    assert identity is not None
    assert identity.subject == subject.decode().strip()
