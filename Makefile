# make demo and make test need nothing but Python 3.10+, a C++17 compiler and pip: they set up .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
SOURCES := pyproject.toml CMakeLists.txt constraints.txt $(shell find src -type f -not -path '*/__pycache__/*')
NATIVE := $(shell find src/native -name "*.h" -o -name "*.cpp")
PYTHON_FILES := src/caransac tests examples benchmarks docs/pages.py
SINGLE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help demo test pytest browser lint format bench bench-speed coverage audit docs sanitize requirements dist installed clean

help:  ## show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

# The package and its extras, built as a user's pip would build it (in isolation), with warnings as errors.
$(VENV)/demo.stamp: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt -C cmake.define.CARANSAC_WERROR=ON '.[images,plot]'
	touch $@

$(VENV)/dev.stamp: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt -C cmake.define.CARANSAC_WERROR=ON '.[dev]'
	touch $@ $(VENV)/demo.stamp

demo: $(VENV)/demo.stamp  ## estimate poses of embedded examples, from matches and from images; draws pictures and a report
	$(BIN)/caransac demo --out demo

test: lint pytest  ## everything CI checks but the sanitizers: lint, tests and examples

pytest: $(VENV)/dev.stamp browser  ## tests and examples alone
	$(BIN)/python -m pytest -rs

# The viewer and the search of the docs are tested in a real browser. Where there is none its tests are skipped, and the last lines of pytest say so;
# with CI set they fail instead.
INSTALL_CHROMIUM := DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium
browser:  ## install Chromium for the tests in a browser, on Debian as root
	@command -v chromium >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && { $(INSTALL_CHROMIUM) || { apt-get update -qq && $(INSTALL_CHROMIUM); }; }; } \
	|| printf '\n*** NO CHROMIUM: viewer and search will not be tested. Install the package chromium as root. ***\n\n'

lint: $(VENV)/dev.stamp  ## ruff, mypy and clang-format, changing nothing
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/ruff format --check $(PYTHON_FILES)
	$(BIN)/mypy -p caransac
	$(BIN)/mypy -p caransac --platform win32 --cache-dir .mypy_cache/win32
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)

format: $(VENV)/dev.stamp  ## let ruff and clang-format rewrite the sources
	$(BIN)/ruff check --fix $(PYTHON_FILES)
	$(BIN)/ruff format $(PYTHON_FILES)
	$(BIN)/clang-format -i $(NATIVE)

coverage: $(VENV)/dev.stamp  ## lines of the package that the tests run, branches included
	$(PIP) install --quiet pytest-cov
	$(BIN)/python -m pytest --cov=caransac --cov-branch --cov-report=term:skip-covered

audit: $(VENV)/dev.stamp  ## known vulnerabilities of what the extras installed
	$(PIP) install --quiet pip-audit
	$(BIN)/pip-audit --skip-editable --local

bench: $(VENV)/dev.stamp  ## time the kernels and the estimator next to PoseLib
	$(SINGLE_THREAD) $(BIN)/python benchmarks/kernels.py
	$(SINGLE_THREAD) $(BIN)/python benchmarks/weights.py runtime

bench-speed: $(VENV)/dev.stamp  ## time, memory and accuracy next to the peers; with DATA='DIR ...' on real pairs, too
	$(SINGLE_THREAD) $(BIN)/python benchmarks/speed.py $(if $(DATA),--data $(DATA)) $(SPEED_OPTIONS)

$(VENV)/docs.stamp: $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt -C cmake.define.CARANSAC_WERROR=ON '.[docs]'
	touch $@

docs: $(VENV)/docs.stamp  ## guides and API reference, to be opened from the disk: site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "Site: $(CURDIR)/site/index.html"

# An environment of its own: every kernel test under the address and undefined-behaviour sanitizers.
SANITIZE := $(VENV)-sanitize
KERNEL_TESTS := tests/native tests/robust/test_sampling.py tests/learned/test_side_information.py
$(SANITIZE)/stamp: $(SOURCES)
	test -x $(SANITIZE)/bin/python || $(PYTHON) -m venv $(SANITIZE)
	$(SANITIZE)/bin/python -m pip --disable-pip-version-check install --quiet pytest \
	    -C cmake.define.CARANSAC_SANITIZE=ON -C build-dir=build/sanitize .
	touch $@

sanitize: $(SANITIZE)/stamp  ## kernel tests under the address and undefined-behaviour sanitizers
	for set in baseline avx2 avx512; do \
	    LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
	    ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc CARANSAC_INSTRUCTION_SET=$$set \
	    $(SANITIZE)/bin/python -m pytest -m kernels $(KERNEL_TESTS) || exit 1; \
	done

RELEASE := $(VENV)-release
RELEASE_PIP := $(RELEASE)/bin/python -m pip --disable-pip-version-check
INSTALLED := $(VENV)-installed
WITHOUT_COMPILERS := PATH="$(CURDIR)/$(INSTALLED)/bin" CC=/bin/false CXX=/bin/false
INSTALL_WHEEL := $(WITHOUT_COMPILERS) $(INSTALLED)/bin/python -m pip --disable-pip-version-check install --quiet --only-binary=:all:

# The versions and hashes that releases are built with; uv comes from PyPI, and its answers hold for every platform.
LOCK := uv pip compile --quiet --upgrade --universal --generate-hashes --no-annotate --no-header
BUILD_REQUIREMENTS := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")
requirements: $(RELEASE)/bin/python  ## pin what releases are built with anew: requirements/*.txt
	$(RELEASE_PIP) install --quiet uv
	{ $(RELEASE)/bin/python -c '$(BUILD_REQUIREMENTS)'; printf 'cmake\nninja\n'; } \
	| $(RELEASE)/bin/$(LOCK) --python-version 3.10 - -o requirements/build.txt
	$(RELEASE)/bin/$(LOCK) --python-version 3.11 --group release -o requirements/release.txt

$(RELEASE)/bin/python:
	$(PYTHON) -m venv $(RELEASE)

$(RELEASE)/stamp: requirements/build.txt requirements/release.txt | $(RELEASE)/bin/python
	$(RELEASE_PIP) install --quiet --require-hashes --only-binary=:all: -r requirements/build.txt -r requirements/release.txt
	touch $@

# A source distribution, and from it a wheel; the wheel as users get it: found by pip where there is no compiler.
dist: $(RELEASE)/stamp  ## sdist and wheel in dist/, checked, and tested in an environment without compilers
	rm -rf dist $(INSTALLED)
	$(RELEASE)/bin/python -m build --no-isolation --outdir build/dist
	mkdir dist && mv build/dist/*.tar.gz dist
	PATH="$(CURDIR)/$(RELEASE)/bin:$$PATH" auditwheel repair --wheel-dir dist build/dist/*.whl && rm -r build/dist
	$(RELEASE)/bin/twine check --strict dist/*
	$(PYTHON) -m venv $(INSTALLED)
	$(INSTALL_WHEEL) dist/*.whl 'pytest>=8.2'
	$(WITHOUT_COMPILERS) $(INSTALLED)/bin/python -m pytest @tests/core.txt

installed: dist  ## the whole test suite against the wheel of dist/
	$(INSTALL_WHEEL) --constraint constraints.txt "$$(ls dist/*.whl)[dev]"
	$(INSTALLED)/bin/python -m pytest -rs

clean:  ## remove environments and build products
	rm -rf $(VENV) $(SANITIZE) $(RELEASE) $(INSTALLED) build demo dist site
