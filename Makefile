# make demo and make test need only Python 3.10+, a C++17 compiler and pip. They create .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
SOURCES := pyproject.toml CMakeLists.txt constraints.txt $(shell find src -type f -not -path '*/__pycache__/*')
NATIVE := $(shell find src/native -name "*.h" -o -name "*.cpp")
PYTHON_FILES := src/caransac lab tests examples docs/pages.py
comma := ,
SINGLE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help demo test pytest paper quick browser lint format bench bench-speed coverage audit docs sanitize requirements dist installed clean

help:  ## show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

# One wheel for all targets below, with warnings as errors. The build tools stay in .venv, so that only changed files are compiled again.
build/venv-wheel/stamp: $(SOURCES) requirements/build.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet -r requirements/build.txt
	rm -rf build/venv-wheel
	$(PIP) wheel --quiet --no-deps --no-build-isolation --wheel-dir build/venv-wheel --config-settings=cmake.define.CARANSAC_WERROR=ON .
	touch $@

# The wheel with extras. Its version does not change, so pip needs --force-reinstall.
INSTALL_EXTRAS = wheel="$$(ls build/venv-wheel/*.whl)" && $(PIP) install --quiet --constraint constraints.txt "$$wheel[$(1)]" \
    && $(PIP) install --quiet --no-deps --force-reinstall "$$wheel"

$(VENV)/demo.stamp: build/venv-wheel/stamp
	$(call INSTALL_EXTRAS,images$(comma)plot)
	touch $@

$(VENV)/dev.stamp: build/venv-wheel/stamp lab/pyproject.toml
	$(call INSTALL_EXTRAS,dev)
	$(PIP) install --quiet --constraint constraints.txt --editable './lab[bench,train]'
	touch $@ $(VENV)/demo.stamp $(VENV)/docs.stamp

$(VENV)/docs.stamp: build/venv-wheel/stamp
	$(call INSTALL_EXTRAS,docs)
	touch $@

demo: $(VENV)/demo.stamp  ## estimate the poses of embedded examples, draw pictures and write a report
	$(BIN)/caransac demo --out demo

test: lint pytest  ## run the checks of CI except the sanitizers: lint, tests and examples

pytest: $(VENV)/dev.stamp browser  ## run only tests and examples
	$(BIN)/python -m pytest -rs

paper: $(VENV)/dev.stamp  ## make every table and figure of the paper (docs/paper.md) on a few synthetic pairs: build/paper
	$(BIN)/caransac-lab paper all --data synthetic:3 --timing-pairs 1 --out build/paper

quick: $(VENV)/dev.stamp  ## run only the fast tests, on all cores; takes less than a minute on two cores
	$(BIN)/python -m pytest -m 'not slow' -n logical --maxprocesses 8 --dist worksteal

# The kernel has only what the first cell of the notebook installs.
NOTEBOOK := $(VENV)-notebook
.PHONY: notebook
notebook:  ## run examples/first_steps.ipynb in a fresh environment that its first cell sets up
	$(PYTHON) -m venv --clear $(NOTEBOOK)
	$(NOTEBOOK)/bin/python -m pip --disable-pip-version-check install --quiet nbclient ipykernel
	$(NOTEBOOK)/bin/jupyter execute --kernel_name=python3 examples/first_steps.ipynb

# The viewer and the search of the docs are tested in a real browser. Without one, these tests are skipped, and pytest lists them in its last lines.
# If CI is set, they fail.
INSTALL_CHROMIUM := DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium
browser:  ## install Chromium for the tests in a browser (Debian, as root)
	@command -v chromium >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && { $(INSTALL_CHROMIUM) || { apt-get update -qq && $(INSTALL_CHROMIUM); }; }; } \
	|| printf '\n*** NO CHROMIUM: viewer and search will not be tested. Install the package chromium as root. ***\n\n'

lint: $(VENV)/dev.stamp  ## check with ruff, mypy and clang-format; change nothing
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/ruff format --check $(PYTHON_FILES)
	MYPYPATH=lab/src $(BIN)/mypy -p caransac -p caransac_lab
	$(BIN)/mypy -p caransac --platform win32 --cache-dir .mypy_cache/win32
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)

format: $(VENV)/dev.stamp  ## format the sources with ruff and clang-format
	$(BIN)/ruff check --fix $(PYTHON_FILES)
	$(BIN)/ruff format $(PYTHON_FILES)
	$(BIN)/clang-format -i $(NATIVE)

coverage: $(VENV)/dev.stamp  ## measure the lines and branches that the tests run
	$(PIP) install --quiet pytest-cov
	$(BIN)/python -m pytest --cov=caransac --cov=caransac_lab --cov-branch --cov-report=term:skip-covered

audit: $(VENV)/dev.stamp  ## look for known vulnerabilities in the installed packages
	$(PIP) install --quiet pip-audit
	$(BIN)/pip-audit --skip-editable --local

bench: $(VENV)/dev.stamp  ## time the kernels, and compare the estimator with PoseLib
	$(SINGLE_THREAD) $(BIN)/caransac-lab study speed --quick --only kernels scale

