/*
 * The configuration: filled once from the environment (nothing but config.c walks it), checked as a
 * whole, then const. Names, defaults and meanings: the README's table, which comes from config.c's
 * own.
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

/* What the configuration is read for: decides what must be there and what is read at all. */
enum config_use {
	CONFIG_LIFE,	 /* everything; secrets too */
	CONFIG_SELFTEST, /* what the checks need; no credential is read, nothing is required */
	CONFIG_USE__MAX
};

#define CONFIG_DOTENV_MAX 16384

struct config {
	struct gh_settings gh; /* scope, credentials, name, labels, group, flags, network */
	char root[1024];       /* absolute; "" when none was found (an error in the life cycle) */
	struct user user;      /* whom listener, probes and file writing run as */
	bool as_root;	       /* init runs as uid 0 */
	bool allow_root;       /* RUNNER_ALLOW_RUNASROOT */
	bool force_ghes;       /* GITHUB_ACTIONS_RUNNER_FORCE_GHES */
	int64_t stop_ms, drain_ms, idle_ms; /* idle_ms 0: none */
	enum probe_tier gate;
	enum probe_gpu gpu;
	int64_t gpu_wait_ms, gpu_watch_ms;
	char constraints[1024];
	bool labels_from_facts;
	char labels_prefix[64];
	struct config_cache caches[CONFIG_CACHES_MAX];
	unsigned n_caches;
	struct { /* what the checks are measured by */
		char image[256], python[1024], cuda[16], suffix[32];
		unsigned gpus;		      /* 0: not said */
		double gemm_tflops, copy_gbs; /* < 0: by model, 0: none */
		uint64_t gpu_max_used;	      /* bytes; 0: any */
	} expect;
	uint64_t cache_min_free;
	enum log_level log_level;
	bool log_json;
	char state_dir[1024]; /* as asked; "" for the default search */
	bool state_dir_given;
	char api_url[URL_TEXT_MAX];	/* text of gh.scope.api; "" without RUNNER_URL */
	char dotenv[CONFIG_DOTENV_MAX]; /* .env of the root as init found it, before any job */
	struct probe_settings probe;	/* pointers into this struct and the agent's environment */
};

/* Reads the environment into *c, which must be zeroed static memory. All problems are collected:
 * each is logged as one line naming variable, value (never a secret), reason and what is accepted;
 * warnings too. Sets the log up as INIT_LOG and INIT_LOG_LEVEL say. Returns 0, or the exit status
 * XC_CONFIG. No side effect but reading files named by *_FILE, passwd, group, os-release and the
 * runner root. May block on those; before PID 1 supervises anything. */
int config_read(struct config *c, char *const *envp);
/* The same for another use than the life cycle. */
int config_read_for(struct config *c, char *const *envp, enum config_use use);

/* `--check-config`: every setting, its source and meaning on `out` (secrets as "set"), or one JSON
 * object; all problems. Exit status as config_read. */
int config_show(struct config *c, char *const *envp, bool json, FILE *out);

/* Overwrites, in the process's initial environment, every secret setting (all duplicates, the
 * X_FILE names and ACTIONS_RUNNER_INPUT_* too), name and value, so that /proc/PID/environ shows
 * none, and takes them out of envp. Before any fork. */
void config_wipe_environ(char **envp);

/* The environment of the agent and of probes: the container's less secrets, their _FILE names,
 * ACTIONS_RUNNER_INPUT_* and INIT_*, plus what the contract adds (cache directories, HOME, ...).
 * Static storage, made anew by each call (config_read calls it too and keeps it in c->probe.envp);
 * strings that did not change still belong to envp. NULL-terminated. */
const char *const *config_agent_env(const struct config *c, char *const *envp);

#endif
