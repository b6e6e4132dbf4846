# The checks from the command line, for tests/probes. Statically linked, as init is.

build/test/probecli: build/obj/tests/probes/probecli.o $(library:%.c=build/obj/%.o)
	@mkdir -p $(@D)
	@echo "  link  $@"
	@$(musl_cc) $(ship) $(shipld) -o $@ $^ -L$(DEPS)/musl/lib $(libs)

build/test/fake_libcuda.so: tests/probes/fake_libcuda.c
	@mkdir -p $(@D)
	@$(CC) -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -shared -fPIC -o $@ $<

.PHONY: probes probes-build
probes-build: build/test/probecli build/test/fake_libcuda.so

probes: build/init probes-build
	@tests/run-pytest probes tests/probes $(PYTEST_FLAGS)

-include build/obj/tests/probes/probecli.d
