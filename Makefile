# The common tasks; `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help check test types mutants sim bench docs

SEED ?= 1

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

check: ## format, lint, types, layers and the tests that need no server
	./test --fast

test: ## everything except the long tests
	./test

types: ## after an API change: write its OpenAPI document and TypeScript types
	.venv/bin/python -m scripts.typescript

mutants: ## check that a test fails for each broken promise; continues where the last run stopped
	.venv/bin/python -m tests.mutants

sim: ## replay one history of the simulation: make sim SEED=7
	.venv/bin/python -m tests.simulation --seed $(SEED)

bench: ## measure Holdfast and the raw driver
	.venv/bin/python -m bench

docs: ## run the code in the README, the docs and the examples
	./test tests/docs -q
