# make demo and make test need nothing but Python 3.10+, a C++17 compiler and pip: they set up .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
SOURCES := pyproject.toml CMakeLists.txt constraints.txt $(shell find src -type f -not -path '*/__pycache__/*')
NATIVE := $(shell find src/native -name "*.h" -o -name "*.cpp")
PYTHON_FILES := src/caransac tests examples benchmarks docs/pages.py
SINGLE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help demo test browser lint format bench docs sanitize clean

help:  ## show this help
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

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

test: lint browser  ## everything CI checks but the sanitizers: lint, tests and examples
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
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)

format: $(VENV)/dev.stamp  ## let ruff and clang-format rewrite the sources
	$(BIN)/ruff check --fix $(PYTHON_FILES)
	$(BIN)/ruff format $(PYTHON_FILES)
	$(BIN)/clang-format -i $(NATIVE)

bench: $(VENV)/dev.stamp  ## time the kernels and the estimator next to PoseLib
	$(SINGLE_THREAD) $(BIN)/python benchmarks/kernels.py
	$(SINGLE_THREAD) $(BIN)/python benchmarks/weights.py runtime

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

clean:  ## remove environments and build products
	rm -rf $(VENV) $(SANITIZE) build demo dist site
