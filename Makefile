# `make` lists the targets. Needs make, Python 3.11 or newer and the package registry; everything else it brings.

JOB ?= examples/hello.sh
VENV := .venv
PYTHON := $(VENV)/bin/python
STAMP := $(VENV)/installed
COMPILED := $(VENV)/compiled
WRITERS := build/docs-venv
BROWSER := $(VENV)/browser
MYPY_ON := functions infra simulation model docs app.py

# Which tests run, and how. Four processes keep two processors busy: many tests wait for processes that they started.
# Groups with the most tests begin first; in `make e2e` those that take longest, which tests/conftest.py names.
MARKS ?= not long and not e2e
PYTEST := $(PYTHON) -m pytest -n 4 --dist loadgroup
DOMAIN := tests/domain tests/jobfile
RECORDS := tests/mutate/test_record.py tests/mutate/test_effects.py tests/mutate/test_carried.py tests/promises
N ?= 20
ONLY ?= tests
BASE_PYTHON ?= # what .venv is made with; unset, the first on PATH that is new enough
AGENT_PYTHON ?= $(firstword $(wildcard $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions/3.9.*/bin/python) python3.9)

# Tests start thousands of processes: without compiled modules on disk, each compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test e2e quick flaky oldest domain units check lint types records quick-tests format tour bench prove mutate openapi pins sbom release docs pictures synth web local clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with everything pinned, .venv/bin/penstock among it
	@:

run: $(STAMP) ## run a job on a cloud on this machine, then take it down: make run JOB=path/to/job.sh
	@$(PYTHON) -m penstock.local.run $(JOB)

test: lint ## what a contributor must pass before each commit: make check, make domain and all tests but the long and the e2e
	@$(MAKE) --no-print-directory --jobs=2 types units records

e2e: $(STAMP) web $(BROWSER) ## the tests with whole clouds, browsers, engines and servers, and the agent on Python 3.9 if there is one
	$(PYTEST) --no-loadscope-reorder -m "e2e and not long" --durations=20
	@if $(AGENT_PYTHON) --version; then $(MAKE) --no-print-directory oldest; else echo "the agent is not tested on Python 3.9"; fi

quick: lint ## format, lint, types, imports, the domain, and the tests nearest to what changed since main
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target types quick-tests

flaky: $(STAMP) ## run the tests N times, a quarter of them on busy processors; it goes on where it was ended: make flaky N=5 ONLY=tests/agent
	@$(PYTHON) -m tests.flaky $(N) $(PYTEST) -m "$(MARKS)" $(ONLY)

oldest: $(STAMP) ## the tests of the agent on the oldest Python that it runs on: make oldest AGENT_PYTHON=python3.9
	PENSTOCK_AGENT_PYTHON=$(AGENT_PYTHON) $(PYTEST) --dist load -m "$(MARKS)" tests/agent

domain: $(STAMP) ## the tests of the domain, of which every branch must be taken
	$(PYTHON) -m pytest $(DOMAIN) --cov=penstock.domain --cov-branch --cov-report=term-missing:skip-covered --cov-fail-under=100

units: domain $(COMPILED) # coverage slows tests: only the domain's are measured
	$(PYTEST) -m "$(MARKS)" --durations=20 $(addprefix --ignore=,$(DOMAIN) $(RECORDS))

check: lint types records ## format, lint, types, the directions of imports, the records of mutations and promises

lint: $(STAMP)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .

types: $(STAMP)
	$(VENV)/bin/mypy $(MYPY_ON)
	$(VENV)/bin/lint-imports

records: $(STAMP)
	$(PYTHON) -m pytest $(RECORDS)

quick-tests:
	$(PYTHON) -m pytest -n 2 --dist loadgroup -m "$(MARKS)" --hypothesis-profile=quick $(DOMAIN) $$($(PYTHON) -m tests.changed)

format: $(STAMP) ## put the code into the one format
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

tour: $(STAMP) ## run one job with one resource on the twin, and print each module and function that it enters, in order
	@PYTHONPATH=functions:. $(PYTHON) -m tests.tour

bench: $(STAMP) ## measure latency and price of jobs on the local cloud and cold starts, and count what grants take
	@$(PYTHON) -m penstock.local.bench
	@PYTHONPATH=functions:. $(PYTHON) -m tests.figures.coldstarts
	@PYTHONPATH=functions:. $(PYTHON) -m tests.figures.latency
	@PYTHONPATH=functions:. $(PYTHON) -m tests.figures.warm
	@PYTHONPATH=functions:. $(PYTHON) -m tests.figures
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps -r tests/figures/requirements.txt
	@PYTHONPATH=functions:. $(PYTHON) -m tests.figures.parsing

