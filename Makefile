# Sets up what it needs in .venv/ and then calls the command line, pytest or ruff. `make help` lists all targets.

PYTHON ?= python3
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# The simulators' own makefiles must not see our variables.
unexport MAKEFLAGS MFLAGS

BIN := .venv/bin
TILEWRIGHT := $(BIN)/tilewright
# Named after the contents of pyproject.toml, and written last: another list of packages, or a set-up that was
# interrupted, is another name.
READY := .venv/ready-$(shell cksum < pyproject.toml | cut -d ' ' -f 1)

# Variables that are passed on as options where they are set.
preset = $(if $(PRESET),--preset $(PRESET))
sim = $(if $(SIM),--sim $(SIM))

.PHONY: help sim test verilog bench waves mutate docs stages lint format clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r target text; \
		do printf '  make %-8s %s\n' "$$target" "$$text"; done

sim: $(READY) ## run the workloads on the RTL and compare every byte [PRESET= SIM=icarus W=workload WAVES=1]
	@$(TILEWRIGHT) sim $(preset) $(sim) $(if $(W),--workload $(W)) $(if $(filter-out 0,$(WAVES)),--waves)

test: lint ## lint, golden checks, unit tests, formal proofs, cocotb tests [T=path LONG=1]
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder $(if $(LONG),,-m "not long") $(T)

verilog: $(READY) ## write Verilog, and files for other tools [PRESET= TOP= NAME=prefix OUT=folder]
	@$(TILEWRIGHT) verilog $(preset) $(if $(TOP),--top $(TOP)) $(if $(NAME),--name $(NAME)) $(if $(OUT),--out "$(OUT)")

bench: $(READY) ## measure every speed figure, beside its limit [PRESET= SIM=icarus ENGINE=tmau]
	@$(TILEWRIGHT) bench $(preset) $(sim) $(if $(ENGINE),--engine $(ENGINE))

waves: $(READY) ## run one test and leave its waveforms in build/waves/ [T=path or path::test]
	@$(if $(T),,echo "make waves needs the test to run, as in: make waves T=tests/unit/lib/test_stream.py"; exit 2;) \
		TILEWRIGHT_WAVES=1 $(BIN)/pytest $(T)

mutate: $(READY) ## count the mutants that random runs and proofs notice, some minutes [BLOCK=]
	@$(TILEWRIGHT) mutate $(if $(BLOCK),--block $(BLOCK))

docs: $(READY) ## build the documentation in build/docs/site/
	@$(TILEWRIGHT) docs

stages: $(READY) ## write STAGES.md from the figures that tests and benches left in build/results/
	@$(TILEWRIGHT) stages

lint: $(READY) ## check style, likely bugs and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(READY) ## format the sources
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean: ## remove everything that was built; .venv/ stays
	rm -rf build

# A set-up that was once complete is brought up to date; any other is begun again.
$(READY):
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Tilewright needs Python 3.11 or newer")'
	@echo "Setting up .venv/: this takes a minute or two, once."
	@rm .venv/ready-* 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@$(BIN)/pip install --disable-pip-version-check --no-warn-script-location --editable '.[dev]'
	@touch $@
