# One command per task; `make` lists them. Only make and Python are needed.
#   SCALE=lite         choose a scale, i.e. a config file (make figure, make report, make paper)
#   RECORDS=published  draw from the repository's results of earlier runs, without training
#   DEMOS=shipped      imitate the experts in data/, without training experts
#   PYTHON=path        make a new .venv with this Python
#   ARGS="-k sac"      pass more arguments to pytest (make test, make long)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help figure report paper experts docs smoke test long check gpu-check setup unlock clean

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

PYTHONS := 3.12 3.11
PYTHON ?=
SCALE ?=
RECORDS ?=
DEMOS ?=
ARGS ?=
TEST_JOBS ?= 2

# Jobs run in parallel on all cores, so each job uses one thread.
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Jobs of the workflow find `python` and `ngt` on the path.
RUN := PATH="$(CURDIR)/$(BIN):$$PATH"
CHOICES = $(strip $(SCALE:%=scale=%) $(RECORDS:%=records=%) $(DEMOS:%=demos=%))
# tests/conftest.py sorts the test files, so pytest-xdist must not.
PYTEST = $(RUN) $(BIN)/python -m pytest -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder

# The tests that `make smoke` runs: a test file for each part of the repository. CONTRIBUTING.md
# names the parts and lists what these tests leave out.
SMOKE := tests/test_house.py tests/test_contributing.py tests/ngt/test_losses.py tests/ngt/test_reward.py \
  tests/ngt/runs/test_keys.py tests/ngt/settings/test_check.py tests/ngt/training/test_learner.py \
  tests/baselines/test_dac.py tests/paper/numbers/test_scores.py tests/workflow/test_plan.py
SNAKEMAKE = $(RUN) $(BIN)/python -m snakemake $(if $(CHOICES),--config $(CHOICES)) \
  --workflow-profile workflow/profiles/default

# Snakemake prints a line when a pack (a job that trains several runs) starts and when it ends. In
# the minutes between, it prints nothing. WATCH therefore names the command that shows progress.
WATCH = $(if $(RECORDS),:,echo "to see the curves of the runs, use another terminal: \
  $(BIN)/ngt watch$(SCALE:%= --scale %)")

# Print "ok VERSION COMMAND" for the first Python that runs, has a supported version and can make
# virtual environments. If there is none, list the Pythons found. Each Python is run, because a
# version manager can provide a `python3.12` that exists but fails.
PICK_PYTHON = found=; \
  for p in $(if $(PYTHON),"$(PYTHON)",$(PYTHONS:%=python%) python3); do \
    v=$$("$$p" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) || v=; \
    case "$$v" in \
      ("") $(if $(PYTHON),found="; $$p (does not run)") ;; \
      ($(subst $() ,|,$(PYTHONS:%=%.*))) \
        if "$$p" -c 'import ensurepip' >/dev/null 2>&1; then echo "ok $$v $$p"; exit; fi; \
        found="$$found; $$p $$v (lacks its venv package)" ;; \
      (*) found="$$found; $$p $$v" ;; \
    esac; \
  done; \
  echo "$${found:-; no Python}" | cut -c 3-

# If the checkout was copied, make a new .venv, because the copied .venv runs the code of the
# original folder.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

figure: setup  ## train, evaluate and draw results/main_figure.pdf (SCALE=test|quick|lite|paper)
	@$(WATCH)
	@$(SNAKEMAKE) results/main_figure.pdf
	@sed -n 's/.*\(PARTIAL: [^;]*\).*/figure: \1/p' results/main_figure.caption.md
	@echo "figure: results/main_figure.pdf"

report: setup  ## put every figure and table into results/report.html (same choices)
	@$(WATCH)
	@$(SNAKEMAKE) results/report.html
	@echo "report: results/report.html"

paper: setup  ## typeset every figure and table as results/paper.pdf, with LaTeX (same choices)
	@$(WATCH)
	@$(SNAKEMAKE) results/paper.pdf
	@echo "paper: results/paper.pdf"

experts: SCALE := $(or $(SCALE),lite)
experts: setup  ## train and ship the experts that data/ lacks (at present none)
	@$(SNAKEMAKE) experts
	@echo "experts: data/README.md"

docs: setup  ## build the docs site, which needs no server and no network: site/index.html
	@echo "docs: mkdocs (a minute)"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "docs: site/index.html"

smoke: setup  ## check a change quickly: ruff and a small part of the test suite
	@echo "smoke: ruff, then pytest on $(TEST_JOBS) processes"
	@$(BIN)/python -m ruff check --quiet .
	@$(BIN)/python -m ruff format --check --quiet .
	@$(PYTEST) -q -m "not slow and not long and not gpu" $(SMOKE) $(ARGS)

