# The two commands of a fresh machine are `make up` and `make test`. They need python3 (3.11 or newer, with venv),
# make and a C++ compiler; everything else is installed into .venv from the lock files.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install --quiet

# An install or a build is up to date while the files it was made from have the same content: a stamp is named after it.
hash = $(shell cat $(1) 2>/dev/null | sha256sum | cut -c1-16)
# Where an NVIDIA driver is, what measures on its card is installed too.
GPU := $(wildcard /dev/nvidiactl /dev/dxg)
# nvcc, which compiles every CUDA submission, comes from wheels where the system has none.
NVCC := $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
LOCKS := requirements/build.txt requirements/service.txt requirements/grade.txt $(if $(GPU),requirements/gpu.txt) \
	$(if $(NVCC),,requirements/cuda.txt)
SERVICE := $(STAMPS)/service-$(call hash,$(LOCKS) pyproject.toml)
DEV := $(STAMPS)/dev-$(call hash,$(LOCKS) pyproject.toml requirements/dev.txt)
WEB := $(STAMPS)/web-$(call hash,$(sort $(shell find web -type f -not -path '*/node_modules/*' -not -path '*/static/build/*' -not -path '*/templates/*' 2>/dev/null)))
IN_WEB := cd web && export PATH="$(CURDIR)/$(BIN):$$PATH" NPM_CONFIG_AUDIT=false NPM_CONFIG_FUND=false NPM_CONFIG_UPDATE_NOTIFIER=false

.DEFAULT_GOAL := help
.PHONY: help up test lint lock web clean chromium

help:
	@echo 'make up     install what is missing and run everything here, until Ctrl-C; data is kept in var/'
	@echo 'make test   install what the tests need and run them all'
	@echo 'make lint   formatting, linters, types, import rules'
	@echo 'make web    bundle the pages'\'' scripts and styles'
	@echo 'make lock   write the lock files again from pyproject.toml and requirements/*.in'
	@echo 'make clean  remove what was installed and built; var/ stays'

up: $(SERVICE) $(WEB)
	@exec $(BIN)/kernelgate up

# One test process a core, at most 4: each runs a Postgres, a broker and a service of its own. Files stay whole, because
# their tests share what is slow to make, but for a few whose tests are long; tests/conftest.py says which, and puts them first.
SPREAD ?= -n $(shell n=$$(nproc 2>/dev/null || echo 1); echo $$((n > 4 ? 4 : n))) --dist loadfile --no-loadscope-reorder

test: $(DEV) $(WEB) chromium
	@$(BIN)/python -m pytest $(SPREAD) $(ARGS)

lint: $(DEV) $(WEB)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if [ -f web/package.json ]; then $(IN_WEB) && npm run --silent --if-present typecheck; fi

web: $(WEB)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is missing or older than Python 3.11; name another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "$(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; \
	  rm -rf $(VENV); exit 1; }

$(SERVICE): | $(BIN)/python
	@echo 'installing the locked packages into $(VENV) (a minute or two the first time)'
	@$(PIP) --require-hashes -r requirements/build.txt -r requirements/service.txt
	@$(PIP) -r requirements/grade.txt
	$(if $(GPU),@$(PIP) --require-hashes -r requirements/gpu.txt)
	$(if $(NVCC),,@$(PIP) --require-hashes -r requirements/cuda.txt || \
	  echo 'nvcc could not be installed: CUDA stages stay closed here, and `kernelgate doctor` says why')
	@$(PIP) --no-deps --no-build-isolation --editable .
	@mkdir -p $(STAMPS) && rm -f $(STAMPS)/service-* && touch $@

$(DEV): $(SERVICE)
	@echo 'installing what tests and linters need'
	@$(PIP) --require-hashes -r requirements/dev.txt
	@rm -f $(STAMPS)/dev-* && touch $@

$(WEB): | $(SERVICE)
	@if [ -f web/package.json ]; then \
	  echo 'bundling the pages'\'' scripts and styles'; \
	  $(IN_WEB) && npm ci --no-progress --loglevel=error >/dev/null && npm run --silent build; \
	else \
	  echo 'web/package.json is not there: nothing to bundle'; \
	fi
	@rm -f $(STAMPS)/web-* && touch $@

# The browser tests drive a real chromium; without one they are skipped and say so.
chromium:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo 'installing chromium for the browser tests'; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; } >/tmp/kernelgate-chromium.log 2>&1 \
	    || { echo 'chromium could not be installed (the browser tests will be skipped):'; tail -n 5 /tmp/kernelgate-chromium.log; }; \
	else \
	  echo 'no chromium here and no right to install one: the browser tests will be skipped'; \
	fi

# Made with the oldest Python served, so that every newer one accepts the result. Run where no pip configuration adds
# packages of its own, or the locks will name them.
COMPILE := ../$(BIN)/pip-compile --quiet --strip-extras --no-emit-find-links --no-emit-index-url --no-emit-trusted-host \
	--generate-hashes --allow-unsafe
lock: $(DEV)
	cd requirements && CUSTOM_COMPILE_COMMAND='make lock' $(COMPILE) --output-file=build.txt build.in
	cd requirements && CUSTOM_COMPILE_COMMAND='make lock' $(COMPILE) --constraint=build.txt \
	  --extra=service --extra=embedded --extra=build --output-file=service.txt ../pyproject.toml
	cd requirements && CUSTOM_COMPILE_COMMAND='make lock' $(COMPILE) --output-file=dev.txt dev.in
	cd requirements && CUSTOM_COMPILE_COMMAND='make lock' $(COMPILE) --output-file=gpu.txt gpu.in
	cd requirements && CUSTOM_COMPILE_COMMAND='make lock' $(COMPILE) --output-file=cuda.txt cuda.in

clean:
	rm -rf $(VENV) web/node_modules web/static/build build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
