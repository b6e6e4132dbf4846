# The driver of the network tests, with sanitizers (and calls that can be made to fail) and as it ships.
net_objects := $(base_src) $(net_src)
net_wraps   := calloc socket connect send recv poll getsockopt getrandom

build/check/netcli: build/check/tests/net/netcli.o build/check/tests/net/netfail.o $(net_objects:%.c=build/check/%.o)
	@$(CC) $(checked) $(net_wraps:%=-Wl,--wrap=%) -o $@ $^ -L$(DEPS)/native/lib $(libs)

build/netcli: build/obj/tests/net/netcli.o $(net_objects:%.c=build/obj/%.o)
	@$(musl_cc) $(ship) $(shipld) -o $@ $^ -L$(DEPS)/musl/lib $(libs)

build/cover/netcli: build/cover/tests/net/netcli.o build/cover/tests/net/netfail.o $(net_objects:%.c=build/cover/%.o)
	@$(CC) $(covered) $(net_wraps:%=-Wl,--wrap=%) -o $@ $^ -L$(DEPS)/native/lib $(libs)
