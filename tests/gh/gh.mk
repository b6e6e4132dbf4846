# The driver of the protocol's tests, with sanitizers and as it ships.
gh_objects := $(base_src) $(net_src) $(gh_src)

build/check/ghcli: build/check/tests/gh/ghcli.o $(gh_objects:%.c=build/check/%.o)
	@$(CC) $(checked) -o $@ $^ -L$(DEPS)/native/lib $(libs)

build/ghcli: build/obj/tests/gh/ghcli.o $(gh_objects:%.c=build/obj/%.o)
	@$(musl_cc) $(ship) $(shipld) -o $@ $^ -L$(DEPS)/musl/lib $(libs)
