/* F1 to F4: nodes, driver, counts. Nothing but open() and reads; the open may hang or fail in
 * telling ways. */
#include "base/cleanup.h"
#include "base/str.h"
#include "probes/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* What an errno of open() on a device node means, and what cures it. */
struct meaning {
	int err;
	enum action action;
	const char *text, *remedy;
};

static const struct meaning meanings[] = {
	{EPERM, ACT_RESTART_CONTAINER, "the container's cgroup has lost the device",
	 "recreate the container: `systemctl daemon-reload` on the host takes devices from running "
	 "containers; for good, use CDI or create the /dev/char links (nvidia-ctk system "
	 "create-dev-char-symlinks)"},
	{EACCES, ACT_RESTART_CONTAINER, "permission denied",
	 "the node's group must be one of the runner's groups, or its mode 0666 (nvidia-modprobe "
	 "options), and /dev not mounted with nodev"},
	{ENXIO, ACT_REBOOT, "the GPU is lost (fallen off the bus)",
	 "drain the node and reboot it; look for Xid 79 in the host's kernel log; replace the card "
	 "if it comes back"},
	{EIO, ACT_REBOOT, "the GPU is lost (it does not answer)",
	 "drain the node and reboot it; look for Xid lines in the host's kernel log; replace the "
	 "card if it comes back"},
	{ENODEV, ACT_REBOOT, "the kernel module is not loaded or has no such card",
	 "load the driver on the host (modprobe nvidia nvidia-uvm), then recreate the container"},
	{ENOENT, ACT_RESTART_CONTAINER, "not injected into the container", NULL},
};

static void judge_open(struct tally *t, const char *path)
{
	cleanup_fd int fd = -1;
	int why;

	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0) {
		tally_add(t, V_PASS, ACT_NONE, NULL, "%s", path);
		return;
	}
	why = errno;
	for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
		if (meanings[i].err == why) {
			tally_add(t, V_FAIL, meanings[i].action, meanings[i].remedy, "%s: %s (%s)",
				  path, meanings[i].text, strerror(why));
			return;
		}
	tally_add(t, V_FAIL, ACT_REBOOT, NULL, "%s cannot be opened: %s", path, strerror(why));
}

void group_nodes(struct ctx *c)
{
	const struct vendor *v = vendor_here(c->s);
	unsigned numbers[CARDS_MAX], n = vendor_nodes(v, numbers);
	struct tally t = TALLY_INIT;
	struct stat st;

	if (n == 0)
		tally_add(&t, V_FAIL, ACT_RESTART_CONTAINER, NULL,
			  "a GPU is expected and no %s* is there: not injected into the container",
			  v->node_prefix);
	for (unsigned i = 0; i < n; i++) {
		char path[64];
		if (str_fmt(path, sizeof path, "%s%u", v->node_prefix, numbers[i]) == 0)
			judge_open(&t, path);
	}
	for (const char *const *x = v->extra; *x != NULL; x++) {
		if (n > 0 && strstr(*x, "uvm") != NULL && stat(*x, &st) < 0 && errno == ENOENT)
			tally_add(&t, V_FAIL, ACT_RESTART_CONTAINER,
				  "load it on the host (nvidia-modprobe -u, or the "
				  "nvidia-persistenced service), then recreate the container",
				  "%s is missing: nvidia-smi works and CUDA fails with error 999",
				  *x);
		else if (n > 0 || stat(*x, &st) == 0)
			judge_open(&t, *x);
	}
	if (v->experimental && t.verdict == V_PASS)
		tally_add(&t, V_PASS, ACT_NONE, NULL, "%s support is experimental", v->name);
	tally_say(c, C_GPU_NODES, &t);
}

static void judge_lib(struct tally *t, const char *kernel, const char *soname, const char *path)
{
	char version[64];
	int d;

	if (strstr(path, "/compat") != NULL) {
		tally_add(t, V_PASS, ACT_NONE, NULL, "%s is the image's compat library", soname);
		return;
	}
	if (lib_version(path, version, sizeof version) < 0) {
		tally_add(t, V_UNKNOWN, ACT_NONE, NULL, "%s has no version in its name", path);
		return;
	}
	d = version_cmp(version, kernel);
	if (d == 0)
		tally_add(t, V_PASS, ACT_NONE, NULL, "%s %s", soname, version);
	else if (d < 0)
		tally_add(t, V_FAIL, ACT_RESTART_CONTAINER,
			  "the host's driver was upgraded under this container: recreate it",
			  "Driver/library version mismatch: kernel module %s, %s %s", kernel,
			  soname, version);
	else
		tally_add(
			t, V_FAIL, ACT_REBOOT,
			"the host has new libraries and still the old module: drain it and reboot",
			"Driver/library version mismatch: kernel module %s, %s %s", kernel, soname,
			version);
}

