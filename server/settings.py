"""The server's settings: environment variables, overridden by the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from resolvers.limits import DocumentLimits
from server.keys import read_keys
from server.peers import read_networks
from server.rates import read_rate

PREFIX = "TABLEGRAPH_"
READ_ELSEWHERE = ("TABLEGRAPH_ENGINE", "TABLEGRAPH_URL", "TABLEGRAPH_FRIEND")
"""Variables with our prefix that are no settings: the local engine's binary, and what the tests of pages are told."""

Reader = Callable[[str], Any]
"""Turns a setting's text into its value. Raises ValueError with the expectation as its message."""


class SettingsError(ValueError):
    """One or more settings cannot be used; the message has a line for each."""


def _text(text: str) -> str:
    return text


def _whole(least: int, most: int | None = None) -> Reader:
    expected = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError(expected) from None
        if number < least or (most is not None and number > most):
            raise ValueError(expected)
        return number

    return read


def _seconds(*, zero: bool) -> Reader:
    expected = f"a number of seconds, {'0 or more' if zero else 'more than 0'}"

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise ValueError(expected) from None
        if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
            raise ValueError(expected)
        return number

    return read


def _choice(*choices: str) -> Reader:
    def read(text: str) -> str:
        if text.lower() in choices:
            return text.lower()
        raise ValueError(f"one of {', '.join(choices)}")

    return read


def _flag(text: str) -> bool:
    known = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    try:
        return known[text.lower()]
    except KeyError:
        raise ValueError("true or false") from None


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("a URL like http://localhost:8000")
    return text


def _broker(text: str) -> str:
    is_url = urlsplit(text).scheme in ("redis", "rediss", "unix")
    if not is_url and text.lower() != "memory":
        raise ValueError("memory, or the URL of a Valkey or Redis server like redis://localhost:6379/0")
    if is_url and find_spec("redis") is None:
        raise ValueError("memory, for the client of Redis is not installed: pip install 'tablegraph[broker]'")
    return text if is_url else "memory"


def listed(text: str) -> list[str]:
    """Split a setting that has commas between its values."""
    return [each.strip() for each in text.split(",") if each.strip()]


def _origins(text: str) -> str:
    for origin in text.split(","):
        scheme, separator, host = origin.strip().partition("://")
        if origin.strip() not in ("*", "null") and not (
            scheme and separator and host and not set(host) & set("/?#@* ")
        ):
            raise ValueError("origins like https://app.example.com or http://localhost:5173, or *")
    return text


def _search_place(text: str) -> str:
    if "://" not in text:
        return text
    try:
        if text.startswith("opensearch+"):
            _url(text.removeprefix("opensearch+"))
            return text
    except ValueError:
        pass
    raise ValueError("a file, or a URL like opensearch+https://localhost:9200/prefix")


def _algorithms(text: str) -> str:
    # Of those with a shared secret there is one, for which --jwt-secret has to be said.
    known = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
    if not {each.strip() for each in text.split(",")} <= set(known):
        raise ValueError(f"some of {', '.join(known)}, with commas between them")
    return text


def _traces(text: str) -> str:
    choice: str = _choice("off", "on", "documents")(text)
    if choice != "off" and find_spec("opentelemetry") is None:
        raise ValueError("off, for OpenTelemetry is not installed: pip install 'tablegraph[telemetry]'")
    return choice


def _metrics_port(text: str) -> int:
    port: int = _whole(0, 65535)(text)
    if find_spec("prometheus_client") is None:
        raise ValueError("none, for Prometheus' client is not installed: pip install 'tablegraph[telemetry]'")
    return port


def _rate(text: str) -> str:
    read_rate(text)
    return text


def _networks(text: str) -> str:
    read_networks(text)
    return text


def _signing_keys(text: str) -> str:
    read_keys(text)
    return text


def _about(doc: str, read: Reader = _text, *, in_production: Any = None, secret: bool = False) -> Mapping[str, Any]:
    """Tell of a setting: what it is in production unless it is set, and whether no message may show it."""
    return {"doc": doc, "read": read, "in_production": in_production, "secret": secret}


