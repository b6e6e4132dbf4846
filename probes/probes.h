/*
 * Checks of the node: GPU, stack, files, limits, network. One table (probes/table.c) holds every
 * check;
 * --list, --selftest, the gate, the watch and the documentation come from it.
 *
 * Everything here may block up to its deadline and runs in children of PID 1, never in PID 1.
 */
#ifndef PROBES_PROBES_H
#define PROBES_PROBES_H

#include "base/deadline.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum probe_tier { TIER_OFF, TIER_BUILD, TIER_FAST, TIER_DEEP, TIER__MAX };
enum probe_gpu { PROBE_GPU_OFF, PROBE_GPU_AUTO, PROBE_GPU_REQUIRED, PROBE_GPU__MAX };

struct probe_settings;

/* What the network check found. */
struct probe_net {
	bool ok;
	char detail[256]; /* one line: what was reached, or at which step it failed and why */
	bool have_skew;	  /* a verified answer carried a Date */
	int64_t skew_s;	  /* our clock minus theirs */
};

/* DNS, TCP, TLS and a Date from the API host. net/ is not below probes/, so init/ gives the
 * function. Runs in a child that is killed at the deadline; fills *out. */
typedef void probe_net_fn(const struct probe_settings *s, struct deadline d, struct probe_net *out);

/* Everything a check may know of the configuration. Strings are borrowed; "" or NULL: unset. */
struct probe_settings {
	const char *root;	    /* runner root; "" none found */
	const char *constraints;    /* INIT_CONSTRAINTS, or the file beside the binary */
	const char *cache_dirs[16]; /* NAME=path of each cache directory in force */
	unsigned n_cache_dirs;
	uint64_t cache_min_free; /* bytes */
	enum probe_gpu gpu;
	int64_t gpu_wait_ms;
	const char *api_url; /* base of the API for the network checks; "" none */
	const char *https_proxy, *http_proxy, *no_proxy, *ca_file, *ca_dir;
	int64_t http_ms;
	int64_t build_epoch;	 /* seconds */
	const char *const *envp; /* environment of the children: the job's, without secrets */
	uid_t uid;		 /* user the checks run as; (uid_t)-1: unchanged */
	gid_t gid;
	probe_net_fn *net;	   /* NULL: the network checks are skipped */
	const char *version;	   /* of init, for the report */
	const char *image;	   /* INIT_IMAGE, else TILEOPS_RUNNER_IMAGE: name of the image */
	const char *python;	   /* INIT_PYTHON; unset: python3 in PATH */
	const char *expect_cuda;   /* INIT_EXPECT_CUDA, "12.9" or "any": what torch is built for */
	const char *expect_suffix; /* INIT_EXPECT_SUFFIX, "cu129": local version of torch's trio */
	unsigned expect_gpus;	   /* INIT_EXPECT_GPUS; 0: not said */
	double floor_gemm_tflops;  /* INIT_FLOOR_GEMM_TFLOPS; < 0: by model, 0: none */
	double floor_copy_gbs;	   /* INIT_FLOOR_COPY_GBS; < 0: by model, 0: none */
	uint64_t gpu_max_used; /* INIT_GPU_MAX_USED, bytes an idle GPU may have in use; 0: any */
};

/* `init --selftest`: runs the tier, prints a table (colour on a terminal only), plain lines or one
 * JSON object on `out`. only/skip: comma lists of check ids, NULL none (an unknown id: XC_USAGE).
 * Returns the exit status: XC_OK, XC_FAILED or XC_USAGE. */
int probes_selftest(const struct probe_settings *s, enum probe_tier tier, bool json,
		    const char *only, const char *skip, FILE *out);

/* `--list`: every check with tier, whether it needs a GPU, deadline and remedy. */
void probes_list(bool json, FILE *out);

#define PROBE_LABELS_MAX     16
#define PROBE_LABEL_MAX	     128
#define PROBE_SETUP_INFO_MAX 4096

/* What the gate found. Without pointers: crosses a pipe to PID 1. */
struct probe_verdict {
	int code; /* XC_OK, or the class of the failed check: first of 78 73 80 81 82 83 */
	bool gpu_ok, gpu_seen; /* for the state file: ok, failed, off (not seen), */
	unsigned n_fail, n_warn, n_unknown;
	char summary[512]; /* one line: what failed and the remedy */
	char labels[PROBE_LABELS_MAX]
		   [PROBE_LABEL_MAX]; /* facts as labels, without prefix: h200, sm_90 ... */
	unsigned n_labels;
	char setup_info[PROBE_SETUP_INFO_MAX]; /* JSON for .setup_info; "" none */
};

/* The gate: tier with the configured wait for a GPU; prints the table on stderr when something
 * failed. Network checks only warn here. 0 with *v; -1 when nothing could be run (XC_SYSTEM). */
int probes_gate(const struct probe_settings *s, enum probe_tier tier, struct probe_verdict *v,
		struct err *e);

/* One round of the watch: the cheap reads; with `heavy` also nvidia-smi. *v as of the gate. */
int probes_watch(const struct probe_settings *s, bool heavy, struct probe_verdict *v,
		 struct err *e);

/* Once the agent is gone: names processes that still hold the GPU, and memory in use, into
 * v->summary. */
int probes_card_clean(const struct probe_settings *s, struct probe_verdict *v, struct err *e);

#endif
