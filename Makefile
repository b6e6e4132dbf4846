# make            builds build/init (and, once, the pinned libraries); downloads nothing
# make fetch      brings the libraries' sources: from DEPS_DIR if set, else from Debian's archive
# make demo       packages, fetch, build, and a runner's whole life against a GitHub of our own
# make test       packages, fetch, build, and every check that fits into ten minutes
# make unit | lint | fuzz | coverage | e2e | test-long | test-containers | bench | soak | chaos: one of them alone
#
# What a machine needs different goes into config.mak (for example DEPS_OUT, where the libraries are kept).

-include config.mak

CLANG    ?= clang
PYTHON   ?= /usr/bin/python3
DEPS_OUT ?= build/deps
SECONDS  ?= 60
ifeq ($(origin CC),default)
CC := gcc
endif

VERSION := 0.1.0

# The folders' lists hold rules of their own, and come before `all`.
.DEFAULT_GOAL := all

# ---- What is built ---------------------------------------------------------------------------------------------

folders := base net gh probes init
-include $(folders:%=%/sources.mk)
sources := $(foreach f,$(folders),$($(f)_src))
library := $(filter-out init/main.c,$(sources))

# One folder per state of the pins and of the recipe, so that several work trees can share DEPS_OUT.
deps_key := $(shell cat deps/pins deps/build deps/mbedtls_config.h deps/getrandom.c | sha256sum | cut -c1-12)
DEPS     := $(abspath $(DEPS_OUT))/$(deps_key)

warnings := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
	-Wcast-qual -Wwrite-strings -Wswitch-enum -Wundef -Wvla -Wnull-dereference -Werror
dialect  := -std=c11 -D_GNU_SOURCE -I.
libs     := -lmbedtls -lmbedx509 -lmbedcrypto -lcjson

CFLAGS  ?= -Os -g
ship     := $(dialect) $(warnings) $(CFLAGS) -fno-pie -fstack-protector-strong -ftrivial-auto-var-init=zero \
	-ffunction-sections -fdata-sections -ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(DEPS)/musl=/deps $(EXTRA_CFLAGS)
shipld   := -static -no-pie -Wl,--gc-sections -Wl,-z,noseparate-code -Wl,-z,relro -Wl,-z,now -Wl,--build-id=sha1 \
	-Wl,--fatal-warnings
musl_cc   = REALGCC=$(CC) $(DEPS)/musl/bin/musl-gcc

.PHONY: all deps fetch packages clean distclean
.DELETE_ON_ERROR:
all: build/init

build/init: build/init.full tests/prove-static
	@objcopy --only-keep-debug $< build/init.debug
	@strip -o $@.new $<
	@cd build && objcopy --add-gnu-debuglink=init.debug init.new
	@tests/prove-static $@.new
	@mv $@.new $@

build/init.full: $(sources:%.c=build/obj/%.o) init/pid1.ld
	@echo "  link  build/init"
	@$(musl_cc) $(ship) $(shipld) -o $@ $(filter %.o,$^) -Wl,-T,init/pid1.ld -L$(DEPS)/musl/lib $(libs)

build/obj/%.o: %.c build/flags | $(DEPS)/musl
	@mkdir -p $(@D)
	@echo "  cc    $<"
	@$(musl_cc) $(ship) -MMD -MP -c -o $@ $<

# ---- The pinned libraries -------------------------------------------------------------------------------------

deps: $(DEPS)/musl

$(DEPS)/musl $(DEPS)/native:
	@echo "  deps  $(@F): the pinned libraries, once, about a minute"
	@DEPS_CC=$(CC) deps/build $(@F) $(abspath $(DEPS_OUT))/src $@

packages:
	@deps/install build demo test

fetch:
	@DEPS_DIR=$(DEPS_DIR) deps/fetch $(abspath $(DEPS_OUT))/src

-include tests/tests.mk # not in the context of an image build

# ---- Facts of this build, written when they change and only then ------------------------------------------------

facts := $(shell VERSION=$(VERSION) INIT_COMMIT=$(INIT_COMMIT) tests/build-facts build '$(CC) $(ship) $(shipld) $(checked) $(covered) $(fuzzed) $(DEPS)')
ifneq ($(facts),)
$(error $(facts))
endif

# ---- Housekeeping -----------------------------------------------------------------------------------------------

clean:
	rm -rf $(filter-out build/deps,$(wildcard build/*))

distclean:
	rm -rf build

-include $(sources:%.c=build/obj/%.d)