prove: $(STAMP) web $(BROWSER) ## the long proofs, hours: models in full, every crash point, ten thousand sites, chaos, claims, 10 GB, networks away, fuzzing; it goes on where it was ended
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps -r tests/fuzz/requirements.txt
	@PYTHONPATH=functions:. $(PYTHON) -m tests.prove; status=$$?; mkdir -p build; \
	PYTHONPATH=functions:. $(PYTHON) -m tests.promises > build/promises.md && mv build/promises.md docs/internals/promises.md; exit $$status

mutate: $(STAMP) ## drop, weaken or move every condition and effect that keeps a promise, where it changed: a test must notice
	@PYTHONPATH=functions:. $(PYTHON) -m tests.mutate; status=$$?; mkdir -p build; \
	PYTHONPATH=functions:. $(PYTHON) -m tests.promises > build/promises.md && mv build/promises.md docs/internals/promises.md; exit $$status

pins: $(STAMP) ## write the hashes of all pinned libraries anew, after a version was changed
	@$(PYTHON) -m infra.pins

sbom: $(STAMP) ## write software bills of materials into build/sbom: of the functions' layer, and of what make setup installs
	@PYTHONPATH=functions:. $(PYTHON) -m infra.sbom build/sbom

release: $(STAMP) ## build what a release of this commit has into build/release: wheel, sdist, assembly, bills, checksums
	@$(PYTHON) -m infra.release build/release

openapi: $(STAMP) ## write the OpenAPI document anew from the code
	@$(PYTHON) -m penstock.api.openapi

docs: $(STAMP) $(WRITERS)/installed ## write the documentation as a site into build/docs
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(WRITERS)/bin/mkdocs build --quiet && echo build/docs/index.html

pictures: $(STAMP) ## make the pictures of the terminal and the console in the documentation anew, on a cloud on this machine
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r tests/web/requirements.txt
	@$(PYTHON) -m docs.tools.pictures

synth: $(STAMP) ## synthesise the stack into build/cdk.out, checked by the security rules
	@CDK_OUTDIR=build/cdk.out $(PYTHON) app.py && echo build/cdk.out/Penstock.template.json

web: $(STAMP) ## build the console into build/web, if its sources changed, and print how big it is
	@PYTHONPATH=functions $(PYTHON) -m penstock.console.build

local: $(STAMP) ## keep a cloud up on this machine until Ctrl-C
	@$(VENV)/bin/penstock local up

clean: ## remove .venv, build and caches
	rm -rf $(VENV) build web/node_modules cdk.out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The first time, one process compiles what tests import. Otherwise, each process of `make units` would compile all of it.
$(COMPILED): $(STAMP)
	@$(PYTHON) -m pytest --collect-only -m "$(MARKS)" >/dev/null 2>&1 || true # `make units` shows what is wrong
	@touch $@

# What drives a browser is no part of what everybody installs.
$(BROWSER): $(STAMP) tests/web/requirements.txt
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r tests/web/requirements.txt
	@touch $@

# The site's libraries stay apart: what Penstock needs and what writes its pages need other versions of the same.
$(WRITERS)/installed: docs/tools/requirements.txt
	@$(PYTHON) -m venv --clear $(WRITERS)
	@$(WRITERS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@

$(STAMP): requirements.txt pyproject.toml setup.py
	@python=; for each in $(or $(BASE_PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
		if $$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$each; break; fi; \
	done; \
	if [ -z "$$python" ]; then echo "Penstock needs Python 3.11 or newer; this is: $$($(or $(BASE_PYTHON),python3) -V 2>&1)" >&2; exit 1; fi; \
	echo "- making $(VENV) with $$($$python -V)"; \
	$$python -m venv $(VENV) || { echo "that Python cannot make virtual environments; on Debian: apt install python3-venv" >&2; exit 1; }
	@echo "- installing libraries, about a minute the first time"
	@rm -f $(VENV)/failed; { $(PYTHON) -m pip install --disable-pip-version-check --require-hashes --no-deps --no-compile -r requirements.txt 2>&1 \
		|| touch $(VENV)/failed; } | awk -v all=$$(grep -c == requirements.txt) ' \
		/^(Collecting|Requirement already)/ { n++; if (n % 10 == 0 || n == all) print "  " n " of " all; fflush(); next } \
		/^Installing collected/ { print "  unpacking"; fflush(); next } \
		/ERROR|[Ee]rror:/ { print; fflush() }'
	@if [ -e $(VENV)/failed ]; then echo "the libraries cannot be installed; see above" >&2; exit 1; fi
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
