/* nvidia-smi as a child: one XML query for everything, then what it printed or how it ended. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "probes/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SMI_OUT_MAX (4U << 20) /* about 25 KiB a card */

/* Exit statuses of nvidia-smi, from its manual page, "RETURN VALUE". */
static const struct {
	int code;
	enum action action;
	const char *text, *remedy;
} exits[] = {
	{2, ACT_NONE, "it does not understand the query",
	 "a driver older than 450 is not supported"},
	{3, ACT_NONE, "the query is not supported on this device", NULL},
	{4, ACT_RESTART_CONTAINER, "no permission",
	 "the runner's user must be able to open /dev/nvidiactl"},
	{6, ACT_RESTART_CONTAINER, "no device was found",
	 "recreate the container with --gpus all; if the host shows none either, reboot it"},
	{8, ACT_REPLACE, "a card's external power cable is not attached", "attach it"},
	{9, ACT_REBOOT, "the driver is not loaded",
	 "load the driver on the host (modprobe nvidia); a container started before the driver: "
	 "INIT_GPU_WAIT"},
	{10, ACT_REBOOT, "the kernel has an interrupt problem with a card", NULL},
	{12, ACT_RESTART_CONTAINER, "libnvidia-ml is not there or not loadable",
	 "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"},
	{13, ACT_RESTART_CONTAINER, "libnvidia-ml lacks a function: another version than the tool",
	 "recreate the container, so that tool and library are the host's"},
	{14, ACT_REPLACE, "a card's infoROM is corrupt", "drain the node and replace the card"},
	{15, ACT_REBOOT, "the GPU is lost (fallen off the bus or inaccessible)",
	 "drain the node and reboot it; look for Xid 79 in the host's kernel log; replace the card "
	 "if it comes back"},
};

/* What it prints, on either stream and with any exit status; the first that fits counts. */
static const struct {
	const char *print;
	enum action action;
	const char *text, *remedy;
} texts[] = {
	{"Driver/library version mismatch", ACT_RESTART_CONTAINER,
	 "Driver/library version mismatch: the host's driver was upgraded under this container",
	 "recreate the container; if it stays, reboot the host, which still has the old module"},
	{"Failed to initialize NVML: Unknown Error", ACT_RESTART_CONTAINER,
	 "NVML does not start: the container's cgroup has lost the devices",
	 "recreate the container: `systemctl daemon-reload` on the host takes devices from running "
	 "containers; for good, use CDI or create the /dev/char links (nvidia-ctk system "
	 "create-dev-char-symlinks)"},
	{"Insufficient Permissions", ACT_RESTART_CONTAINER, "no permission to use the driver",
	 "the runner's user must be able to open /dev/nvidiactl and /dev/nvidia0"},
	{"couldn't communicate with the NVIDIA driver", ACT_REBOOT, "the driver is not loaded",
	 "load the driver on the host (modprobe nvidia); a container started before the driver: "
	 "INIT_GPU_WAIT"},
	{"GPU is lost", ACT_REBOOT, "the GPU is lost (fallen off the bus or inaccessible)",
	 "drain the node and reboot it; look for Xid 79 in the host's kernel log; replace the card "
	 "if it comes back"},
	{"fallen off the bus", ACT_REBOOT, "the GPU is lost (fallen off the bus)",
	 "drain the node and reboot it; replace the card if it comes back"},
	{"Unable to determine the device handle", ACT_REBOOT,
	 "a card does not answer the driver any more",
	 "drain the node and reboot it; look for Xid lines in the host's kernel log"},
	{"No devices were found", ACT_RESTART_CONTAINER, "no device was found",
	 "recreate the container with --gpus all; if the host shows none either, reboot it"},
};

const char **env_with(const char *const *envp, const char *const *more)
{
	size_t n = 0, m = 0, o = 0;
	const char **out;

	while (envp != NULL && envp[n] != NULL)
		n++;
	while (more[m] != NULL)
		m++;
	out = calloc(n + m + 1, sizeof *out);
	if (out == NULL)
		return NULL;
	for (size_t k = 0; k < m; k++)
		out[o++] = more[k];
	for (size_t i = 0; i < n; i++) {
		bool hidden = false;
		for (size_t k = 0; k < m; k++) {
			size_t name = strcspn(more[k], "=") + 1;
			hidden = hidden || strncmp(envp[i], more[k], name) == 0;
		}
		if (!hidden)
			out[o++] = envp[i];
	}
	return out;
}