def _of_a_document(limit: str) -> Any:
    (one,) = [each for each in fields(DocumentLimits) if each.name == limit]
    return field(default=one.default, metadata=_about(one.metadata["doc"], _whole(1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set. `max_page_size` is TABLEGRAPH_MAX_PAGE_SIZE and `--max-page-size`; empty is unset.

    Credentials, region and profile are not here: they come from where AWS's own tools take them (AWS_REGION,
    AWS_PROFILE, AWS_ENDPOINT_URL_DYNAMODB, …).
    """

    schema: Path = field(default=Path("schema.graphql"), metadata=_about("The SDL file that holds the model.", Path))
    table: str | None = field(default=None, metadata=_about("Name of the table, in place of the one in the model."))
    endpoint_url: str | None = field(
        default=None, metadata=_about("URL of DynamoDB, in place of the region's own; for local engines.", _url)
    )
    blobs: Path | None = field(
        default=None,
        metadata=_about("Folder that holds the buckets of `@blob`, in place of S3; for local use.", Path),
    )
    search: str = field(
        default=".tablegraph/search.db",
        metadata=_about(
            "Where the index of `@search` lies: a file, or an OpenSearch as opensearch+https://host:9200/prefix.",
            _search_place,
        ),
    )
    title: str = field(default="", metadata=_about("Name shown by GraphiQL, which keeps its tabs apart by it."))
    host: str = field(
        default="127.0.0.1", metadata=_about("Address to listen on; 0.0.0.0 is every IPv4 address of the machine.")
    )
    port: int = field(default=8000, metadata=_about("TCP port to listen on; 0 takes any free one.", _whole(0, 65535)))
    workers: int = field(
        default=1, metadata=_about("Processes that serve the port; one that dies is replaced.", _whole(1, 256))
    )
    production: bool = field(
        default=False,
        metadata=_about(
            "Whether the server is open to others: safe defaults, no start without what that needs, and answers that "
            "tell nothing of the table.",
            _flag,
        ),
    )
    graphiql: bool = field(
        default=True,
        metadata=_about(
            "Whether browsers get pages: GraphiQL at /graphql, and /graph and /schema.", _flag, in_production=False
        ),
    )
    introspection: bool = field(
        default=True,
        metadata=_about("Whether clients may read the schema by introspection.", _flag, in_production=False),
    )
    signing_keys: str = field(
        default="",
        repr=False,
        metadata=_about(
            "Keys that sign cursors and ids, with commas between them, or @FILE with one on each line: the first "
            "signs, all verify.",
            _signing_keys,
            secret=True,
        ),
    )
    hide_forbidden: bool = field(
        default=False,
        metadata=_about(
            "Whether types and fields that a caller may never ask for (`@auth`) are missing from the schema as that "
            "caller sees it, in errors as well; they are refused anyway.",
            _flag,
        ),
    )
    mutations: bool = field(
        default=True, metadata=_about("Whether the API writes; without, it has no mutations at all.", _flag)
    )
    federation: Literal["off", "on", "without-node"] = field(
        default="off",
        metadata=_about(
            "Whether the API is a subgraph of Apollo Federation 2, and then `on` or `without-node`: one subgraph of a "
            "supergraph can have `node` and `nodes`.",
            _choice("off", "on", "without-node"),
        ),
    )
    jwt_keys: str | None = field(
        default=None,
        metadata=_about(
            "The issuer's public keys, by which tokens are checked: URL or file of a JWK Set, or a PEM file."
        ),
    )
    jwt_secret: Path | None = field(
        default=None, metadata=_about("File with the secret of HS256, where issuer and server share one.", Path)
    )
    jwt_issuer: str = field(default="", metadata=_about("The `iss` that tokens must have."))
    jwt_audience: str = field(
        default="",
        metadata=_about("The `aud` (or `client_id`) of which tokens must have one, with commas between them."),
    )
    jwt_algorithms: str = field(
        default="RS256,ES256,EdDSA",
        metadata=_about("Algorithms that tokens may be signed by, with commas between them.", _algorithms),
    )
    jwt_leeway_secs: float = field(
        default=30.0, metadata=_about("How far clocks may differ, in seconds.", _seconds(zero=True))
    )
    subject_claim: str = field(default="sub", metadata=_about("The claim that says who asks."))
    roles_claim: str = field(
        default="roles",
        metadata=_about("The claim with their roles, like scope, cognito:groups or realm_access.roles."),
    )
    api_keys: Path | None = field(
        default=None, metadata=_about("File of API keys, by their hashes, as `tablegraph key` prints them.", Path)
    )
    proxy_headers: str = field(
        default="",
        metadata=_about("Headers by which a proxy says who asks, like subject=X-Auth-User,roles=X-Auth-Roles."),
    )
    trusted_proxies: str = field(
        default="",
        metadata=_about(
            "Addresses or networks (CIDR) of the proxies whose headers are believed, X-Forwarded-For and -Proto too, "
            "with commas between them.",
            _networks,
        ),
    )
    aws_authorizer: bool = field(
        default=False,
        metadata=_about("Whether AWS Lambda takes who asks from the authorizer of API Gateway or its URL.", _flag),
    )
    anonymous: bool = field(
        default=False,
        metadata=_about("Whether requests without credentials are served where any of these says who asks.", _flag),
    )
    max_body_bytes: int = field(
        default=1_000_000, metadata=_about("Largest request body, in bytes; a larger one gets 413.", _whole(1))
    )
    request_timeout_secs: float = field(
        default=30.0,
        metadata=_about("Time for a request to arrive, in seconds; a slower one gets 408.", _seconds(zero=False)),
    )
    max_tokens: int = _of_a_document("tokens")
    max_definitions: int = _of_a_document("definitions")
    max_depth: int = _of_a_document("depth")
    max_root_fields: int = _of_a_document("root_fields")
    max_selections: int = _of_a_document("selections")
    max_aliases: int = _of_a_document("aliases")
    max_directives: int = _of_a_document("directives")
    max_merges: int = _of_a_document("merges")
    trusted_documents: Path | None = field(
        default=None,
        metadata=_about(
            "File or folder of documents that clients may name: what Relay's compiler, GraphQL Code Generator or "
            "Apollo's manifest generator writes, or .graphql files.",
            Path,
        ),
    )
    only_trusted: bool = field(
        default=False, metadata=_about("Whether trusted documents alone are taken, and no other.", _flag)
    )
    max_persisted_bytes: int = field(
        default=10_000_000,
        metadata=_about(
            "Most bytes of documents that are kept for clients which name them by their hash (APQ); 0: none are.",
            _whole(0),
        ),
    )
    compress: bool = field(
        default=True,
        metadata=_about("Whether answers above 1 KiB are compressed (gzip) for clients that accept it.", _flag),
    )
    cors_origins: str = field(
        default="",
        metadata=_about(
            "Origins of other sites whose pages may use the API, such as https://app.example.com, with commas "
            "between them; * is any, without cookies.",
            _origins,
        ),
    )
    cors_credentials: bool = field(
        default=False,
        metadata=_about("Whether the pages of those sites may send cookies and the like along.", _flag),
    )
    rate_limit: str = field(
        default="",
        metadata=_about(
            "Operations that one client may ask for in so many seconds, such as 600/60; 429 beyond. Empty: any.", _rate
        ),
    )
    max_socket_operations: int = field(
        default=100, metadata=_about("Most operations that one WebSocket may have under way.", _whole(1))
    )
    max_operations: int = field(
        default=32,
        metadata=_about(
            "Most operations executed at once in this process, fewer when it is busy; as many wait, others get 503.",
            _whole(1),
        ),
    )
    max_batch: int = field(default=10, metadata=_about("Most operations in one request, as a JSON array.", _whole(1)))
    max_cost: int = field(
        default=10_000,
        metadata=_about(
            "Most read units of one operation: estimated before it reads anything, and counted while it does.",
            _whole(1),
        ),
    )
    default_page_size: int = field(
        default=50, metadata=_about("Edges in a page for which neither `first` nor `last` is given.", _whole(1))
    )
    max_page_size: int = field(default=1000, metadata=_about("Most edges that one page may ask for.", _whole(1)))
    read_budget: int = field(
        default=5000, metadata=_about("Most items evaluated for one connection page under a filter.", _whole(1))
    )
    max_cascade: int = field(
        default=1000, metadata=_about("Most items that go along with one mutation besides its own.", _whole(1))
    )
    operation_timeout_secs: float = field(
        default=30.0, metadata=_about("Time for one operation, in seconds.", _seconds(zero=False))
    )
    executor: Literal["plan", "reference"] = field(
        default="plan",
        metadata=_about(
            "How queries are executed: plan (compiled once, then run) or reference (Strawberry's ordinary execution).",
            _choice("plan", "reference"),
        ),
    )
    transport: Literal["wire", "boto3"] = field(
        default="wire",
        metadata=_about(
            "How reads and transactions are sent: wire (connections of our own) or boto3 (in threads).",
            _choice("wire", "boto3"),
        ),
    )
    max_in_flight: int = field(
        default=128, metadata=_about("Most DynamoDB requests under way at once in this process.", _whole(1))
    )
    batch_linger_secs: float = field(
        default=0.015,
        metadata=_about("Longest time that a batch waits for more keys, in seconds.", _seconds(zero=True)),
    )
    stream: Literal["auto", "on", "off"] = field(
        default="auto",
        metadata=_about(
            "When the tables' streams are read: auto (while anybody needs it), on (at all times) or off.",
            _choice("auto", "on", "off"),
        ),
    )
    stream_poll_ms: int = field(
        default=200,
        metadata=_about(
            "Time between two reads of a shard of a stream, in milliseconds; DynamoDB takes five a second.", _whole(1)
        ),
    )
    broker: str = field(
        default="memory",
        metadata=_about(
            "What changes come by: memory, for one process, or a Valkey or Redis server that several share.",
            _broker,
        ),
    )
    cost: Literal["header", "always", "never"] = field(
        default="header",
        metadata=_about(
            "When answers carry `extensions.cost`: header (the request has `Tablegraph-Cost: 1`), always or never.",
            _choice("header", "always", "never"),
            in_production="never",
        ),
    )
    log_format: Literal["auto", "json", "text"] = field(
        default="auto",
        metadata=_about(
            "Form of the log: json (one object a line), text, or auto (text when stderr is a terminal, else json).",
            _choice("auto", "json", "text"),
        ),
    )
    log_level: Literal["debug", "info", "warning", "error"] = field(
        default="info",
        metadata=_about(
            "Least level that is logged: debug, info, warning or error.", _choice("debug", "info", "warning", "error")
        ),
    )
    slow_ms: int | None = field(
        default=None,
        metadata=_about("Time from which on an operation is logged as slow, in milliseconds.", _whole(1)),
    )
    expensive_units: int | None = field(
        default=None,
        metadata=_about("Capacity units from which on an operation is logged as expensive.", _whole(1)),
    )
    traces: Literal["off", "on", "documents"] = field(
        default="off",
        metadata=_about(
            "Whether traces are sent, as OTEL_* variables say: off, on, or documents, with the document's text.",
            _traces,
        ),
    )
    metrics_port: int | None = field(
        default=None,
        metadata=_about("TCP port on which Prometheus reads /metrics; 0 takes any free one.", _metrics_port),
    )
    metrics_host: str = field(
        default="127.0.0.1", metadata=_about("Address of that port; what it tells is not for the public.")
    )
    graceful_shutdown_secs: int = field(
        default=10, metadata=_about("Time for running requests to finish after SIGTERM, in whole seconds.", _whole(0))
    )

    @property
    def is_observed(self) -> bool:
        """Say whether anything but the log tells of operations."""
        limits = self.metrics_port, self.slow_ms, self.expensive_units
        return self.traces != "off" or any([limit is not None for limit in limits])

    @property
    def document_limits(self) -> DocumentLimits:
        """Give what a document may have."""
        return DocumentLimits(**{each.name: getattr(self, f"max_{each.name}") for each in fields(DocumentLimits)})


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as documentation and the command line need it."""

    name: str
    default: Any
    doc: str

    @property
    def variable(self) -> str:
        """Name the environment variable."""
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """Name the command-line option."""
        return "--" + self.name.replace("_", "-")


def all_settings() -> tuple[Setting, ...]:
    """List the settings in the order of the class."""
    return tuple(Setting(each.name, each.default, _documentation(each)) for each in fields(Settings))


def _documentation(one: Field[Any]) -> str:
    in_production = one.metadata["in_production"]
    doc: str = one.metadata["doc"]
    return doc if in_production is None else f"{doc} With --production {str(in_production).lower()}, unless set."


def load_settings(environ: Mapping[str, str], command_line: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings: a command-line value wins over the environment, which wins over the default.

    `command_line` maps setting names to texts, or to None for an option that was not given; its other keys, which
    are the command's own, are left alone.

    Raises: SettingsError naming every setting that is unknown or has a value that cannot be used.
    """
    problems = _unknown(environ)
    values: dict[str, Any] = {}
    for each in fields(Settings):
        found = _find(each, environ, command_line or {})
        if found is None:
            continue
        source, text = found
        try:
            values[each.name] = each.metadata["read"](text)
        except ValueError as expected:
            problems.append(f"{source}: expected {expected}" + ("" if each.metadata["secret"] else f", got {text!r}"))
    if values.get("production"):
        values = {each.name: each.metadata["in_production"] for each in fields(Settings)} | values
        values = {name: value for name, value in values.items() if value is not None}
    settings = Settings(**values)
    if not problems and settings.default_page_size > settings.max_page_size:
        problems.append(_page_size_problem(settings))
    if not problems and settings.only_trusted and settings.trusted_documents is None:
        problems.append(
            f"{PREFIX}ONLY_TRUSTED: expected the documents that are trusted, got none: say where they are with "
            f"{PREFIX}TRUSTED_DOCUMENTS"
        )
    if settings.cors_credentials and "*" in listed(settings.cors_origins):
        problems.append(_credentials_problem())
    if problems:
        raise SettingsError("\n".join(problems))
    return settings


def _find(each: Field[Any], environ: Mapping[str, str], command_line: Mapping[str, Any]) -> tuple[str, str] | None:
    setting = Setting(each.name, each.default, "")
    given = command_line.get(each.name)
    if given is not None:
        return setting.flag, given
    text = environ.get(setting.variable, "")
    return (setting.variable, text) if text else None


def _unknown(environ: Mapping[str, str]) -> list[str]:
    known = [setting.variable for setting in all_settings()]
    return [
        f"{name}: there is no such setting; {_cure(name, known)}"
        for name in sorted(environ)
        if name.startswith(PREFIX) and name not in known and name not in READ_ELSEWHERE
    ]


def _cure(name: str, known: list[str]) -> str:
    # Compared without the prefix: sharing it would make any two names look near.
    near = get_close_matches(name.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in known], n=1)
    return f"did you mean {PREFIX}{near[0]}?" if near else f"the known ones are {', '.join(known)}"


def _credentials_problem() -> str:
    return (
        f"{PREFIX}CORS_CREDENTIALS: expected false where {PREFIX}CORS_ORIGINS has *, for any site could then act for "
        "its visitors: name the sites"
    )


def _page_size_problem(settings: Settings) -> str:
    return (
        f"{PREFIX}DEFAULT_PAGE_SIZE: expected at most the maximal page size, {settings.max_page_size} "
        f"({PREFIX}MAX_PAGE_SIZE), got {settings.default_page_size}"
    )
