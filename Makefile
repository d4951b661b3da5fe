# Two commands: `make demo` and `make test`. They need Python 3.11+ and make, nothing else.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
ENGINES_PYTEST := PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 .venv-engines/bin/python -m pytest

.PHONY: demo test test-base test-debug test-asan test-browser test-scale test-engines test-integrations test-parity test-mcp test-notebooks invariance lint types layers check check-release docs bench wheels clean

demo: $(VENV)/.installed
	$(BIN)/podium demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

# The tests with numpy alone, in an environment of their own; those of missing packages are skipped and say so
test-base: .venv-base/.installed
	.venv-base/bin/python -m pytest -n auto $(PYTEST_ARGS)

# The kernels' tests with the indices of arrays checked; the next ordinary import compiles the fast modules again
test-debug: $(VENV)/.installed-dev
	PODIUM_CORE_DEBUG=1 $(BIN)/python -m pytest -n auto tests/kernels $(PYTEST_ARGS)

# The same with AddressSanitizer and UndefinedBehaviorSanitizer (gcc), which check raw pointers too; a fault ends the
# process with a report. Tests of the build itself are left out.
SANITIZED := PODIUM_CORE_SANITIZE=1 ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc
ASAN_TESTS = $(filter-out %/test_compile_at_import.py %/test_build_support.py,$(wildcard tests/kernels/test_*.py))
test-asan: $(VENV)/.installed-dev
	CC=gcc PODIUM_CORE_SANITIZE=1 $(BIN)/python build_support/compile_core.py
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" CC=gcc $(SANITIZED) \
	  $(BIN)/python -m pytest $(ASAN_TESTS) $(PYTEST_ARGS)

# Other row orders, names, threads and batches must not change an answer: the checks of `make test` on many more samples
invariance: $(VENV)/.installed-test
	$(BIN)/python -m podium.testing.invariance $(INVARIANCE_ARGS)

# Ray and Spark (which needs Java) have an environment of their own; `make test` skips what needs them
test-scale: .venv-scale/.installed
	.venv-scale/bin/python -m pytest tests/scale $(PYTEST_ARGS)

# Search engines, databases and frameworks, real ones in this process, run what `podium deploy` writes
# (PODIUM_ENGINE_INPUTS=10000 for a long run)
test-engines: .venv-engines/.installed
	$(ENGINES_PYTEST) tests/engines $(PYTEST_ARGS)

# The adapters in their frameworks, with the frameworks' own suites. The environment of test-engines has most of these
# frameworks; the pytest plug-ins that come with LangChain's suite are not loaded, for the tests of neither target
test-integrations: .venv-engines/.installed-integrations
	$(ENGINES_PYTEST) tests/integrations $(PYTEST_ARGS)

# A client of the official SDK talks to `podium mcp` over its standard input and output
test-mcp: .venv-mcp/.installed
	.venv-mcp/bin/python -m pytest tests/mcp_server src/podium/mcp_server $(PYTEST_ARGS)

