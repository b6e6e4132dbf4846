# Runners killed at random moments: make chaos N=1000 SEED=7. Included by tests/tests.mk.
N    ?= 100
SEED ?=

.PHONY: chaos chaos-shell
chaos: build/init
	@$(PYTHON) tests/chaos/chaos.py --lives $(N) --seed "$(SEED)" --json build/chaos-init.json

# The same lives with a shell entrypoint, for comparison.
chaos-shell:
	@mkdir -p build
	@$(PYTHON) tests/chaos/chaos.py --subject shell --lives $(N) --seed "$(SEED)" --json build/chaos-shell.json
