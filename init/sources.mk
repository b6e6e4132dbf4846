# What runs in PID 1 while it waits comes first, so that it shares pages.
init_src := init/main.c init/passthru.c init/loop.c init/sig.c init/spawn.c init/killtree.c init/tap.c init/tap_line.c init/fault.c
init_src += init/run.c init/act.c init/watch.c init/answer.c init/end.c init/life.c init/agent.c init/stop.c init/step.c init/steps.c \
	init/oom.c init/registrar.c
init_src += init/state.c init/journal.c init/registrar_child.c
init_src += init/cli.c init/forms.c init/config.c init/config_env.c init/config_find.c init/config_set.c init/config_show.c \
	init/config_table.c init/netcheck.c init/dirs.c init/files.c init/user.c
