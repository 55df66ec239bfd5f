# One word per habit; `make` alone prints them.
.DEFAULT_GOAL := help
.PHONY: help check test types mutants sim bench docs

SEED ?= 1

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

check: ## format, lint, types, layers and the tests that need no server
	./test --fast

test: ## everything but the long tests
	./test

types: ## after a change of an API: its document and the types of the pages
	.venv/bin/python -m scripts.typescript

mutants: ## break every promise and see a test turn red; an hour at a time, goes on where it stopped
	.venv/bin/python -m tests.mutants

sim: ## replay one history of the simulation: make sim SEED=7
	.venv/bin/python -m tests.simulation --seed $(SEED)

bench: ## our figures beside the raw driver's
	.venv/bin/python -m bench

docs: ## run the code in the README, the docs and the examples
	./test tests/docs -q
