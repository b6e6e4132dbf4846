/*
 * Inside of probes/: the registry, what a check reports, and the helpers that checks share.
 *
 * Checks come in groups. A group is one child: it answers for one or more checks, one record each,
 * over a pipe. A check that its group never answered for is judged by how the child ended (hung,
 * out of time, died), so no check goes missing.
 */
#ifndef PROBES_INTERNAL_H
#define PROBES_INTERNAL_H

#include "base/child.h"
#include "probes/probes.h"

#define DETAIL_MAX 700
#define REMEDY_MAX 400

enum verdict { V_PASS, V_WARN, V_FAIL, V_SKIP, V_UNKNOWN, V__MAX };
enum action {
	ACT_NONE,
	ACT_RESTART_CONTAINER,
	ACT_RESTART_DOCKER,
	ACT_RESET_GPU,
	ACT_REBOOT,
	ACT_REPLACE,
	ACT__MAX
};

enum check_id {
	C_GPU_NODES,
	C_GPU_DRIVER,
	C_GPU_COUNT,
	C_GPU_SMI,
	C_GPU_RECOVERY,
	C_GPU_ECC,
	C_GPU_REMAP,
	C_GPU_FABRIC,
	C_GPU_THROTTLE,
	C_GPU_MIG,
	C_GPU_MEMORY,
	C_GPU_PROCESSES,
	C_GPU_CUDA,
	C_CACHE_WRITE,
	C_CACHE_SPACE,
	C_CACHE_KIND,
	C_RUNNER_ROOT,
	C_RUNNER_AGENT,
	C_RUNNER_ICU,
	C_SYS_SHM,
	C_SYS_LIMITS,
	C_SYS_CLOCK,
	C_NET_CA,
	C_NET_API,
	C_NET_CLOCK,
	C_STACK_TILELANG,
	C_STACK_TVM_FFI,
	C_STACK_CUDA,
	C_STACK_PINS,
	C_STACK_BASELINES,
	C_IMAGE_TORCH,
	C_IMAGE_TILELANG,
	C_IMAGE_FLASHINFER,
	C_IMAGE_MAMBA,
	C_IMAGE_DEEPGEMM,
	C_GPU_CONTEXT,
	C_GPU_PATTERN,
	C_GPU_COPY,
	C_GPU_CUBLAS,
	C_GPU_GEMM,
	C_GPU_TRITON,
	C_GPU_TILELANG,
	C_GPU_NCCL,
	CHECK__MAX
};

enum group_id {
	G_NODES,
	G_DRIVER,
	G_COUNT,
	G_SMI,
	G_CACHE,
	G_RUNNER,
	G_AGENT,
	G_SYSTEM,
	G_NET,
	G_BUILD,
	G_IMAGE,
	G_CUDA,
	G_TORCH,
	GROUP__MAX
};

/* What the checks learned about the card, for labels and .setup_info. "" and 0: not read. */
struct facts {
	char model[64];	 /* NVIDIA H200 */
	char cc[16];	 /* 9.0 */
	char driver[32]; /* 580.159.04 */
	char cuda[16];	 /* 13.0: what the driver supports */
	char mig[32];	 /* 1g.18gb */
	uint64_t mem_mib;
	unsigned n_gpus;
};

struct finding {
	enum verdict verdict;
	enum action action;
	int64_t ms;
	char detail[DETAIL_MAX];
	char remedy[REMEDY_MAX]; /* "" when nothing is to be done */
};

struct ctx {
	const struct probe_settings *s;
	const bool *wanted;	  /* by check */
	struct deadline deadline; /* the group's: what it starts must end by then */
	int64_t start_ms;	  /* when the check under way began */
	int fd;			  /* where records go */
	struct facts facts;
};

struct check {
	const char *id;
	enum probe_tier tier;
	enum group_id group;
	bool gpu;	    /* skipped where no GPU is expected */
	bool net;	    /* in the gate a failure only warns */
	int code;	    /* enum exit_code: the class of a failure in the gate */
	enum action action; /* when it fails and says nothing else */
	const char *about;
	const char *remedy;
};

enum group_watch { WATCH_NO, WATCH_CHEAP, WATCH_HEAVY };

struct group {
	int budget_ms;
	bool heavy; /* loads the GPU, or must find it idle: one at a time, in the order of enum
		       group_id */
	enum group_watch watch;
	void (*run)(struct ctx *c);
};

extern const struct check probe_checks[CHECK__MAX];
extern const struct group probe_groups[GROUP__MAX];

const char *verdict_name(enum verdict v);
const char *action_name(enum action a);
const char *tier_name(enum probe_tier t);
int tier_budget_ms(enum probe_tier t);

/* ---- run.c ---- */

struct run {
	const struct probe_settings *s;
	bool wanted[CHECK__MAX];
	struct finding found[CHECK__MAX]; /* valid where wanted */
	struct facts facts;
	int64_t started_ms; /* real time */
	int64_t ms;	    /* how long all took */
};

/* Runs every wanted check within `budget_ms`; always comes back at most a second later. 0, or -1
 * (XC_SYSTEM) when nothing could be started. */
int run_checks(struct run *r, int64_t budget_ms, struct err *e);

/* One check's answer. `remedy` NULL: the registry's where the verdict is warn or fail. A second
 * answer for the same check is dropped by the reader. */
void say(struct ctx *c, enum check_id id, enum verdict v, enum action a, const char *remedy,
	 const char *fmt, ...) __attribute__((format(printf, 6, 7)));
void say_begin(struct ctx *c, enum check_id id); /* the clock of that check starts now */
void say_facts(struct ctx *c);			 /* hands over c->facts */

