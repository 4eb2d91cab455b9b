PORT ?= 8000
EXAMPLE ?= bananas
SCHEMA ?= schema.graphql
# The first Python that is new enough: python3 is often the system's older one.
PYTHON ?= $(firstword $(foreach python,python3 python3.11 python3.12 python3.13 python3.14,$(shell \
    $(python) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(python))))
export PIP_DISABLE_PIP_VERSION_CHECK := 1

VENV := .venv/.installed
ENGINE := server/engine/node_modules/.installed
IDE := server/ide/dist/index.html
PEERS := benchmarks/peers/node_modules/.installed
CLIENTS := tests/clients/node_modules/.installed
FRONTEND := examples/frontend/node_modules/.installed
COMPILE := .venv/uv/bin/uv pip compile -q pyproject.toml --universal --generate-hashes --no-emit-index-url --no-header

need_python = test -n "$(PYTHON)" || { echo "tablegraph needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python3" >&2; exit 1; }
need_node = command -v npm >/dev/null && test "$$(node -p 'process.versions.node.split(".")[0]')" -ge 20 || \
    { echo "tablegraph needs Node.js 20 or newer, with npm, on PATH: install it, then run make again" >&2; exit 1; }
need_chromium = command -v "$${CHROMIUM:-chromium}" >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -q && \
    apt-get install -yq --no-install-recommends chromium; } || \
    { echo "the tests in a browser need chromium on PATH: install it (Debian: apt-get install chromium)" >&2; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help install run test test-ui test-frontend storm chaos delivery differential check schema golden bench bench-load lambda lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Every download has its hash in the lock, the build backend too, so the last step fetches nothing.
$(VENV): pyproject.toml requirements.lock
	@$(need_python)
	$(PYTHON) -m venv .venv
	.venv/bin/pip install -q --require-hashes -r requirements.lock
	.venv/bin/pip install -q --no-deps --no-build-isolation -e .
	@touch $@
# On a platform that the engine has no package for npm skips it, and the server says how to get one.
$(ENGINE): server/engine/package.json server/engine/package-lock.json
	@$(need_node)
	cd server/engine && npm ci --no-audit --no-fund
	@mkdir -p $(@D) && touch $@
# The pages are served by us, to work offline; Vite writes the target anew at every build.
$(IDE): $(wildcard server/ide/*.json server/ide/*.js server/ide/*.html server/ide/src/* server/ide/src/*/*)
	@$(need_node)
	cd server/ide && npm ci --no-audit --no-fund && npm run build

install: $(VENV) $(ENGINE) ## make .venv and fetch the engine
# exec: Ctrl-C finds the server, with no shell in between.
run: install $(IDE) ## serve an example on PORT (8000 unless told), with its data in .data; EXAMPLE=bananas unless told
	@exec .venv/bin/tablegraph demo --schema examples/$(EXAMPLE)/schema.graphql --queries examples/$(EXAMPLE)/queries \
	    $(addprefix --data ,$(wildcard examples/$(EXAMPLE)/*.jsonl examples/$(EXAMPLE)/*.py)) \
	    --db .data/$(EXAMPLE).db --port $(PORT)
# The clients that frontends use, and the tools that they are built with, for the tests.
$(CLIENTS): tests/clients/package.json tests/clients/package-lock.json
	@$(need_node)
	cd tests/clients && npm ci --no-audit --no-fund
	@touch $@
test: install $(CLIENTS) ## run the tests
	.venv/bin/pytest
storm: install ## write for a minute while server and engine are killed five times each; STORM="--copies STREAM" says how
	.venv/bin/python -m tests.storm $(STORM)
chaos: install ## read for a minute of each example while DynamoDB has a bad day; CHAOS="--transport boto3" or "--writes" says how
	.venv/bin/python -m tests.chaos $(CHAOS)
delivery: install ## deliver 200 writes a second for a minute while the reader of the stream is killed twice
	.venv/bin/python -m tests.delivery
differential: install ## compare plans with the reference on 20,000 random queries
	.venv/bin/python -m tests.differential --cases 20000
# Debian's browser: the download that test tools make by themselves is not in the registries.
test-ui: install $(IDE) ## test the pages in a browser; UI=--update-screenshots writes README's pictures anew
	@$(need_chromium)
	.venv/bin/python -m tests.run_ui $(UI)
$(FRONTEND): examples/frontend/package.json examples/frontend/package-lock.json $(wildcard examples/frontend/*/package.json)
	@$(need_node)
	cd examples/frontend && npm ci --no-audit --no-fund
	@touch $@
test-frontend: install $(FRONTEND) ## build the example frontends and test them in a browser; SCREENSHOTS=1 makes their pictures anew
	@$(need_chromium)
	SCREENSHOTS=$(SCREENSHOTS) .venv/bin/python -m tests.run_frontend
# Cheapest first; CI runs the same.
check: install ## look at format, lint, types, the direction of imports and the golden files
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/mypy
	.venv/bin/pytest -q tests/test_imports.py tests/test_golden.py tests/test_readme.py tests/test_seed_rows.py
# Only the schema on standard output, for a pipe.
schema: install ## print the public schema that schema.graphql gives
	@.venv/bin/tablegraph schema --schema schema.graphql
# Reviewed as code afterwards.
golden: install ## rewrite the golden files
	.venv/bin/pytest -q tests/test_golden.py tests/test_golden_events.py tests/test_readme.py tests/test_seed_rows.py tests/test_abuse.py tests/test_frontend_tools.py --update-golden
# Servers to compare with; nothing else needs them.
$(PEERS): benchmarks/peers/package.json benchmarks/peers/package-lock.json
	@$(need_node)
	cd benchmarks/peers && npm ci --no-audit --no-fund
	@touch $@
bench: install $(PEERS) ## compare CPU, speed and cost with other servers; BENCH="--queries Q2" says what
	.venv/bin/python -m benchmarks.run $(BENCH)
bench-load: install ## load up to 100,000 items, beside a plain boto3 loop
	.venv/bin/python -m benchmarks.load
# Its binaries are those of this Python on this machine. Compiled, for nothing can be written there, and by no time of
# change, for archives round it: a cold start takes a third of the time. GraphiQL, off there unless told, is left out.
lambda: $(VENV) ## make build/lambda, an AWS Lambda function, with the model of SCHEMA (schema.graphql unless told)
	rm -rf build/lambda
	.venv/bin/pip install -q --target build/lambda --no-compile --only-binary :all: --require-hashes -r requirements-run.lock
	.venv/bin/pip install -q --target build/lambda --no-compile --no-deps --no-build-isolation .
	rm -rf build/lambda/bin build/lambda/server/ide
	.venv/bin/python -m compileall -q --invalidation-mode unchecked-hash build/lambda
	cp $(SCHEMA) build/lambda/schema.graphql
# Keeps what is locked as long as it fits; make lock LOCK=--upgrade takes newer releases. --universal: for every platform.
lock: ## write requirements.lock, and requirements-run.lock without our tools, from pyproject.toml
	@$(need_python)
	$(PYTHON) -m venv .venv/uv && .venv/uv/bin/pip install -q uv
	$(COMPILE) --group dev $(LOCK) -o requirements.lock
	$(COMPILE) --all-extras -c requirements.lock -o requirements-run.lock
# The demo's data in .data stays.
clean: ## remove what make made
	rm -rf .venv build benchmarks/peers/node_modules tests/clients/node_modules examples/frontend/node_modules server/engine/node_modules server/ide/node_modules server/ide/dist .mypy_cache .pytest_cache .ruff_cache