/* 0 with *r to free, or -1 when it could not be started. */
static int tool(struct ctx *c, const char *const *argv, struct child_result *r, struct err *e)
{
	static const char *const plain[] = {"LC_ALL=C", "LANGUAGE=", NULL};
	cleanup_free const char **envp = env_with(c->s->envp, plain);
	struct child_spec spec;

	if (envp == NULL)
		return err_set(e, XC_SYSTEM, ENOMEM, "cannot run %s", argv[0]);
	memset(&spec, 0, sizeof spec);
	spec.argv = argv;
	spec.envp = envp;
	spec.cwd = "/";
	spec.out_max = SMI_OUT_MAX;
	spec.uid = (uid_t)-1;
	spec.gid = (gid_t)-1;
	spec.deadline = c->deadline;
	return child_run(&spec, r, e);
}

void last_line(char *dst, size_t size, const struct buf *b)
{
	const char *p = buf_str(b), *best = p;
	size_t best_n = 0;

	while (*p != 0) {
		size_t n = strcspn(p, "\r\n");
		if (n > strspn(p, " \t"))
			best = p, best_n = n;
		p += n;
		p += strspn(p, "\r\n");
	}
	str_show(dst, size, best, best_n);
}

/* The rest of the group cannot be judged: each says why. */
static void others_unknown(struct ctx *c, const char *why)
{
	for (int i = 0; i < CHECK__MAX; i++)
		if (probe_checks[i].group == G_SMI && i != C_GPU_SMI)
			say(c, (enum check_id)i, V_UNKNOWN, ACT_NONE, NULL, "not read: %s", why);
}

static bool known_text(struct ctx *c, const struct child_result *r)
{
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (strstr(buf_str(&r->out), texts[i].print) != NULL ||
		    strstr(buf_str(&r->err_), texts[i].print) != NULL) {
			say(c, C_GPU_SMI, V_FAIL, texts[i].action, texts[i].remedy, "%s",
			    texts[i].text);
			return true;
		}
	return false;
}

static void bad_end(struct ctx *c, const char *name, const struct child_result *r)
{
	char line[256];

	last_line(line, sizeof line, r->err_.len > 0 ? &r->err_ : &r->out);
	if (r->end == CHILD_HUNG)
		say(c, C_GPU_SMI, V_FAIL, ACT_REBOOT, NULL,
		    "%s hangs in the kernel and cannot be killed", name);
	else if (r->end == CHILD_TIMEOUT)
		say(c, C_GPU_SMI, V_FAIL, ACT_REBOOT, NULL, "%s gave no answer in %lld ms", name,
		    (long long)r->ms);
	else if (r->end == CHILD_NOEXEC)
		say(c, C_GPU_SMI, V_FAIL, ACT_RESTART_CONTAINER,
		    "start the container with --gpus all and "
		    "NVIDIA_DRIVER_CAPABILITIES=compute,utility, which mounts it",
		    "%s cannot be run: %s", name, strerror(r->code));
	else if (known_text(c, r))
		;
	else if (r->end == CHILD_SIGNALED)
		say(c, C_GPU_SMI, V_FAIL, ACT_REBOOT, NULL, "%s died of signal %d (%s)", name,
		    r->code, strsignal(r->code));
	else {
		for (size_t i = 0; i < sizeof exits / sizeof exits[0]; i++)
			if (exits[i].code == r->code)
				say(c, C_GPU_SMI, V_FAIL, exits[i].action, exits[i].remedy,
				    "%s ended with %d: %s%s%s", name, r->code, exits[i].text,
				    line[0] != 0 ? ": " : "", line);
		/* the reader drops it when the table had an answer */
		say(c, C_GPU_SMI, V_FAIL, ACT_REBOOT, NULL, "%s ended with %d: %s", name, r->code,
		    line);
	}
}

