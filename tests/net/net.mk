# The driver of the network tests, with sanitizers and as it ships.
net_objects := $(base_src) $(net_src)

build/check/netcli: build/check/tests/net/netcli.o $(net_objects:%.c=build/check/%.o)
	@$(CC) $(checked) -o $@ $^ -L$(DEPS)/native/lib $(libs)

build/netcli: build/obj/tests/net/netcli.o $(net_objects:%.c=build/obj/%.o)
	@$(musl_cc) $(ship) $(shipld) -o $@ $^ -L$(DEPS)/musl/lib $(libs)
