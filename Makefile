# make setup   create .venv with pinned versions (once; both commands below do it)
# make demo    compress a GLM and a mixed model, sample, certify, draw two pictures in demo/
# make test    lint, format check, quick tests
# make lint    lint, format check, types
# make test-slow   the tests marked slow: other compilers, clusters, calibration, many cases
# make docs    run the tutorials and write the site to build/docs

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.docs-installed
# The first interpreter that is new enough; 3.11 is the one the versions are pinned for.
FIND_PYTHON = for python in $(PYTHON) python3.11 python3 python3.12 python3.13 python; do \
	if command -v $$python >/dev/null 2>&1 && $$python -c \
	'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo $$python; break; fi; done

.PHONY: setup test test-slow lint format demo bench docs clean

setup: $(STAMP)
	@:

$(STAMP): requirements/lock.txt pyproject.toml
	@python=$$($(FIND_PYTHON)); \
	if [ -z "$$python" ]; then echo "corebayes needs Python 3.11 or newer" >&2; exit 1; fi; \
	if [ ! -x $(BIN)/python ]; then $$python -m venv $(VENV); fi
	@echo "installing pinned versions into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--requirement requirements/lock.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--no-build-isolation --editable .
	@touch $@

# Dozens of tests start Python again: compiled modules are kept, whatever the shell says.
test test-slow: export PYTHONDONTWRITEBYTECODE =

# Quick tests compile more than they compute.
test: export JAX_DISABLE_MOST_OPTIMIZATIONS = 1
test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pytest -n auto --dist worksteal -m "not slow"

# What takes long to compile or to draw: every adapter on every model, Stan, real clusters.
test-slow: setup
	$(BIN)/pytest -n auto --dist worksteal -m slow

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: setup
	$(BIN)/corebayes demo

bench: setup
	-$(BIN)/python -m benchmarks.pass_speed
	-$(BIN)/python -m benchmarks.sparse_vi

# The tutorials run afresh every time, since the library may have changed. One at a time: they read
# flights of a few hundred megabytes.
docs: setup $(DOCS_STAMP)
	$(BIN)/python docs/house.py
	$(BIN)/python docs/in_r.py
	$(BIN)/sphinx-build --fail-on-warning --keep-going --fresh-env --quiet \
		--doctree-dir build/doctrees docs build/docs
	@echo "open build/docs/index.html"

$(DOCS_STAMP): $(STAMP) requirements/docs.txt
	@echo "installing what the site needs into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--requirement requirements/docs.txt
	@touch $@

clean:
	rm -rf $(VENV) build dist demo .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
