# Measuring inits, and a soak. The measuring program is static, so that its own start does not blur what it measures.
build/check/measure: tests/bench/measure.c build/flags | $(DEPS)/musl
	@mkdir -p $(@D)
	@$(musl_cc) $(dialect) $(warnings) -Os -static -o $@ $<

bench soak: build/init build/check/measure
	@deps/install build demo test containers
	@tests/bench/$@ $(BENCH_FLAGS)