void group_driver(struct ctx *c)
{
	static const char *const libs[] = {"libnvidia-ml.so.1", "libcuda.so.1"};
	const struct vendor *v = vendor_here(c->s);
	struct tally t = TALLY_INIT;
	char kernel[64], path[4096];

	if (v->proc == NULL) {
		say(c, C_GPU_DRIVER, V_SKIP, ACT_NONE, NULL, "not known for %s (experimental)",
		    v->name);
		return;
	}
	if (kernel_module_version(kernel, sizeof kernel) < 0) {
		say(c, C_GPU_DRIVER, V_FAIL, ACT_REBOOT,
		    "load the driver on the host (modprobe nvidia); a container started before the "
		    "driver: INIT_GPU_WAIT",
		    "the kernel module is not loaded: neither /proc/driver/nvidia/version nor "
		    "/sys/module/nvidia/version can be read");
		return;
	}
	tally_add(&t, V_PASS, ACT_NONE, NULL, "kernel module %s", kernel);
	for (size_t i = 0; i < 2; i++) {
		if (lib_find(c->s->envp, libs[i], path, sizeof path) == 0)
			judge_lib(&t, kernel, libs[i], path);
		else
			tally_add(&t, V_FAIL, ACT_RESTART_CONTAINER,
				  "start the container with --gpus all and "
				  "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
				  "%s is nowhere on the loader's path: driver libraries are not "
				  "mounted",
				  libs[i]);
	}
	tally_say(c, C_GPU_DRIVER, &t);
}

/* How many cards the runtime was asked for: 0 not said, UINT32_MAX all. */
static unsigned asked_count(const struct ctx *c, const struct vendor *v)
{
	const char *value = v->env == NULL ? NULL : env_value(c->s->envp, v->env);
	unsigned n = 1;

	if (value == NULL || *value == 0 || str_eq_nocase(value, "void") ||
	    str_eq_nocase(value, "none"))
		return 0;
	if (str_eq_nocase(value, "all"))
		return UINT32_MAX;
	if (strstr(value, "MIG-") != NULL)
		return 0; /* instances of a card, not cards */
	for (; *value != 0; value++)
		n += *value == ',' ? 1 : 0;
	return n;
}

void group_count(struct ctx *c)
{
	const struct vendor *v = vendor_here(c->s);
	unsigned numbers[CARDS_MAX], nodes = vendor_nodes(v, numbers), asked = asked_count(c, v);
	int proc = count_proc(v), pci = count_pci(v);
	struct tally t = TALLY_INIT;
	char seen[128];

	(void)str_fmt(seen, sizeof seen, "%u nodes, %d in /proc, %d on PCI", nodes, proc, pci);
	if (proc < 0 && pci < 0 && c->s->expect_gpus == 0) {
		say(c, C_GPU_COUNT, V_UNKNOWN, ACT_NONE, NULL,
		    "%u nodes; neither /proc nor PCI can be read", nodes);
		return;
	}
	tally_add(&t, V_PASS, ACT_NONE, NULL, "%s", seen);
	if (c->s->expect_gpus > 0 && nodes != c->s->expect_gpus)
		tally_add(&t, V_FAIL,
			  nodes < c->s->expect_gpus ? ACT_REBOOT : ACT_RESTART_CONTAINER,
			  nodes < c->s->expect_gpus ? NULL : "correct INIT_EXPECT_GPUS",
			  "INIT_EXPECT_GPUS says %u: %s", c->s->expect_gpus, seen);
	else if (asked != 0 && asked != UINT32_MAX && nodes < asked)
		tally_add(&t, V_FAIL, ACT_REBOOT, NULL, "%s asks for %u cards: %s", v->env, asked,
			  seen);
	/* With all cards asked for, the three counts must agree. With some, the host's /proc and
	 * PCI may show more than this container's; with none said, that is only suspicious. */
	if (proc >= 0 && nodes > (unsigned)proc)
		tally_add(&t, V_FAIL, ACT_REBOOT, NULL,
			  "a card has a node and the driver does not know it any more: %s", seen);
	if (pci > 0 && proc > pci) /* none at all: a sandbox that shows no PCI */
		tally_add(&t, V_FAIL, ACT_REBOOT, NULL, "a card has fallen off the PCI bus: %s",
			  seen);
	if (c->s->expect_gpus == 0 && pci > proc && proc >= 0 &&
	    (asked == 0 || asked == UINT32_MAX))
		tally_add(&t, asked == UINT32_MAX ? V_FAIL : V_WARN, ACT_REBOOT,
			  asked == UINT32_MAX ? NULL : "say INIT_EXPECT_GPUS to have it judged",
			  "a card on the PCI bus is not known to the driver: %s", seen);
	if (asked == UINT32_MAX && proc >= 0 && nodes < (unsigned)proc)
		tally_add(&t, V_FAIL, ACT_RESTART_CONTAINER,
			  "recreate the container: the runtime injected fewer cards than there are",
			  "all cards were asked for and some have no node: %s", seen);
	tally_say(c, C_GPU_COUNT, &t);
}
