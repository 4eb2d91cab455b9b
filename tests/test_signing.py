"""Signatures: what we sign is signed as botocore signs it, whatever the headers, the body, the keys and the time."""

from __future__ import annotations

import datetime
from unittest import mock

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.wire.signing import Keys, Signer, signing_key

HOSTS = st.builds(
    lambda name, port: name if port is None else f"{name}:{port}",
    st.sampled_from(["dynamodb.eu-central-1.amazonaws.com", "localhost", "127.0.0.1", "[::1]", "a-b.example"]),
    # botocore leaves out the scheme's own port, and so does whoever makes a signer.
    st.none() | st.integers(1, 65535).filter(lambda port: port not in (80, 443)),
)
NAMES = st.from_regex(r"\Ax-amz-[a-z0-9-]{1,20}\Z").filter(
    lambda name: name not in ("x-amz-date", "x-amz-security-token", "x-amz-content-sha256")
)
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60)
HEADERS = st.dictionaries(NAMES | st.sampled_from(["content-type", "accept", "range"]), VALUES, max_size=6)
SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60)
MOMENTS = st.integers(0, 4_102_444_799).map(lambda seconds: datetime.datetime.fromtimestamp(seconds, datetime.UTC))


def by_botocore(
    signer: Signer, headers: dict[str, str], body: bytes, keys: Keys, moment: datetime.datetime
) -> dict[str, str]:
    """Sign as botocore does at that moment."""
    request = AWSRequest("POST", f"https://{signer.host}/", headers=headers, data=body)
    credentials = ReadOnlyCredentials(keys.access_key, keys.secret_key, keys.token)
    with mock.patch("botocore.auth.get_current_datetime", return_value=moment):
        SigV4Auth(credentials, signer.service, signer.region).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@settings(max_examples=2000, deadline=None)
@given(
    host=HOSTS,
    region=st.sampled_from(["eu-central-1", "us-east-1", "us-gov-west-1", "local"]),
    service=st.sampled_from(["dynamodb", "s3express", "sts"]),
    headers=HEADERS,
    body=st.binary(max_size=300),
    keys=st.builds(Keys, SECRETS, SECRETS, st.none() | SECRETS),
    moment=MOMENTS,
)
def test_requests_are_signed_as_botocore_signs_them(
    host: str, region: str, service: str, headers: dict[str, str], body: bytes, keys: Keys, moment: datetime.datetime
) -> None:
    signer = Signer(host, region, service)

    signing = signer.signing(headers, keys, int(moment.timestamp()))

    assert list(signing.headers)[-1] == "authorization"
    for content in (body, body + b"2", body):
        wanted = by_botocore(signer, headers, content, keys, moment)
        signed = signing.headers | {"authorization": signing.headers["authorization"] + signing.signature(content)}
        assert {**wanted, "host": host} == signed


def test_the_example_of_aws_has_its_signing_key() -> None:
    """Source: AWS, "Examples of how to derive a signing key for Signature Version 4"."""
    key = signing_key("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20120215", "us-east-1", "iam")

    assert key.hex() == "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d"


@pytest.mark.parametrize("change", ["secret", "day", "region", "service"])
def test_a_key_is_good_for_one_day_region_and_service(change: str) -> None:
    parts = {"secret": "s", "day": "20261120", "region": "eu-central-1", "service": "dynamodb"}
    other = {**parts, change: "other"}

    assert signing_key(*parts.values()) != signing_key(*other.values())