# The notebooks of docs/gallery, converted from their scripts and run by Jupyter
test-notebooks: .venv-notebooks/.installed
	rm -rf build/notebooks
	.venv-notebooks/bin/jupytext --quiet --to ipynb docs/gallery/*.py
	mkdir -p build/notebooks && mv docs/gallery/*.ipynb build/notebooks
	.venv-notebooks/bin/python -m pytest --nbmake build/notebooks $(PYTEST_ARGS)

# The studio in a real browser (Debian's Chromium, driven by Playwright), its API under Schemathesis and with a
# generated client
test-browser: .venv-browser/.installed
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || test -n "$(PODIUM_CHROMIUM)" \
	  || { command -v apt-get >/dev/null && apt-get install -y --no-install-recommends chromium; } \
	  || { echo "these tests need Chromium: install it, or set PODIUM_CHROMIUM to its path"; exit 1; }
	.venv-browser/bin/python -m pytest tests/browser tests/studio/test_contract.py tests/studio/test_clients.py $(PYTEST_ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy
	$(BIN)/mypy --config-file benchmarks/mypy.ini

layers: $(VENV)/.installed-dev
	$(BIN)/lint-imports

check: lint types layers test

# The files that build and publish a release: workflows, image, citation (actionlint, where it is installed)
check-release: .venv-release/.installed
	.venv-release/bin/zizmor --offline --pedantic .github
	.venv-release/bin/hadolint Dockerfile
	.venv-release/bin/cffconvert --validate -i CITATION.cff
	@if command -v actionlint >/dev/null; then actionlint; else echo "actionlint is not installed: skipped"; fi

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -q -E -W --keep-going -b html docs build/docs
	@echo "open build/docs/index.html"

# Methods against ranx, pref_voting, crowd-kit, evalica and choix; PODIUM_PARITY_CASES sets the number of cases
test-parity: .venv-bench/.installed
	.venv-bench/bin/python -m pytest tests/parity $(PYTEST_ARGS)

bench: .venv-bench/.installed
	.venv-bench/bin/python benchmarks/run.py $(BENCH_ARGS)

# One wheel per platform, cross-compiled; only the one of this machine is run
wheels: .venv-wheels/.installed
	.venv-wheels/bin/python build_support/build_wheels.py $(WHEELS_ARGS)

clean:
	rm -rf $(VENV) .venv-base .venv-bench .venv-browser .venv-engines .venv-mcp .venv-notebooks .venv-release .venv-scale .venv-wheels build dist .mypy_cache .ruff_cache .pytest_cache

# A marker is written with `: >`, as a machine may have make without touch.
# The environment is rebuilt when the declared dependencies or the compiled kernels change, and at no other time.
CORE := $(wildcard src/podium/_core/*.pyx src/podium/_core/*.pxd build_support/*.py)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Podium needs Python 3.11 or later; set PYTHON=python3.x"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml $(CORE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli]'
	@: > $@

$(VENV)/.installed-test: pyproject.toml $(CORE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]' -e papers
	@: > $@ > $(VENV)/.installed

$(VENV)/.installed-dev: pyproject.toml $(CORE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,dev]' -e papers
	@: > $@ > $(VENV)/.installed-test > $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml $(CORE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]' -e papers
	@: > $@ > $(VENV)/.installed

.venv-base/.installed: pyproject.toml $(CORE)
	$(PYTHON) -m venv .venv-base
	.venv-base/bin/python -m pip install --quiet --disable-pip-version-check -e '.[base-test]'
	@: > $@

.venv-bench/.installed: pyproject.toml $(CORE)
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench]' -e papers
	@: > $@

.venv-scale/.installed: pyproject.toml $(CORE)
	$(PYTHON) -m venv .venv-scale
	.venv-scale/bin/python -m pip install --quiet --disable-pip-version-check -e '.[ray,spark]' pytest hypothesis
	@: > $@

# A package that does not install here is named, and its tests are skipped
INSTALL_EACH = .venv-engines/bin/python -c 'import sys, tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; print(*[p for e in sys.argv[1:] for p in extras[e] if not p.startswith("podium-rank")], sep="\n")' $(1) \
	  | while read -r package; do \
	    .venv-engines/bin/python -m pip install --quiet --disable-pip-version-check "$$package" || echo "skipped: $$package does not install here"; \
	  done

.venv-engines/bin/python:
	$(PYTHON) -m venv .venv-engines

.venv-engines/.installed: pyproject.toml $(CORE) | .venv-engines/bin/python
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check -e '.[cli]' 'cython>=3.1' pytest hypothesis
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check -e '.[cli,engines]' || $(call INSTALL_EACH,engines)
	@: > $@

.venv-engines/.installed-integrations: pyproject.toml $(CORE) | .venv-engines/bin/python
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check -e '.[cli]' 'cython>=3.1' pytest hypothesis
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check -e '.[cli,integrations-test]' \
	  || { $(call INSTALL_EACH,arrow haystack lancedb langchain llama-index mlflow pandas polars pyterrier sklearn integrations-test); }
	@: > $@

.venv-mcp/.installed: pyproject.toml $(CORE)
	$(PYTHON) -m venv .venv-mcp
	.venv-mcp/bin/python -m pip install --quiet --disable-pip-version-check -e '.[mcp,base-test]'
	@: > $@

.venv-notebooks/.installed: pyproject.toml $(CORE)
	$(PYTHON) -m venv .venv-notebooks
	.venv-notebooks/bin/python -m pip install --quiet --disable-pip-version-check -e '.[notebooks]' 'cython>=3.1'
	@: > $@

.venv-browser/.installed: pyproject.toml $(CORE)
	$(PYTHON) -m venv .venv-browser
	.venv-browser/bin/python -m pip install --quiet --disable-pip-version-check -e '.[browser]' -e papers
	@: > $@

.venv-release/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["release"], sep="\n")' \
	  | xargs .venv-release/bin/python -m pip install --quiet --disable-pip-version-check
	@: > $@

.venv-wheels/.installed:
	$(PYTHON) -m venv .venv-wheels
	.venv-wheels/bin/python -m pip install --quiet --disable-pip-version-check 'hatchling>=1.25' 'cython>=3.1' 'ziglang>=0.13' 'lief>=0.16' abi3info
	@: > $@
