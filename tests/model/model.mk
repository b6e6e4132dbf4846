# The model of the life cycle, over the table that init compiles. Included by tests/tests.mk.

.PHONY: model
model: build/check/model
	@build/check/model
	@tests/model/mutants.sh "$(CC)" build/check/mutants

build/check/model: tests/model/model.c init/life.c init/life.def init/life.h base/exitcode.h
	@mkdir -p $(@D)
	@$(CC) $(dialect) $(warnings) -O1 -g -o $@ tests/model/model.c init/life.c
