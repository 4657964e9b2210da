# Two commands matter: `make demo` and `make test`. Both set everything up themselves.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test test-torch test-vllm check dist format clean

help:
	@echo "make demo    install, start the server on the embedded model, send a tool call and a schema"
	@echo "make test    install, then lint, types, layers and all tests"
	@echo "make test-torch  install torch too (.venv: 6.5 GB), then the tests that need it"
	@echo "make check   lint, types and layers only"
	@echo "make test-vllm  the engine vllm against a real vLLM, in an environment of its own under \$$VLLM (3.5 GB)"
	@echo "make dist    build the wheel and the source distribution into dist/"
	@echo "make format  rewrite the sources in the project's format"

$(VENV)/.python: 
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Interlock needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "could not create $(VENV): on Debian or Ubuntu, apt-get install python3-venv"; exit 1; }
	@touch $@

$(VENV)/.installed: pyproject.toml constraints.txt $(VENV)/.python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . || \
	  { echo "the installation failed: check the connection to your package index and run make again"; exit 1; }
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' || \
	  { echo "the installation failed: check the connection to your package index and run make again"; exit 1; }
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/interlock demo

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile

test-torch: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[torch]'
	$(BIN)/python -m pytest -k torch tests/unit/runners tests/contract tests/equivalence tests/process/test_torch_server.py
	$(BIN)/python -m pytest tests/unit/library

VLLM ?= $(HOME)/.cache/interlock/vllm

test-vllm: $(VENV)/.installed-dev
	scripts/vllm_environment.sh "$(VLLM)"
	INTERLOCK_TEST_VLLM="$(VLLM)" $(BIN)/python -m pytest --engine vllm --durations 5 tests/contract/test_engine.py \
	  tests/clients/test_real_model.py tests/clients/test_real_model_contained.py tests/clients/test_real_surfaces.py tests/clients/test_frameworks.py tests/vllm

dist: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hatchling
	$(BIN)/python -m hatchling build

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist
