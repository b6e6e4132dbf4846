/*
 * The configuration: filled once from the environment (the only getenv of the program is in
 * config.c), checked as a whole, then const. Names, defaults and meanings: the README's table,
 * which comes from config.c's own.
 */
#ifndef INIT_CONFIG_H
#define INIT_CONFIG_H

#include "base/err.h"
#include "base/log.h"
#include "gh/runner.h"
#include "init/user.h"
#include "probes/probes.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CONFIG_CACHES_MAX 16

struct config_cache {
	char var[64]; /* TILELANG_CACHE_DIR */
	char path[1024];
	bool defaulted; /* init sets it for the agent */
};

struct config {
	struct gh_settings gh; /* scope, credentials, name, labels, group, flags, network */
	char root[1024];       /* absolute; "" when none was found (an error in the life cycle) */
	struct user user;      /* whom listener, probes and file writing run as */
	bool as_root;	       /* init runs as uid 0 */
	int64_t stop_ms, drain_ms, idle_ms; /* idle_ms 0: none */
	enum probe_tier gate;
	enum probe_gpu gpu;
	int64_t gpu_wait_ms, gpu_watch_ms;
	char constraints[1024];
	bool labels_from_facts;
	char labels_prefix[64];
	struct config_cache caches[CONFIG_CACHES_MAX];
	unsigned n_caches;
	uint64_t cache_min_free;
	enum log_level log_level;
	bool log_json;
	char state_dir[1024]; /* as asked; "" for the default search */
	bool state_dir_given;
	struct probe_settings probe; /* pointers into this struct and the agent's environment */
};

/* Reads environ into the one static config. All problems are collected: each is logged as one line,
 * and the number of them is returned (0: fine). No side effect but reading files named by *_FILE,
 * passwd and the runner root. */
int config_read(struct config *c, char *const *envp);

/* `--check-config`: every setting, its source and meaning on `out` (secrets as "set"), all
 * problems. Exit status. */
int config_show(char *const *envp, FILE *out);

/* Overwrites, in the process's initial environment, the bytes of every secret value (all
 * duplicates, X_FILE names and ACTIONS_RUNNER_INPUT_* too), so that /proc/1/environ shows none.
 * Before any fork. */
void config_wipe_environ(char **envp);

/* The environment of the agent and of probes: the container's less secrets, their _FILE names,
 * ACTIONS_RUNNER_INPUT_* and INIT_*, plus what contract 3 adds (cache defaults, HOME, ...). Static
 * storage, made once. NULL-terminated. */
const char *const *config_agent_env(const struct config *c, char *const *envp);

#endif