/* Collects several observations into one answer: the worst verdict, the first action of it, all
 * texts of that verdict. */
struct tally {
	enum verdict verdict;
	enum action action;
	const char *remedy;
	char text[DETAIL_MAX];
};
#define TALLY_INIT                                                                                 \
	{                                                                                          \
		V_PASS, ACT_NONE, NULL,                                                            \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}
void tally_add(struct tally *t, enum verdict v, enum action a, const char *remedy, const char *fmt,
	       ...) __attribute__((format(printf, 5, 6)));
void tally_say(struct ctx *c, enum check_id id, const struct tally *t);

/* Copies as much as fits and makes it printable. */
void text_cut(char *dst, size_t size, const char *src);

/* The last line that is not blank, printable and cut; "" when there is none. */
void last_line(char *dst, size_t size, const struct buf *b);

/* ---- vendor.c ---- */

struct vendor {
	const char *name;	  /* for people */
	const char *node_prefix;  /* /dev/PREFIXn are the cards */
	const char *const *extra; /* other nodes that must be there, NULL-terminated */
	const char *proc;	  /* its folder in /proc, NULL none */
	const char *env;	  /* variable with which a runtime is asked for cards, NULL none */
	const char *pci;	  /* vendor id as in sysfs, NULL: not known */
	const char *smi;
	bool experimental;
};

/* The vendor whose traces are here; NVIDIA when there are none. */
const struct vendor *vendor_here(const struct probe_settings *s);

/* Whether a GPU is expected; `why` says what decided. */
bool gpu_expected(const struct probe_settings *s, char *why, size_t size);

const char *env_value(const char *const *envp, const char *name); /* NULL when not there */

#define CARDS_MAX 64
unsigned vendor_nodes(const struct vendor *v, unsigned numbers[CARDS_MAX]); /* sorted */
int count_proc(const struct vendor *v); /* folders below PROC/gpus; -1 not readable */
int count_pci(const struct vendor *v);	/* display and 3D controllers; -1 not readable */

/* ---- libs.c ---- */

/* Where the dynamic loader would find `soname` (LD_LIBRARY_PATH, ld.so.conf, usual folders): the
 * path after links. 0, or -1 when it is nowhere. */
int lib_find(const char *const *envp, const char *soname, char *path, size_t size);

/* 580.159.04 out of .../libcuda.so.580.159.04; -1 when the name holds none. */
int lib_version(const char *path, char *out, size_t size);

/* True when a file whose name begins with `prefix` is in one of the loader's folders. */
bool lib_any(const char *const *envp, const char *prefix);

/* Compares dotted numbers: <0, 0, >0. */
int version_cmp(const char *a, const char *b);

/* Version of the loaded kernel module, from /proc/driver/nvidia/version or sysfs. 0 or -1. */
int kernel_module_version(char *out, size_t size);

/* ---- smi.c, smi_xml.c, smi_judge.c ---- */

#define SMI_PROCS_MAX 16
#define SMI_GPUS_MAX  16

struct smi_proc {
	unsigned gpu;
	uint64_t pid;
	char name[128];
	char memory[32];
};

struct smi_gpu {
	char bus[32], name[64], uuid[64], brand[32];
	char mig_mode[24];
	unsigned mig_devices; /* instances that the tool lists */
	char recovery[32];
	char fabric_state[32], fabric_status[48];
	char remap_pending[16], remap_failure[16];
	char retire_pending[16], repair_pending[16], sram_threshold[16];
	char throttle[96]; /* names of the hardware reasons that are active */
	bool ecc_read;
	uint64_t ecc_uncorrected; /* volatile: since the last reset */
	bool mem_read;
	uint64_t mem_total_mib, mem_used_mib;
	char bad_field[96]; /* first field whose value is an error, "NAME: value" */
};

struct smi {
	char driver[32], cuda[16];
	int attached; /* as it says itself; -1 not said */
	unsigned n_gpus, n_procs, n_procs_all;
	struct smi_gpu gpu[SMI_GPUS_MAX];
	struct smi_proc proc[SMI_PROCS_MAX];
};

/* Reads the XML of `nvidia-smi -q -x`. 0, or -1 when it is not that (cut, no root, no end). */
int smi_parse(const char *xml, size_t len, struct smi *out);

/* Answers for every check of the group that hangs on the tool's report; fills c->facts. */
void smi_judge(struct ctx *c, const struct smi *m);

/* Processes that hold a device node of the vendor, as far as /proc lets us see, by name into dst.
 * Returns how many. */
unsigned holders(const struct vendor *v, char *dst, size_t size);

/* The environment of children with `more` on top (NAME=value, NULL-terminated; it wins): allocated,
 * to be freed; the strings are borrowed. NULL when memory is short. */
const char **env_with(const char *const *envp, const char *const *more);

/* ---- python.c, scripts.c ---- */

extern const char py_common[], py_build[], py_image[], py_cuda[], py_torch[];

/* ---- the groups ---- */

void group_nodes(struct ctx *c);
void group_driver(struct ctx *c);
void group_count(struct ctx *c);
void group_smi(struct ctx *c);
void group_cache(struct ctx *c);
void group_runner(struct ctx *c);
void group_agent(struct ctx *c);
void group_system(struct ctx *c);
void group_net(struct ctx *c);
void group_build(struct ctx *c);
void group_image(struct ctx *c);
void group_cuda(struct ctx *c);
void group_torch(struct ctx *c);

/* ---- report.c ---- */

enum verdict run_result(const struct run *r);
void report_print(const struct run *r, bool json, FILE *out);
/* A JSON string, quotes included, of printable UTF-8. */
void json_string(FILE *out, const char *s);

#endif
