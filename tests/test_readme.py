"""The README does not lie: its query, its tables and its map are compared with the code."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from graph import errors
from graph.doctor.findings import Code as Diagnosis
from graph.identity import Identity
from graph.maintenance.findings import NEVER_MENDED, Code
from graph.maintenance.walk import Walk
from graph.patterns import access_patterns
from graph.requests import Item
from graph.search.rebuild import rebuild
from graph.search.sqlite import SqliteIndex
from resolvers.limits import DocumentLimits
from resolvers.operation import Request
from resolvers.responses import ERROR_CODES
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.identity.api_keys import read_api_keys
from server.identity.configured import authenticator_of
from server.identity.refusals import REASONS
from server.settings import all_settings, load_settings
from server.view import REFUSAL_CODES
from tests.attacks import ATTACKS
from tests.conftest import BANANAS, ROOT, Serve, Served, banana_items
from tests.following import follow, soon
from tests.test_incremental import ask

README = ROOT / "README.md"
EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if (path / "schema.graphql").exists())

LIMITS = {
    "max_body_bytes": ("bodyBytes", "BODY_TOO_LARGE"),
    "max_batch": ("batch", "LIMIT_EXCEEDED"),
    "max_page_size": ("pageSize", "BAD_PAGE"),
    "read_budget": ("readBudget", "READ_BUDGET"),
    "max_cost": ("cost", "LIMIT_EXCEEDED"),
    "operation_timeout_secs": ("time", "DEADLINE_EXCEEDED"),
    "max_operations": ("operations", "OVERLOADED"),
    "max_socket_operations": ("socketOperations", "TOO_MANY_OPERATIONS"),
}
"""The limits that are not a document's: what errors call each, and with which code."""


def blocks(language: str) -> list[str]:
    """The code blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


def section(name: str, path: Path = README) -> str:
    """What stands between a pair of marks."""
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", path.read_text(), re.DOTALL)
    assert found is not None, f"{path} has no part marked {name!r}"
    return found[1].strip()


def expected_tables() -> dict[str, str]:
    """The generated parts of the README."""
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.GraphError)]
    codes = {
        kind.code: (kind.__doc__ or "").split("\n")[0]
        for kind in classes
        if "code" in vars(kind) and kind.code not in ("INTERNAL", "STORE_ERROR")
    }
    codes |= {**ERROR_CODES, **REFUSAL_CODES}
    return {
        "access patterns": pattern_table(BANANAS),
        "errors": _rows(("code", "when"), [(f"`{code}`", text) for code, text in codes.items()]),
        "settings": _rows(
            ("flag", "variable", "default", "what"),
            [(f"`{one.flag}`", f"`{one.variable}`", f"`{one.default}`", one.doc) for one in all_settings()],
        ),
        "limits": _rows(
            ("`limit`", "most", "setting", "code", "what"),
            [
                *(
                    (
                        f"`{one.metadata['name']}`",
                        f"{one.default:,}",
                        f"`--max-{one.name.replace('_', '-')}`",
                        "`LIMIT_EXCEEDED`",
                        one.metadata["doc"],
                    )
                    for one in fields(DocumentLimits)
                ),
                *(
                    (
                        f"`{LIMITS[one.name][0]}`",
                        f"{one.default:,}",
                        f"`{one.flag}`",
                        f"`{LIMITS[one.name][1]}`",
                        one.doc,
                    )
                    for one in all_settings()
                    if one.name in LIMITS
                ),
            ],
        ),
        "reasons": _rows(
            ("`reason`", "what the caller is told"), [(f"`{name}`", text) for name, text in REASONS.items()]
        ),
        "doctor": _rows(
            ("code", "how bad", "why it matters"),
            [(f"`{code.name}`", code.severity.name.lower(), code.why) for code in Diagnosis],
        ),
        "findings": _rows(
            ("code", "what is wrong", "`repair`"),
            [(f"`{code.name}`", code.value, _repair(code)) for code in Code],
        ),
    }


def _repair(code: Code) -> str:
    if code is Code.DANGLING:
        return "deletes the edge, with `--delete-dangling`"
    return "leaves it" if code in NEVER_MENDED else "mends it"


def pattern_table(schema: Path) -> str:
    """The table of a model's access patterns."""
    return _rows(
        ("field", "requests", "index", "key condition", "then, if the nodes are asked for"),
        [
            (f"`{entry.field}`", entry.requests, entry.index, f"`{entry.key_condition}`", entry.then)
            for entry in access_patterns(compile_model(schema.read_text()))
        ],
    )


def _rows(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows)])


