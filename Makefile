# `make demo` and `make test` first set up .venv. They need Python 3.11 or newer.
PYTHON ?= python3.11
VENV := .venv
RUN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST = $(RUN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# Byte code is kept, or each of many processes would compile what it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-long test-gpu gpu-report check fuzz man gallery dist clean

demo: $(READY)  ## the whole pipe on generated data: parse, featurize, train, translate, score
	PATH="$(CURDIR)/$(RUN):$$PATH" bash examples/demo.sh

test: $(READY)  ## the tests, in about ten minutes on two cores
	$(PYTEST) -m "not gpu and not long"

test-long: $(READY)  ## those of many processes, lost machines, damaged files and whole experiments
	$(PYTEST) -m "long and not gpu"

test-gpu: $(READY)  ## the tests that need one
	SYNMT_TEST_GPU=1 $(RUN)/python -m pytest -m gpu

gpu-report: $(READY)  ## measure this machine's GPU into gpu-report.md: ten minutes at most
	$(RUN)/python benchmarks/gpu_report.py --output gpu-report.md

check: $(READY)  ## format, lint, types and the quick tests
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(RUN)/python -m pytest -q -m "not slow and not long and not gpu"

fuzz: $(READY)  ## 100,000 mutations of each kind of input, with fixed seeds
	SYNMT_FUZZ_ROUNDS=100000 SYNMT_FUZZ_SECONDS=5 $(RUN)/python -m pytest -q -n 2 tests/formats/test_fuzz.py \
	  tests/commands/test_fuzz_commands.py tests/commands/test_fuzz_run_directories.py

man: $(READY)  ## write the man pages from the option table
	$(RUN)/python man/generate.py

gallery: $(READY)  ## the pictures of docs/gallery.md
	PATH="$(CURDIR)/$(RUN):$$PATH" bash docs/gallery/make.sh

dist: $(READY)  ## the packages, checked: what they hold, and one pipe in an environment of their own
	rm -rf dist
	$(RUN)/python -m build --outdir dist .
	bash .ci/dist $(RUN)/python

$(READY): pyproject.toml constraints.txt
	test -x $(RUN)/pip || $(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --constraint constraints.txt torch
	$(RUN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:  ## remove everything that the targets above made
	rm -rf $(VENV) demo build dist gpu-report.md docs/gallery/report.html .hypothesis .pytest_cache .mypy_cache .ruff_cache
