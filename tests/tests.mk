# The checking build and everything that tests. Included by the Makefile.

checked := $(dialect) $(filter-out -Wnull-dereference,$(warnings)) -O1 -g -fno-omit-frame-pointer \
	-fsanitize=address,undefined -fno-sanitize-recover=all -fstack-protector-strong -ftrivial-auto-var-init=zero \
	-isystem $(DEPS)/native/include
# (-Wnull-dereference sees ghosts in code that the undefined sanitizer has rewritten; the shipping build has it.)

unit_names := $(basename $(notdir $(wildcard tests/unit/*_test.c)))

.PHONY: unit unit-build
unit: unit-build
	@tests/run-unit build/check/unit $(unit_names)

unit-build: $(unit_names:%=build/check/unit/%)

build/check/%.o: %.c build/flags | $(DEPS)/native
	@mkdir -p $(@D)
	@echo "  check $<"
	@$(CC) $(checked) -MMD -MP -c -o $@ $<

build/check/library.a: $(library:%.c=build/check/%.o)
	@rm -f $@
	@ar rcsD $@ $^

build/check/unit/%: build/check/tests/unit/%.o build/check/library.a
	@mkdir -p $(@D)
	@$(CC) $(checked) -o $@ $< build/check/library.a -L$(DEPS)/native/lib $(libs) -lcmocka

.SECONDARY: $(unit_names:%=build/check/tests/unit/%.o)

-include $(library:%.c=build/check/%.d) $(unit_names:%=build/check/tests/unit/%.d)

include tests/net/net.mk
include tests/model/model.mk
include tests/probes/probes.mk
