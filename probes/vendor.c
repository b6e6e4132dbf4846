/* Vendors as a table, and what of theirs is visible on this node. */
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/str.h"
#include "probes/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const nvidia_extra[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", NULL};
static const char *const metax_extra[] = {"/dev/mxcd", NULL};

/* MetaX: device names and the tool as in the vendor's container documentation; neither its PCI
 * identity nor a machine-readable output of mx-smi is settled enough to judge by. */
static const struct vendor vendors[] = {
	{.name = "NVIDIA",
	 .node_prefix = "/dev/nvidia",
	 .extra = nvidia_extra,
	 .proc = "/proc/driver/nvidia",
	 .env = "NVIDIA_VISIBLE_DEVICES",
	 .pci = "0x10de",
	 .smi = "nvidia-smi"},
	{.name = "MetaX",
	 .node_prefix = "/dev/dri/renderD",
	 .extra = metax_extra,
	 .smi = "mx-smi",
	 .experimental = true},
};

const char *env_value(const char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; envp != NULL && *envp != NULL; envp++)
		if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

/* The value of the runtime's variable when it asks for cards, else NULL. */
static const char *asked_for(const struct vendor *v, const struct probe_settings *s)
{
	const char *value = v->env == NULL ? NULL : env_value(s->envp, v->env);

	if (value == NULL || *value == 0 || str_eq_nocase(value, "void") ||
	    str_eq_nocase(value, "none"))
		return NULL;
	return value;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

unsigned vendor_nodes(const struct vendor *v, unsigned numbers[CARDS_MAX])
{
	char dir[64];
	const char *base = strrchr(v->node_prefix, '/') + 1;
	struct dirent *d;
	unsigned n = 0;
	DIR *dp;

	if (str_copyn(dir, sizeof dir, v->node_prefix, (size_t)(base - v->node_prefix)) < 0)
		return 0;
	dp = opendir(dir);
	while (dp != NULL && n < CARDS_MAX && (d = readdir(dp)) != NULL) {
		uint64_t k;
		unsigned at = n;
		if (!str_starts(d->d_name, base) ||
		    str_u64(d->d_name + strlen(base), 0, 4095, &k) < 0)
			continue;
		for (; at > 0 && numbers[at - 1] > k; at--)
			numbers[at] = numbers[at - 1];
		numbers[at] = (unsigned)k;
		n++;
	}
	if (dp != NULL)
		(void)closedir(dp);
	return n;
}

/* What of this vendor is here, in words; false: nothing. */
static bool traces(const struct vendor *v, const struct probe_settings *s, char *why, size_t size)
{
	unsigned numbers[CARDS_MAX];
	const char *value = asked_for(v, s);

	for (const char *const *x = v->extra; *x != NULL; x++)
		if (exists(*x))
			return str_fmt(why, size, "%s is there", *x) == 0;
	if (v->proc != NULL && exists(v->proc))
		return str_fmt(why, size, "%s is there", v->proc) == 0;
	if (!v->experimental && vendor_nodes(v, numbers) > 0)
		return str_fmt(why, size, "%s%u is there", v->node_prefix, numbers[0]) == 0;
	if (value != NULL) {
		char shown[64];
		text_cut(shown, sizeof shown, value);
		return str_fmt(why, size,
			       "%s=%s asks for one (CUDA images set it: on a host without a GPU "
			       "set INIT_GPU=off)",
			       v->env, shown) == 0;
	}
	return false;
}

const struct vendor *vendor_here(const struct probe_settings *s)
{
	char why[256];

	for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++)
		if (!vendors[i].experimental && traces(&vendors[i], s, why, sizeof why) &&
		    strstr(why, " is there") != NULL)
			return &vendors[i];
	for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++)
		if (vendors[i].experimental && traces(&vendors[i], s, why, sizeof why))
			return &vendors[i];
	return &vendors[0];
}

bool gpu_expected(const struct probe_settings *s, char *why, size_t size)
{
	why[0] = 0;
	if (s->gpu == PROBE_GPU_OFF) {
		(void)str_copy(why, size, "INIT_GPU=off");
		return false;
	}
	if (s->gpu == PROBE_GPU_REQUIRED) {
		(void)str_copy(why, size, "INIT_GPU=required");
		return true;
	}
	for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++)
		if (traces(&vendors[i], s, why, size))
			return true;
	(void)str_copy(why, size,
		       "no device node, no /proc/driver/nvidia, NVIDIA_VISIBLE_DEVICES not set "
		       "(INIT_GPU=required demands one)");
	return false;
}