@pytest.mark.parametrize("name", ["access patterns", "errors", "settings", "limits", "reasons", "findings", "doctor"])
def test_generated_tables_are_fresh(name: str, request: pytest.FixtureRequest) -> None:
    wanted = expected_tables()[name]
    if request.config.getoption("--update-golden"):
        _write(name, wanted)

    assert section(name) == wanted, "run `make golden`"


@pytest.mark.parametrize("example", EXAMPLES)
def test_access_patterns_of_an_example_are_fresh(example: str, request: pytest.FixtureRequest) -> None:
    folder = ROOT / "examples" / example
    wanted = pattern_table(folder / "schema.graphql")
    if request.config.getoption("--update-golden"):
        _write("access patterns", wanted, folder / "README.md")

    assert section("access patterns", folder / "README.md") == wanted, "run `make golden`"


def test_the_table_of_attacks_is_fresh(request: pytest.FixtureRequest) -> None:
    path = ROOT / "docs/credentials.md"
    wanted = _rows(("what is sent", "`reason`"), [(attack.what, f"`{attack.reason}`") for attack in ATTACKS])
    if request.config.getoption("--update-golden"):
        _write("attacks", wanted, path)

    assert section("attacks", path) == wanted, "run `make golden`"


def test_the_identity_shown_is_taken(tmp_path: Path) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(next(block for block in blocks("toml") if "[[keys]]" in block))
    command = next(block for block in blocks("sh") if "--jwt-keys" in block).replace("\\\n", "")
    words = command.replace("/etc/tablegraph/keys.toml", str(keys)).split()[2:]
    flags = {
        flag.removeprefix("--").replace("-", "_"): value for flag, value in zip(words[::2], words[1::2], strict=True)
    }

    authenticator = authenticator_of(load_settings({}, flags))

    assert authenticator.tokens is not None
    assert authenticator.api_keys is not None
    assert [identity.subject for identity in read_api_keys(keys.read_bytes()).values()] == ["nightly-export"]


def test_every_example_has_a_readme_that_says_how_to_run_it() -> None:
    for example in EXAMPLES:
        command = "make run\n" if example == "bananas" else f"make run EXAMPLE={example}\n"

        assert command in (ROOT / "examples" / example / "README.md").read_text()


def _write(name: str, text: str, path: Path = README) -> None:
    pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
    new = re.sub(pattern, lambda found: f"{found[1]}{text}\n{found[2]}", path.read_text(), flags=re.DOTALL)
    path.write_text(new)


async def test_the_first_query_causes_the_requests_beside_it(bananas: Served) -> None:
    query, wanted = blocks("graphql")[0], json.loads(blocks("json")[0])

    await bananas.data(query)

    sent = json.loads(json.dumps(bananas.sent).replace(bananas.table, "banana-delivery"))
    assert sent == wanted


async def test_every_query_is_answered(bananas: Served) -> None:
    queries = [block for block in blocks("graphql") if block.startswith("{")]

    for query in queries:
        assert await bananas.data(query)
    assert len(queries) >= 2


async def test_the_search_shown_finds(serve: Serve, tmp_path: Path) -> None:
    model = next(block for block in blocks("graphql") if "@search" in block)
    query = next(block for block in blocks("graphql") if block.startswith("query Search"))
    offers, days = {"L": [{"S": "Coffee"}]}, {"L": [{"S": "SUNDAY"}]}
    store: Item = {"PK": {"S": "STORE#1"}, "storeName": {"S": "Melbourne"}, "offers": offers, "openOn": days}
    served = await serve(model, [store], search=SqliteIndex(tmp_path / "search.db"))
    await rebuild(Walk(served.graph, 1))

    found = (await served.data(query))["searchStores"]

    assert [edge["node"] for edge in found["edges"]] == [{"storeName": "Melbourne"}]
    assert [operation for operation, _ in served.sent] == ["GetItem"]


async def test_the_parts_shown_are_those_that_come(bananas: Served) -> None:
    pattern = r"## Large answers in parts.*?```sh\n(.*?)```.*?```\n(.*?)```"
    shown = re.search(pattern, README.read_text(), re.DOTALL)
    assert shown is not None
    body = re.search(r"-d '(.*?)'", shown[1])
    assert body is not None

    answer = await ask(bananas, json.loads(body[1])["query"])

    assert answer.text.replace("\r\n", "\n").strip() == shown[2].strip()