test: check  ## run linters, mypy and the test suite, except for tests marked long
	@echo "test: pytest on $(TEST_JOBS) processes"
	@$(PYTEST) -m "not long" $(ARGS)

long: setup  ## run the tests marked long, which take long or need a browser or a cluster
	@echo "long: pytest on $(TEST_JOBS) processes"
	@$(PYTEST) -m long $(ARGS)

check: setup  ## run only linters and mypy
	@echo "check: ruff"
	@$(BIN)/python -m ruff check --quiet .
	@$(BIN)/python -m ruff format --check --quiet .
	@echo "check: mypy"
	@$(BIN)/python -m mypy

# This target does not set up .venv and uses the `python3` of the shell. That Python needs a build
# of torch for the machine's CUDA version, and the packages that ngt/bench/gpu.py names. The tests'
# conftest.py is not loaded, because it needs more packages than these.
gpu-check:  ## on a CUDA machine: run tests marked gpu and write rates to results/published/gpu.json
	@$(or $(PYTHON),python3) -m pytest -q -o minversion=7 -o filterwarnings= -p no:cacheprovider \
	  --noconftest tests/ngt/training/test_graphs.py
	@$(or $(PYTHON),python3) -m ngt.bench.gpu --json results/published/gpu.json

setup: $(READY)  ## make .venv with the pinned packages

unlock: setup  ## free the working folder after the workflow was killed
	@$(SNAKEMAKE) --unlock

clean:  ## remove .venv and caches; results stay
	@rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build site *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# If a set-up is interrupted, the next one keeps the packages that are installed already, provided
# that .venv was made in this folder and with the Python that PYTHON names. pip writes a package's
# file RECORD last. A package without it is only partly copied, so pip must install it again.
# Packages are installed PORTION at a time, with a line for each portion. pip takes seconds to find
# that it has nothing to do, so it is not started for a portion that is there. $(READY) is written last.
PORTION := 10
KEPT = grep -qF -- "-m venv $(CURDIR)/$(VENV)" $(VENV)/pyvenv.cfg 2>/dev/null \
  $(if $(PYTHON),&& grep -qx "version = $(word 2,$(PICKED))" $(VENV)/pyvenv.cfg) \
  && $(BIN)/python -m pip --version >/dev/null 2>&1
PARTLY = for info in $(VENV)/lib/python3*/site-packages/*.dist-info; do \
  [ -e "$$info/RECORD" ] || rm -rf "$$info"; done
# Exit with 0 if each package is installed in the version given. 2.1+cpu is a build of version 2.1.
INSTALLED = import sys, importlib.metadata as m; \
  pins = [pin.split("==") for pin in sys.argv[1:]]; \
  sys.exit(any(m.version(name).partition("+")[0] != version for name, version in pins))

# PIP_CONSTRAINT pins setuptools, which builds the packages that are distributed as source.
$(READY): requirements.lock pyproject.toml
	$(eval PICKED := $(shell $(PICK_PYTHON)))
	$(if $(filter ok,$(firstword $(PICKED))),,$(error needs Python $(subst $() , or ,$(PYTHONS)); \
	  found: $(PICKED). Name one with: make $(or $(firstword $(MAKECMDGOALS)),setup) PYTHON=/path/to/python3.11))
	@if $(KEPT); then \
	  rm -f $@ && echo "setup 1/3: $(VENV) exists; what it has stays" && $(PARTLY); \
	else \
	  echo "setup 1/3: $(VENV), Python $(word 2,$(PICKED))" && \
	  rm -rf $(VENV) && "$(wordlist 3,99,$(PICKED))" -m venv $(VENV); \
	fi
	@grep '^setuptools==' requirements.lock > $(VENV)/build.txt
	@all=$$(grep -c == requirements.lock); last=0; \
	echo "setup 2/3: $$all pinned packages (some minutes the first time; torch takes the longest)"; \
	grep == requirements.lock | xargs -n $(PORTION) | while read -r some; do \
	  first=$$((last + 1)); last=$$((last + $(PORTION))); [ $$last -le $$all ] || last=$$all; \
	  if $(BIN)/python -I -c '$(INSTALLED)' $$some 2>/dev/null </dev/null; then \
	    echo "  $$first to $$last of $$all: installed already"; continue; \
	  fi; \
	  echo "  $$first to $$last of $$all: $$some"; \
	  PIP_CONSTRAINT=$(VENV)/build.txt $(BIN)/python -m pip install -qq \
	    --constraint requirements.lock $$some </dev/null || exit 1; \
	done
	@echo "setup 3/3: the suite itself"
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation --editable .
	@echo "$(CURDIR)" > $@
	@echo "setup: ready ($(VENV))"
