"""Settings come from the environment and the command line, and a wrong one is refused by name."""

from dataclasses import FrozenInstanceError
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from resolvers.sdl import compile_model
from server import api, serving
from server.settings import Settings, SettingsError, all_settings, load_settings
from tests.conftest import BANANAS, way_to


def refusal(environ: dict[str, str], command_line: dict[str, str | None] | None = None) -> str:
    with pytest.raises(SettingsError) as refused:
        load_settings(environ, command_line)
    return str(refused.value)


def test_without_any_value_the_defaults_hold() -> None:
    settings = load_settings({"PATH": "/bin", "AWS_REGION": "eu-central-1"})

    assert settings == Settings()
    assert (settings.host, settings.port, settings.max_body_bytes) == ("127.0.0.1", 8000, 1_000_000)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        pytest.param("schema", "models/fleet.graphql", Path("models/fleet.graphql"), id="path"),
        pytest.param("table", "fleet", "fleet", id="text"),
        pytest.param("endpoint_url", "http://localhost:8001", "http://localhost:8001", id="url"),
        pytest.param("port", "0", 0, id="port-0-is-any-free-one"),
        pytest.param("max_body_bytes", "2_000_000", 2_000_000, id="whole-number"),
        pytest.param("operation_timeout_secs", "2.5", 2.5, id="seconds"),
        pytest.param("batch_linger_secs", "0", 0.0, id="no-linger"),
        pytest.param("graphiql", "off", False, id="flag-off"),
        pytest.param("introspection", "True", True, id="flag-on"),
        pytest.param("compress", "no", False, id="uncompressed"),
        pytest.param("workers", "4", 4, id="workers"),
        pytest.param("cost", "ALWAYS", "always", id="choice-in-any-case"),
        pytest.param("transport", "boto3", "boto3", id="transport"),
        pytest.param("executor", "Reference", "reference", id="executor"),
    ],
)
def test_a_value_is_read_alike_from_both_sources(name: str, text: str, value: Any) -> None:
    from_environment = load_settings({f"TABLEGRAPH_{name.upper()}": text})
    from_command_line = load_settings({}, {name: text})

    assert getattr(from_environment, name) == value
    assert from_command_line == from_environment


def test_the_command_line_wins_over_the_environment() -> None:
    environ = {"TABLEGRAPH_PORT": "9000", "TABLEGRAPH_HOST": "0.0.0.0"}  # noqa: S104 - nothing listens here

    settings = load_settings(environ, {"port": "9001", "host": None})

    assert (settings.host, settings.port) == ("0.0.0.0", 9001)  # noqa: S104


def test_an_empty_variable_is_an_unset_one() -> None:
    assert load_settings({"TABLEGRAPH_TABLE": "", "TABLEGRAPH_PORT": ""}) == Settings()


def test_options_that_are_no_settings_are_left_to_the_command() -> None:
    assert load_settings({}, {"command": "serve", "table": "fleet"}) == Settings(table="fleet")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        pytest.param("port", "http", "a whole number from 0 to 65535", id="no-number"),
        pytest.param("port", "65536", "a whole number from 0 to 65535", id="port-too-high"),
        pytest.param("workers", "0", "a whole number from 1 to 256", id="no-worker"),
        pytest.param("max_in_flight", "0", "a whole number of at least 1", id="none-in-flight"),
        pytest.param("read_budget", "1.5", "a whole number of at least 1", id="fraction"),
        pytest.param("operation_timeout_secs", "0", "a number of seconds, more than 0", id="no-time"),
        pytest.param("operation_timeout_secs", "inf", "a number of seconds, more than 0", id="no-end"),
        pytest.param("batch_linger_secs", "-1", "a number of seconds, 0 or more", id="negative"),
        pytest.param("batch_linger_secs", "15ms", "a number of seconds, 0 or more", id="with-unit"),
        pytest.param("graphiql", "maybe", "true or false", id="no-flag"),
        pytest.param("cost", "sometimes", "one of header, always, never", id="no-choice"),
        pytest.param("executor", "plans", "one of plan, reference", id="no-executor"),
        pytest.param("endpoint_url", "localhost:8001", "a URL like http://localhost:8000", id="no-scheme"),
        pytest.param("endpoint_url", "http://", "a URL like http://localhost:8000", id="no-host"),
        pytest.param("endpoint_url", "http://localhost:port", "a URL like http://localhost:8000", id="url-port"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_the_value_and_what_is_expected(
    name: str, text: str, expected: str
) -> None:
    variable, flag = f"TABLEGRAPH_{name.upper()}", f"--{name.replace('_', '-')}"

    assert refusal({variable: text}) == f"{variable}: expected {expected}, got {text!r}"
    assert refusal({}, {name: text}) == f"{flag}: expected {expected}, got {text!r}"


def test_a_default_page_larger_than_the_largest_is_refused() -> None:
    message = refusal({"TABLEGRAPH_MAX_PAGE_SIZE": "20"})

    assert message == (
        "TABLEGRAPH_DEFAULT_PAGE_SIZE: expected at most the maximal page size, 20 (TABLEGRAPH_MAX_PAGE_SIZE), got 50"
    )


def test_an_unknown_variable_is_refused_with_a_near_name() -> None:
    message = refusal({"TABLEGRAPH_PAGE_SIZE_MAX": "10", "TABLEGRAPH_PROT": "8000"})

    assert "TABLEGRAPH_PROT: there is no such setting; did you mean TABLEGRAPH_PORT?" in message.splitlines()
    assert message.splitlines()[0].startswith("TABLEGRAPH_PAGE_SIZE_MAX: there is no such setting; did you mean ")


def test_an_unknown_variable_near_to_none_is_refused_with_all_names() -> None:
    message = refusal({"TABLEGRAPH_XYZZY": "1"})

    assert all(setting.variable in message for setting in all_settings())


def test_variables_that_other_parts_read_are_let_pass() -> None:
    environ = {"TABLEGRAPH_ENGINE": "/opt/dynoxide", "TABLEGRAPH_URL": "http://127.0.0.1:8000"}

    assert load_settings(environ) == Settings()


def test_all_mistakes_are_reported_at_once() -> None:
    message = refusal({"TABLEGRAPH_PORT": "x", "TABLEGRAPH_COST": "y", "TABLEGRAPH_PROT": "z"})

    assert len(message.splitlines()) == 3


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().port = 1  # type: ignore[misc]


def test_every_setting_says_what_it_is_and_in_which_unit() -> None:
    units = {"_secs": "seconds", "_bytes": "bytes", "_ms": "milliseconds"}

    assert [setting.name for setting in all_settings() if not setting.doc.endswith(".")] == []
    for suffix, unit in units.items():
        assert [s.name for s in all_settings() if s.name.endswith(suffix) and unit not in s.doc] == []


@pytest.mark.parametrize("executor", ["plan", "reference"])
def test_the_api_has_the_executor_that_is_set(executor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(api, "Api", lambda graph, **options: made.append(options["executor"]))
    monkeypatch.setattr(serving, "build_app", lambda *_, **__: None)
    monkeypatch.setattr(serving, "serve", lambda *_: 0)

    model, opened = compile_model(BANANAS.read_text()), partial(way_to, "http://127.0.0.1:1")
    code = serving.run(model, opened(), opened, Settings(executor=executor), [])

    assert (code, made) == (0, [executor])
