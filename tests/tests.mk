# Everything that tests. Included by the Makefile; each target below also stands alone.

.PHONY: demo test unit unit-build lint docs format fuzz fuzz-build coverage e2e test-long test-containers bench soak
jobs := $(shell nproc)

# The steps of `make test`, in this order. `tests/run-all` adds up what they counted.
steps := build unit model-short lint fuzz-short pid1 behaviour chaos-short containers-short

test:
	@deps/install build demo test containers
	@$(MAKE) --no-print-directory fetch
	@tests/run-all "$(MAKE)" $(steps)

.PHONY: build model-short fuzz-short behaviour chaos-short containers-short
build:
	@$(MAKE) --no-print-directory -j$(jobs) all unit-build fuzz-build $(drivers)

demo:
	@deps/install build demo
	@$(MAKE) --no-print-directory fetch
	@$(MAKE) --no-print-directory -j$(jobs) all
	@tests/demo

# What a user or a peer sees, on the real binaries: every folder of Python tests but those with a step of their own or
# more time than `make test` has.
drivers := build/init build/check/payload build/netcli build/check/netcli build/ghcli build/check/ghcli probes-build
other_folders := tests/pid1/ tests/containers/ tests/image/ tests/deploy/ tests/long/
python_folders = $(filter-out $(other_folders),$(sort $(dir $(wildcard tests/*/test_*.py))))
behaviour: $(drivers)
	@PYTEST_WORKERS=4 tests/run-pytest behaviour $(python_folders) --cases 2 $(PYTEST_FLAGS)

e2e: build/init
	@tests/run-pytest e2e tests/e2e $(PYTEST_FLAGS)

test-long: $(drivers)
	@deps/install build demo test
	@PYTEST_WORKERS=4 tests/run-pytest test-long $(python_folders) tests/long $(PYTEST_FLAGS)

# Images and manifests, and real containers of the repository's own Dockerfile. One at a time: they share a store.
test-containers:
	@deps/install build demo test containers
	@$(MAKE) --no-print-directory fetch
	@$(MAKE) --no-print-directory -j$(jobs) all
	@PYTEST_WORKERS=0 tests/run-pytest $(or $(STEP),test-containers) tests/image tests/deploy tests/containers $(PYTEST_FLAGS)

# A container of ours inside another container often may not start: there, and only there, they are left out.
containers-short:
	@if tests/can-run-containers; then $(MAKE) --no-print-directory test-containers STEP=$@ PYTEST_FLAGS="--cases 2"; \
	else echo "containers: podman cannot start a container on this machine, so none was tested"; fi

model-short:
	@if $(MAKE) --no-print-directory model; then tests/count $@ 1 0; else tests/count $@ 0 1; fi

# Lives that end at random moments: the same ones every time, and ones that nobody has seen yet.
chaos-short: build/init
	@tests/run-chaos 100 7 $$(date +%s)

# ---- The checking build: the machine's own libc, address and undefined sanitizers ----------------------------------

# (Not -Wnull-dereference: it sees ghosts in code that a sanitizer has rewritten. The shipping build has it.)
native  := $(dialect) $(filter-out -Wnull-dereference,$(warnings)) -g -fno-omit-frame-pointer \
	-isystem $(DEPS)/native/include
checked := $(native) -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fstack-protector-strong \
	-ftrivial-auto-var-init=zero
covered := $(native) -O0 --coverage
fuzzed  := $(dialect) -Wall -Wextra -Wno-unknown-warning-option -O1 -g -fno-omit-frame-pointer \
	-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -isystem $(DEPS)/native/include

unit_names := $(basename $(notdir $(wildcard tests/unit/*_test.c)))
fuzz_names := $(basename $(notdir $(wildcard tests/fuzz/*_fuzz.c)))
native_libs := -L$(DEPS)/native/lib $(libs)

# $(call objects,STATE,COMPILER,FLAGS): how build/STATE/ comes from the sources
define objects
build/$(1)/%.o: %.c build/flags | $$(DEPS)/native
	@mkdir -p $$(@D)
	@echo "  $(1)  $$<"
	@$(2) $(3) -MMD -MP -c -o $$@ $$<

build/$(1)/library.a: $(library:%.c=build/$(1)/%.o)
	@rm -f $$@
	@ar rcsD $$@ $$^

-include $(library:%.c=build/$(1)/%.d) $(unit_names:%=build/$(1)/tests/unit/%.d) $(fuzz_names:%=build/$(1)/tests/fuzz/%.d)
.SECONDARY: $(unit_names:%=build/$(1)/tests/unit/%.o) $(fuzz_names:%=build/$(1)/tests/fuzz/%.o)
endef
$(eval $(call objects,check,$$(CC),$$(checked)))
$(eval $(call objects,cover,$$(CC),$$(covered)))
$(eval $(call objects,fuzz,$$(CLANG),$$(fuzzed)))

unit: unit-build
	@tests/run-unit build/check/unit $(unit_names)

unit-build: $(unit_names:%=build/check/unit/%)

build/check/unit/%: build/check/tests/unit/%.o build/check/library.a
	@mkdir -p $(@D)
	@$(CC) $(checked) -o $@ $^ $(native_libs) -lcmocka

# ---- Coverage: the same tests without sanitizers, and which lines they reached -----------------------------------

coverage: $(unit_names:%=build/cover/unit/%) build/cover/netcli
	@find build/cover -name '*.gcda' -delete
	@tests/run-unit build/cover/unit $(unit_names)
	@NETCLI=$(CURDIR)/build/cover/netcli tests/run-pytest coverage-net tests/net
	@tests/run-coverage build/cover

build/cover/unit/%: build/cover/tests/unit/%.o build/cover/library.a
	@mkdir -p $(@D)
	@$(CC) $(covered) -o $@ $^ $(native_libs) -lcmocka

# ---- Fuzzing --------------------------------------------------------------------------------------------------------

fuzz: fuzz-build
	@tests/run-fuzz build/fuzz/run $(SECONDS) $(fuzz_names)

fuzz-short: fuzz-build
	@STEP=fuzz-short tests/run-fuzz build/fuzz/run 10 $(fuzz_names)

fuzz-build: $(fuzz_names:%=build/fuzz/run/%)

build/fuzz/run/%: build/fuzz/tests/fuzz/%.o build/fuzz/library.a
	@mkdir -p $(@D)
	@$(CLANG) $(fuzzed) -fsanitize=fuzzer -o $@ $^ $(native_libs)

# ---- Looking without running -----------------------------------------------------------------------------------------

lint: | $(DEPS)/native
	@tests/run-lint $(dialect) -isystem $(DEPS)/native/include

# The tables of the documentation that the binary knows itself.
docs: build/init
	@$(PYTHON) tests/support/tables.py --write

format:
	clang-format -i $$(git ls-files -co --exclude-standard '*.c' '*.h')

include tests/net/net.mk
include tests/gh/gh.mk
include tests/pid1/pid1.mk
include tests/bench/bench.mk
include tests/model/model.mk
include tests/probes/probes.mk
include tests/chaos/chaos.mk
