# PID 1: our binary alone (`pid1`, part of `make test`), or beside Debian's inits with a table of who passes what (`peers`).

.PHONY: pid1 peers
pid1: build/init build/check/payload
	@INITS=init tests/run-pytest pid1 tests/pid1 $(PYTEST_FLAGS)

peers: build/init build/check/payload
	@tests/run-pytest peers tests/pid1 $(PYTEST_FLAGS)

# What runs below an init in its tests: static, so that it starts fast and everywhere.
build/check/payload: tests/pid1/payload.c build/flags | $(DEPS)/musl
	@mkdir -p $(@D)
	@$(musl_cc) $(dialect) $(warnings) -Os -static -o $@ $<