bench-speed: $(VENV)/dev.stamp  ## compare time, memory and accuracy with other estimators; DATA='DIR ...' adds real pairs
	$(SINGLE_THREAD) $(BIN)/caransac-lab study speed $(if $(DATA),--data $(DATA)) $(SPEED_OPTIONS)

# Measures every published figure from one commit; see caransac-lab publish --help. The size of the wheel is one of the figures.
.PHONY: publish publish-quick tables
publish: $(VENV)/dev.stamp  ## make all of benchmarks/results from a clean tree, with DATA=DIR; takes an hour and can be resumed; FULL=1 takes hours
	$(MAKE) build/wheel.stamp || { rm -rf dist; echo "no wheel: its size is left out"; }
	$(SINGLE_THREAD) $(BIN)/caransac-lab publish $(if $(DATA),--data $(DATA)) $(if $(STEPS),--only $(STEPS)) \
	    $(if $(FULL),--full)

build/wheel.stamp: $(SOURCES)  # from the same sources as the figures
	$(MAKE) dist
	touch $@

publish-quick: $(VENV)/dev.stamp  ## run the same steps on little synthetic data, in minutes, into build/publish-quick
	$(SINGLE_THREAD) $(BIN)/caransac-lab publish --quick $(if $(STEPS),--only $(STEPS))

tables: $(VENV)/dev.stamp  ## write the tables of README, docs and results from benchmarks/results
	$(BIN)/caransac-lab publish --tables

docs: $(VENV)/docs.stamp  ## build the guides and the API reference: site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "Site: $(CURDIR)/site/index.html"

# Separate environments, with a module that is built with sanitizers. Python itself is not, so the libraries of the sanitizers are preloaded.
SANITIZE := $(VENV)-sanitize
KERNEL_TESTS := tests/native tests/robust/loop/test_sampling.py tests/learned/test_side_information.py \
    tests/learned/test_state_network.py
# Tests that reach the kernels from outside: public calls and readers of files.
OUTER_TESTS := tests/api/test_estimators.py tests/api/test_hostile_arguments.py tests/api/test_homography.py \
    tests/api/test_any_geometry.py tests/io/test_matches.py tests/properties/test_any_arguments.py \
    tests/learned/test_weights_file.py lab/tests/datasets/test_npz.py lab/tests/datasets/test_posebench.py \
    tests/verification/test_colmap.py tests/verification/test_hloc.py
$(SANITIZE)/stamp: $(SOURCES)
	test -x $(SANITIZE)/bin/python || $(PYTHON) -m venv $(SANITIZE)
	$(SANITIZE)/bin/python -m pip --disable-pip-version-check install --quiet pytest hypothesis \
	    --config-settings=cmake.define.CARANSAC_SANITIZE=address,undefined --config-settings=build-dir=build/sanitize '.[colmap,hloc,images]'
	touch $@

WITH_SANITIZERS = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONMALLOC=malloc
sanitize: $(SANITIZE)/stamp  ## test kernels, public calls and files under the address and undefined-behaviour sanitizers
	for set in baseline avx2 avx512; do \
	    $(WITH_SANITIZERS) CARANSAC_INSTRUCTION_SET=$$set \
	    $(SANITIZE)/bin/python -m pytest -m kernels $(KERNEL_TESTS) || exit 1; \
	done
	$(WITH_SANITIZERS) $(SANITIZE)/bin/python -m pytest $(OUTER_TESTS)

RACES := $(VENV)-races
$(RACES)/stamp: $(SOURCES)
	test -x $(RACES)/bin/python || $(PYTHON) -m venv $(RACES)
	$(RACES)/bin/python -m pip --disable-pip-version-check install --quiet pytest \
	    --config-settings=cmake.define.CARANSAC_SANITIZE=thread --config-settings=build-dir=build/races .
	touch $@

# The thread sanitizer needs fixed addresses, so setarch disables address randomisation.
.PHONY: races fuzz
races: $(RACES)/stamp  ## test threads that share input arrays, under the thread sanitizer
	LD_PRELOAD="$$($(CXX) -print-file-name=libtsan.so)" TSAN_OPTIONS=exitcode=66 setarch -R $(RACES)/bin/python -m pytest \
	    tests/native/test_concurrency.py tests/api/test_many_pairs.py tests/api/test_estimators.py -k 'concurrency or threads or many_pairs'

# atheris fuzzes the readers of files and arguments, clang's libFuzzer the kernels; tests/fuzz/README.md explains how to handle findings.
FUZZ := $(VENV)-fuzz
FUZZ_SECONDS ?= 300
HARNESSES := $(patsubst tests/fuzz/fuzz_%.py,%,$(sort $(wildcard tests/fuzz/fuzz_*.py)))
EACH_SECONDS = $$(($(FUZZ_SECONDS) / $(words kernels $(HARNESSES))))
$(FUZZ)/stamp: $(SOURCES)
	test -x $(FUZZ)/bin/python || $(PYTHON) -m venv $(FUZZ)
	$(FUZZ)/bin/python -m pip --disable-pip-version-check install --quiet atheris 'cmeel-eigen<3.5' '.[hloc,images]'
	touch $@