int count_proc(const struct vendor *v)
{
	char path[64];
	struct dirent *d;
	int n = 0;
	DIR *dp;

	if (v->proc == NULL || str_fmt(path, sizeof path, "%s/gpus", v->proc) < 0)
		return -1;
	dp = opendir(path);
	if (dp == NULL)
		return -1;
	while ((d = readdir(dp)) != NULL)
		n += d->d_name[0] != '.' ? 1 : 0;
	(void)closedir(dp);
	return n;
}

static int read_small(const char *path, char *text, size_t size)
{
	cleanup_buf struct buf b;
	size_t n;
	const char *p;

	buf_init(&b, size - 1);
	if (fs_read(AT_FDCWD, path, &b, NULL) < 0)
		return -1;
	p = str_trim(buf_str(&b), &n);
	return str_copyn(text, size, p, n);
}

int count_pci(const struct vendor *v)
{
	static const char dir[] = "/sys/bus/pci/devices";
	struct dirent *d;
	int n = 0;
	DIR *dp;

	if (v->pci == NULL)
		return -1;
	dp = opendir(dir);
	if (dp == NULL)
		return -1;
	while ((d = readdir(dp)) != NULL) {
		char path[512], text[64];
		if (d->d_name[0] == '.' ||
		    str_fmt(path, sizeof path, "%s/%s/vendor", dir, d->d_name) < 0 ||
		    read_small(path, text, sizeof text) < 0 || !str_eq_nocase(text, v->pci))
			continue;
		/* 0x0300 display controller (VGA), 0x0302 3D controller; audio and NVSwitch are not
		 */
		if (str_fmt(path, sizeof path, "%s/%s/class", dir, d->d_name) == 0 &&
		    read_small(path, text, sizeof text) == 0 &&
		    (str_starts(text, "0x0300") || str_starts(text, "0x0302")))
			n++;
	}
	(void)closedir(dp);
	return n;
}

/* "name (pid 17)" of one process whose descriptors show a node of the vendor. */
static bool holds(const char *pid, const struct vendor *v)
{
	char dir[300], path[600], link[256];
	struct dirent *d;
	bool yes = false;
	DIR *dp;

	if (str_fmt(dir, sizeof dir, "/proc/%s/fd", pid) < 0)
		return false;
	dp = opendir(dir);
	while (dp != NULL && !yes && (d = readdir(dp)) != NULL) {
		ssize_t n;
		if (str_fmt(path, sizeof path, "%s/%s", dir, d->d_name) < 0)
			continue;
		n = readlink(path, link, sizeof link - 1);
		if (n <= 0)
			continue;
		link[n] = 0;
		yes = str_starts(link, v->node_prefix);
		for (const char *const *x = v->extra; !yes && *x != NULL; x++)
			yes = strcmp(link, *x) == 0;
	}
	if (dp != NULL)
		(void)closedir(dp);
	return yes;
}

unsigned holders(const struct vendor *v, char *dst, size_t size)
{
	struct dirent *d;
	unsigned n = 0;
	DIR *dp = opendir("/proc");

	dst[0] = 0;
	while (dp != NULL && (d = readdir(dp)) != NULL) {
		char path[300], comm[64], one[160];
		size_t used = strlen(dst);
		uint64_t pid;
		if (str_u64(d->d_name, 1, INT32_MAX, &pid) < 0 || pid == (uint64_t)getpid() ||
		    !holds(d->d_name, v))
			continue;
		if (str_fmt(path, sizeof path, "/proc/%s/comm", d->d_name) < 0 ||
		    read_small(path, comm, sizeof comm) < 0)
			(void)str_copy(comm, sizeof comm, "?");
		str_printable(comm);
		if (str_fmt(one, sizeof one, "%s%s (pid %s)", n > 0 ? ", " : "", comm, d->d_name) ==
			    0 &&
		    used + strlen(one) < size)
			(void)str_copy(dst + used, size - used, one);
		n++;
	}
	if (dp != NULL)
		(void)closedir(dp);
	return n;
}
