# Sets up what it needs in .venv/ and then calls the command line, pytest or ruff. `make help` lists all targets.

PYTHON ?= python3
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# The simulators' own makefiles must not see our variables.
unexport MAKEFLAGS MFLAGS

BIN := .venv/bin
TILEWRIGHT := $(BIN)/tilewright
# What is installed: the package alone, with what simulation, networks, the documentation or FPGAs need, or with everything.
# Named after the contents of pyproject.toml and this folder: another list of packages is another name, and so is a copy of
# .venv/, whose programs run the Python of the folder that it was made in.
PLACE := $(shell pwd -P | cksum | cut -d ' ' -f 1)
SUM := $(shell cksum < pyproject.toml | cut -d ' ' -f 1)
PLAIN := .venv/plain-$(PLACE)-$(SUM)
SIMULATION := .venv/sim-$(PLACE)-$(SUM)
NETWORK := .venv/network-$(PLACE)-$(SUM)
EXPLORATION := .venv/explore-$(PLACE)-$(SUM)
SOC := .venv/soc-$(PLACE)-$(SUM)
DOCUMENTATION := .venv/docs-$(PLACE)-$(SUM)
FPGA := .venv/fpga-$(PLACE)-$(SUM)
DEVELOPMENT := .venv/dev-$(PLACE)-$(SUM)
# One whose Python has gone is none.
$(shell [ -x $(BIN)/python ] || rm -f .venv/*-[0-9]*)

# Tests start hundreds of Pythons: what one of them has compiled the others take, beside no source, even where the
# environment says that nothing is to be written.
COMPILED := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX="$(CURDIR)/build/pycache"

# Variables that are passed on as options where they are set.
preset = $(if $(PRESET),--preset "$(PRESET)")
without = $(if $(WITHOUT),--without "$(WITHOUT)")
engines = $(if $(ENGINES),--engines "$(ENGINES)")
set = $(if $(SET),--set "$(SET)")
sim = $(if $(SIM),--sim "$(SIM)")
scheduler = $(if $(SCHEDULER),--scheduler "$(SCHEDULER)")
# A campaign of the random cases that the stages count.
campaign = $(TILEWRIGHT) campaign $(1) $(scheduler)

# A variable that the target does not take, by its line in `make help`, would have no effect, and nobody would notice.
goals := $(or $(MAKECMDGOALS),$(.DEFAULT_GOAL))
taken := $(foreach goal,$(goals),$(shell sed -n 's/^$(goal):.*\[\(.*\)\]$$/\1/p' $(firstword $(MAKEFILE_LIST))))
given := $(foreach word,$(MAKEOVERRIDES),$(if $(findstring =,$(word)),$(firstword $(subst =, ,$(word)))))
$(foreach name,$(filter-out PYTHON,$(given)),$(if $(filter $(name)=%,$(taken)),,$(error $(goals) takes no $(name))))

.PHONY: help sim test verilog bench explore campaign fpga waves mutate silicon docs stages lint format clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r target text; \
		do printf '  make %-8s %s\n' "$$target" "$$text"; done

sim: $(SIMULATION) $(if $(filter all network detector transformer spotter,$(W)),$(NETWORK)) $(if $(filter system,$(W)),$(SOC)) ## run workloads on the RTL and compare every byte [W=all or name PRESET= SET=tmau.max_burst=8 SIM=icarus WAVES=1 LAYERS= CORES=4]
	@$(TILEWRIGHT) sim $(preset) $(set) $(sim) $(if $(W),--workload "$(W)") $(if $(LAYERS),--layers "$(LAYERS)") $(if $(CORES),--cores "$(CORES)") $(if $(filter-out 0,$(WAVES)),--waves)

test: lint ## lint, golden checks, unit tests, formal proofs, cocotb tests [T=path LONG=1]
	@$(COMPILED) $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder $(if $(LONG),,-m "not long") $(T)

verilog: $(PLAIN) ## write Verilog, and files for other tools [PRESET= TOP= CORES=4 PROCESSORS=4 WITHOUT=lanes,im2col ENGINES=tmau,conv L2=1 SET=tmau.max_burst=8,pe.regs=64 NAME=prefix OUT=folder]
	@$(TILEWRIGHT) verilog $(preset) $(without) $(engines) $(if $(L2),--l2) $(set) $(if $(CORES),--cores "$(CORES)") $(if $(PROCESSORS),--processors "$(PROCESSORS)") $(if $(TOP),--top "$(TOP)") $(if $(NAME),--name "$(NAME)") $(if $(OUT),--out "$(OUT)")

bench: $(SIMULATION) ## measure every speed figure, beside its limit [PRESET= SET=tmau.max_burst=8 SIM=icarus ENGINE=conv]
	@$(TILEWRIGHT) bench $(preset) $(set) $(sim) $(if $(ENGINE),--engine "$(ENGINE)")

explore: $(EXPLORATION) ## what parameters cost and bring: table, pictures and page [SPACE=mover or file.toml SCHEDULER=tcp://host:8786]
	@$(TILEWRIGHT) explore $(or $(SPACE),mover) $(scheduler)

campaign: $(EXPLORATION) ## random cases of every kind on golden and RTL [HOURS=1 CASES=1000 SEED=1 PRESET= SCHEDULER=tcp://host:8786]
	@$(call campaign,$(if $(CASES),--cases "$(CASES)",--hours "$(or $(HOURS),1)") $(if $(SEED),--seed "$(SEED)") $(preset))

fpga: $(FPGA) ## place and route on a Lattice ECP5, slow [PRESET= TOP= WITHOUT=lanes SET=tmau.max_burst=8 DEVICE=45k BOARD=ulx3s-85f]
	@$(TILEWRIGHT) fpga $(preset) $(without) $(set) $(if $(TOP),--top "$(TOP)") $(if $(DEVICE),--device "$(DEVICE)") $(if $(BOARD),--board "$(BOARD)")

waves: $(DEVELOPMENT) ## run one test and leave its waveforms in build/waves/ [T=path or path::test]
	@$(if $(T),,echo "make waves needs the test to run, as in: make waves T=tests/unit/lib/test_stream.py"; exit 2;) \
		TILEWRIGHT_WAVES=1 $(BIN)/pytest $(T)

mutate: $(DEVELOPMENT) ## count the mutants of the hardware that tests and proofs notice, an hour [BLOCK=tmau/walk COUNT=16 SCHEDULER=tcp://host:8786]
	@$(TILEWRIGHT) mutate $(if $(BLOCK),--block "$(BLOCK)") $(if $(COUNT),--count "$(COUNT)") $(scheduler)

silicon: $(PLAIN) ## pack all that a machine with a GPU needs into one archive [OUT=file.tar.gz]
	@$(TILEWRIGHT) silicon pack $(if $(OUT),--out "$(OUT)")

docs: $(DOCUMENTATION) ## build the documentation in build/docs/site/
	@$(TILEWRIGHT) docs

stages: $(if $(FRESH),$(DEVELOPMENT),$(PLAIN)) ## write STAGES.md from the figures in build/results/, or measure all of them first: hours [FRESH=1 SCHEDULER=tcp://host:8786]
	@status=0; $(if $(FRESH),rm -rf build/results; \
		$(COMPILED) $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder || status=1; \
		$(call campaign,--cases 50000 --kind loads --kind mixed) || status=1; \
		$(call campaign,--cases 5000 --kind loads --kind mixed --preset default) || status=1; \
		$(call campaign,--cases 20000 --kind jobs --kind clusters) || status=1; \
		$(call campaign,--cases 2000 --kind programs --kind networks) || status=1; \
		$(call campaign,--cases 200 --kind networks-rtl) || status=1; \
		$(TILEWRIGHT) mutate $(scheduler) || status=1; \
		$(TILEWRIGHT) mutate --judge proofs $(scheduler) || status=1;) \
	$(TILEWRIGHT) stages; exit $$status

lint: $(DEVELOPMENT) ## check style, likely bugs and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(DEVELOPMENT) ## format the sources
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean: ## remove everything that was built; .venv/ stays
	rm -rf build

# What was once complete is added to, or brought up to date; a set-up that was interrupted is begun again: the names of what
# is there are gone until pip has ended.
.venv/%-$(PLACE)-$(SUM):
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Tilewright needs Python 3.11 or newer")'
	@echo "Setting up .venv/ ($*), once: packages are downloaded, which takes minutes."
	@before="$$(ls .venv/*-$(PLACE)-* 2>/dev/null || true)"; \
		[ -n "$$before" ] || $(PYTHON) -m venv --clear .venv; \
		rm -f .venv/*-[0-9]*; \
		$(BIN)/pip install --quiet --disable-pip-version-check --no-warn-script-location --no-compile \
			--editable '.$(if $(filter plain,$*),,[$*])'; \
		touch $(patsubst %,.venv/%-$(PLACE)-$(SUM),plain $* $(if $(filter dev,$*),sim network docs fpga explore) \
			$(if $(filter explore,$*),sim network) $(if $(filter soc,$*),sim)) \
			$$(grep -e '-$(SUM)$$' <<< "$$before" || true)
