"""Which pages may open WebSockets."""

import pytest

from server.origins import Origins
from server.settings import Settings, SettingsError, load_settings
from server.view import Refusal

APP = "https://app.example"


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        pytest.param({"host": "api.example"}, "", id="no-browser"),
        pytest.param({"origin": "https://api.example", "host": "api.example"}, "", id="same"),
        pytest.param({"origin": "https://API.example", "host": "api.EXAMPLE"}, "", id="same-in-other-case"),
        pytest.param({"origin": "https://api.example", "host": "api.example:443"}, "", id="default-port"),
        pytest.param({"origin": "http://localhost:5173", "host": "localhost:5173"}, "", id="same-port"),
        pytest.param({"origin": "http://[::1]:8000", "host": "[::1]:8000"}, "", id="ipv6"),
        pytest.param(
            {"origin": APP, "host": "10.0.0.1:8000", "x-forwarded-host": "app.example, proxy"}, "", id="proxy"
        ),
        pytest.param({"origin": APP, "host": "api.example"}, f"https://x.example, {APP}", id="listed"),
        pytest.param({"origin": "null", "host": "api.example"}, "null", id="sandbox-listed"),
        pytest.param({"origin": APP, "host": "api.example"}, "*", id="any"),
    ],
)
def test_a_socket_may_be_opened(headers: dict[str, str], allowed: str) -> None:
    Origins(allowed).check_socket({name.encode(): value.encode() for name, value in headers.items()})


@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        pytest.param(APP, "api.example", "", id="another-site"),
        pytest.param(APP, "api.example", "http://app.example", id="another-scheme-than-listed"),
        pytest.param("http://localhost:5173", "localhost:8000", "", id="another-port"),
        pytest.param("https://api.example.evil.example", "api.example", "", id="begins-alike"),
        pytest.param("null", "api.example", "", id="sandbox"),
        pytest.param("null", "", "", id="no-host"),
        pytest.param("file://", "", "", id="file"),
    ],
)
def test_a_page_of_another_site_is_told_what_to_do(origin: str, host: str, allowed: str) -> None:
    with pytest.raises(Refusal, match="TABLEGRAPH_CORS_ORIGINS") as refused:
        Origins(allowed).check_socket({b"origin": origin.encode(), b"host": host.encode()})

    assert (refused.value.status, refused.value.code) == (403, "ORIGIN_NOT_ALLOWED")


@pytest.mark.parametrize("text", ["*", "null", "https://a.example", "http://localhost:5173, https://b.example:8443"])
def test_origins_are_set_as_browsers_name_them(text: str) -> None:
    assert load_settings({"TABLEGRAPH_CORS_ORIGINS": text}) == Settings(cors_origins=text)


@pytest.mark.parametrize("text", ["app.example", "https://a.example/", "https://", "*.example", "https://*.example"])
def test_what_no_browser_would_name_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="TABLEGRAPH_CORS_ORIGINS: expected origins like"):
        load_settings({"TABLEGRAPH_CORS_ORIGINS": text})