EIGEN = $(FUZZ)/lib/python*/site-packages/cmeel.prefix/include/eigen3
build/fuzz/kernels: $(NATIVE) tests/fuzz/fuzz_kernels.cpp | $(FUZZ)/stamp
	mkdir -p build/fuzz
	clang++ -std=c++17 -O1 -g -march=native -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
	    -DCARANSAC_ISA=baseline -Isrc/native -I$$(echo $(EIGEN)) src/native/*.cpp src/native/hot/*.cpp \
	    tests/fuzz/fuzz_kernels.cpp -o $@

fuzz: $(FUZZ)/stamp build/fuzz/kernels  ## fuzz files, arguments and kernels for FUZZ_SECONDS in total; findings go to build/fuzz
	@for name in kernels $(HARNESSES); do \
	    mkdir -p build/fuzz/corpus/$$name tests/fuzz/corpus/$$name; \
	    case $$name in kernels) run=build/fuzz/kernels;; *) run="$(FUZZ)/bin/python tests/fuzz/fuzz_$$name.py";; esac; \
	    PYTHONPATH=lab/src $(SINGLE_THREAD) $$run -max_total_time=$(EACH_SECONDS) -timeout=30 -rss_limit_mb=2048 -max_len=3000 -len_control=0 \
	        -artifact_prefix=build/fuzz/$$name- -print_final_stats=1 build/fuzz/corpus/$$name tests/fuzz/corpus/$$name \
	        > build/fuzz/$$name.log 2>&1 \
	    && echo "$$name: $$(grep -a number_of_executed_units build/fuzz/$$name.log)" \
	    || { echo "$$name: FOUND SOMETHING, see build/fuzz/$$name.log"; found=1; }; \
	done; test -z "$$found"

RELEASE := $(VENV)-release
RELEASE_PIP := $(RELEASE)/bin/python -m pip --disable-pip-version-check
INSTALLED := $(VENV)-installed
WITHOUT_COMPILERS := PATH="$(CURDIR)/$(INSTALLED)/bin" CC=/bin/false CXX=/bin/false
INSTALL_WHEEL := $(WITHOUT_COMPILERS) $(INSTALLED)/bin/python -m pip --disable-pip-version-check install --quiet --only-binary=:all:

# The versions and hashes of the tools that build releases. uv comes from PyPI and resolves them for every platform.
LOCK := uv pip compile --quiet --upgrade --universal --generate-hashes --no-annotate --no-header
BUILD_REQUIREMENTS := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")
requirements: $(RELEASE)/bin/python  ## renew the pinned build requirements of releases: requirements/*.txt
	$(RELEASE_PIP) install --quiet uv
	{ $(RELEASE)/bin/python -c '$(BUILD_REQUIREMENTS)'; printf 'cmake\nninja\n'; } \
	| $(RELEASE)/bin/$(LOCK) --python-version 3.10 - -o requirements/build.txt
	$(RELEASE)/bin/$(LOCK) --python-version 3.11 --group release -o requirements/release.txt

$(RELEASE)/bin/python:
	$(PYTHON) -m venv $(RELEASE)

$(RELEASE)/stamp: requirements/build.txt requirements/release.txt | $(RELEASE)/bin/python
	$(RELEASE_PIP) install --quiet --require-hashes --only-binary=:all: -r requirements/build.txt -r requirements/release.txt
	touch $@

# Builds a source distribution, a wheel from it, and installs the wheel by pip without a compiler, as users do.
# The date of the commit replaces the present date, so that the same commit gives identical files.
dist: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null || echo 315532800)
dist: $(RELEASE)/stamp  ## build sdists and wheels in dist/ and dist/lab/, and test them in an environment without compilers
	rm -rf dist $(INSTALLED)
	$(RELEASE)/bin/python -m build --no-isolation --outdir build/dist
	mkdir dist && mv build/dist/*.tar.gz dist
	PATH="$(CURDIR)/$(RELEASE)/bin:$$PATH" auditwheel repair --wheel-dir dist build/dist/*.whl && rm -r build/dist
	$(RELEASE)/bin/python -m build --no-isolation --outdir dist/lab lab
	$(RELEASE)/bin/twine check --strict dist/*.* dist/lab/*
	$(PYTHON) -m venv $(INSTALLED)
	$(INSTALL_WHEEL) dist/*.whl 'pytest>=8.2'
	$(WITHOUT_COMPILERS) $(INSTALLED)/bin/python -m pytest @tests/core.txt

installed: dist  ## run the whole test suite against the wheel of dist/
	$(INSTALL_WHEEL) --constraint constraints.txt "$$(ls dist/*.whl)[dev]"
	$(INSTALL_WHEEL) --constraint constraints.txt "$$(ls dist/lab/*.whl)[bench,train]"
	$(INSTALLED)/bin/python -m pytest -rs

clean:  ## remove environments and build products
	rm -rf $(VENV) $(SANITIZE) $(RACES) $(FUZZ) $(RELEASE) $(INSTALLED) $(NOTEBOOK) build demo dist site