async def test_every_mutation_does_what_is_said_beside_it(serve: Serve) -> None:
    served = await serve(BANANAS.read_text(), banana_items(0))
    create, change = (block for block in blocks("graphql") if block.startswith("mutation"))

    assert await served.data(create)
    written = [sent["TransactItems"] for operation, sent in served.sent if operation == "TransactWriteItems"]
    assert [sorted(next(iter(action)) for action in actions) for actions in written] == [
        ["ConditionCheck", *["Put"] * 4]
    ]
    assert served.sent[0][0] == "TransactWriteItems", "nothing is read before"
    assert (await served.data(change))["updateBox"]["box"] == {"weightInKg": 22.06, "pallet": {"number": "B021002"}}


async def test_what_is_said_of_rights_is_so(serve: Serve) -> None:
    served = await serve(next(block for block in blocks("graphql") if "@auth" in block))
    create = next(block for block in blocks("graphql") if block.startswith("# as "))
    claims = json.loads(create.splitlines()[0].removeprefix("# as "))

    answer = await served.api.execute(Request(create, identity=Identity(claims["sub"], claims=claims)))

    shown = {"org": "acme", "notes": {"nodes": [{"author": "ann"}]}}
    assert answer.body == {"data": {"createProject": {"project": shown}}}


async def test_the_event_shown_is_the_one_that_comes(serve: Serve, engine: str) -> None:
    (query,) = (block for block in blocks("graphql") if block.startswith("subscription"))
    bananas = await follow(await serve(BANANAS.read_text(), banana_items(0)), engine)
    events = await bananas.open(query)

    await bananas.write(
        'mutation { createPallet(input: {number: "P1", origin: "FR", container: {container: {number: "009998"}, '
        'linkedDatetime: "2026-01-01T00:00:00Z", linkedBy: "me"}}) { pallet { id } } }'
    )

    assert json.loads(next(block for block in blocks("json") if "containerPalletsChanged" in block)) == await soon(
        events
    )


async def test_the_limit_shown_is_the_one_that_is_told(bananas: Served) -> None:
    api = Api(bananas.graph, limits=DocumentLimits(depth=4))

    response = await api.execute(Request(blocks("graphql")[0]))

    assert json.loads(next(block for block in blocks("json") if "LIMIT_EXCEEDED" in block)) == response.body


def test_the_model_shown_is_the_demos() -> None:
    shown = next(block for block in blocks("graphql") if block.startswith("extend schema"))

    assert _bare(shown) == _bare(BANANAS.read_text())


async def test_copies_by_stream_are_asked_for_fresh(serve: Serve) -> None:
    model = next(block for block in blocks("graphql") if "copies: STREAM" in block)
    query = next(block for block in blocks("graphql") if "fresh: true" in block)
    served = await serve(model)
    await served.data(
        """mutation { createCustomer(input: { number: "1", name: "C", stores: [
          { store: { create: { number: "2", name: "S" } } } ] }) { __typename } }"""
    )

    await served.data('mutation { updateStore(key: { number: "2" }, set: { name: "T" }) { __typename } }')

    assert len(served.sent) == 1, "one item is written, and nothing is read"
    stores = (await served.data(query))["customer"]["stores"]["nodes"]
    assert stores == [{"number": "2", "name": "T"}]
    assert (await served.data(query.replace("(fresh: true)", "")))["customer"]["stores"]["nodes"][0]["name"] == "S"


def _bare(text: str) -> list[str]:
    """The lines that mean something: without comments and descriptions."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("#", '"'))]


def test_the_mistake_shown_is_the_one_reported() -> None:
    broken = BANANAS.read_text().replace("CONTAINER_{number}", "CONTAINER_{nmuber}")

    with pytest.raises(errors.ModelError) as refused:
        compile_model(broken)

    assert str(refused.value) in README.read_text()


def test_the_source_map_names_every_file_of_the_three_rooms() -> None:
    map_ = README.read_text().split("## Source map")[1]
    named = set(re.findall(r"`((?:graph|resolvers|server)/[\w/]*(?:\.py)?)`", map_))

    files = {
        str(path.relative_to(ROOT)) for room in ("graph", "resolvers", "server") for path in (ROOT / room).glob("*.py")
    }
    unnamed = {name for name in files if not name.endswith("__init__.py")} - named
    missing = {name for name in named if not (ROOT / name).exists()}

    assert missing == set()
    assert unnamed <= {"resolvers/scalars.py", "resolvers/operation.py", "resolvers/examples.py"}


def test_every_code_of_the_http_view_is_explained() -> None:
    source = "".join((ROOT / "server" / name).read_text() for name in ("view.py", "identity/refusals.py"))
    used = set(re.findall(r"(?:Refusal|__init__)\(\s*\d+,\s*\"([A-Z_]+)\"", source))

    assert used - {"INTERNAL", "LIMIT_EXCEEDED"} == set(REFUSAL_CODES)