/* "9.0" of the first card. Only for labels: when it is not readable, there is none. */
static void read_capability(struct ctx *c, const char *name)
{
	const char *argv[] = {name, "--query-gpu=compute_cap", "--format=csv,noheader", NULL};
	struct child_result r;
	const char *p;
	size_t n;

	if (tool(c, argv, &r, NULL) < 0)
		return;
	p = buf_str(&r.out);
	n = strspn(p, "0123456789.");
	if (r.end == CHILD_EXITED && r.code == 0 && n >= 3 && (p[n] == '\n' || p[n] == 0))
		(void)str_copyn(c->facts.cc, sizeof c->facts.cc, p, n);
	child_result_free(&r);
}

/* "  MIG 1g.18gb     Device  0: (UUID: MIG-...)" of `nvidia-smi -L`: the first profile. */
static void read_mig_profile(struct ctx *c, const char *name)
{
	const char *argv[] = {name, "-L", NULL};
	struct child_result r;
	const char *p;

	if (tool(c, argv, &r, NULL) < 0)
		return;
	p = strstr(buf_str(&r.out), "  MIG ");
	if (r.end == CHILD_EXITED && r.code == 0 && p != NULL) {
		p += 6;
		(void)str_copyn(c->facts.mig, sizeof c->facts.mig, p, strcspn(p, " \n"));
		str_printable(c->facts.mig);
	}
	child_result_free(&r);
}

/* MetaX: that the tool answers is all that is known well enough to be judged. */
static void run_other(struct ctx *c, const struct vendor *v)
{
	const char *argv[] = {v->smi, NULL};
	struct child_result r;
	struct err e = ERR_INIT;

	if (tool(c, argv, &r, &e) < 0) {
		say(c, C_GPU_SMI, V_UNKNOWN, ACT_NONE, NULL, "%s", e.text);
		return;
	}
	if (r.end == CHILD_EXITED && r.code == 0 && r.out.len > 0)
		say(c, C_GPU_SMI, V_PASS, ACT_NONE, NULL, "%s answers (experimental)", v->smi);
	else
		bad_end(c, v->smi, &r);
	child_result_free(&r);
	for (int i = 0; i < CHECK__MAX; i++)
		if (probe_checks[i].group == G_SMI && i != C_GPU_SMI)
			say(c, (enum check_id)i, V_SKIP, ACT_NONE, NULL,
			    "not known for %s (experimental)", v->name);
}

void group_smi(struct ctx *c)
{
	static struct smi m; /* large; this process is a fork of its own */
	const struct vendor *v = vendor_here(c->s);
	const char *argv[] = {v->smi, "-q", "-x", NULL};
	struct child_result r;
	struct err e = ERR_INIT;

	if (v->experimental) {
		run_other(c, v);
		return;
	}
	if (tool(c, argv, &r, &e) < 0) {
		say(c, C_GPU_SMI, V_UNKNOWN, ACT_NONE, NULL, "%s", e.text);
		others_unknown(c, e.text);
		return;
	}
	if (r.end != CHILD_EXITED || r.code != 0) {
		bad_end(c, v->smi, &r);
		others_unknown(c, "nvidia-smi did not report (gpu.smi)");
	} else if (smi_parse(buf_str(&r.out), r.out.len, &m) < 0) {
		char line[128];
		last_line(line, sizeof line, &r.out);
		if (!known_text(c, &r))
			say(c, C_GPU_SMI, V_FAIL, ACT_REBOOT, NULL,
			    "%s ended with 0 and its report is %s: \"%s\"", v->smi,
			    r.cut ? "longer than 4 MiB" : "not the expected XML", line);
		others_unknown(c, "nvidia-smi did not report (gpu.smi)");
	} else {
		if (m.n_gpus > 0)
			read_capability(c, v->smi);
		if (m.n_gpus > 0 && str_eq_nocase(m.gpu[0].mig_mode, "Enabled"))
			read_mig_profile(c, v->smi);
		smi_judge(c, &m);
		say_facts(c);
	}
	child_result_free(&r);
}
