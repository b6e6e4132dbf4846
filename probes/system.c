/* F10, F11: limits, shared memory, clock, certificates, and the network check that init/ gives. */
#include "base/buf.h"
#include "base/fs.h"
#include "base/str.h"
#include "probes/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define SHM_MIN	   (1ULL << 30)
#define NOFILE_MIN 4096
#define PIDS_MIN   1024
#define MEMORY_MIN (2ULL << 30)
#define SKEW_MAX_S 300

static void judge_shm(struct ctx *c)
{
	struct statvfs vfs;
	uint64_t bytes;

	if (statvfs("/dev/shm", &vfs) < 0) {
		say(c, C_SYS_SHM, V_WARN, ACT_NONE, NULL, "/dev/shm: %s", strerror(errno));
		return;
	}
	bytes = (uint64_t)vfs.f_blocks * vfs.f_frsize;
	say(c, C_SYS_SHM, bytes < SHM_MIN ? V_WARN : V_PASS, ACT_NONE, NULL,
	    "/dev/shm has %llu MiB", (unsigned long long)(bytes >> 20));
}

static void judge_rlimit(struct tally *t, int which, const char *name, uint64_t min, unsigned shift,
			 const char *unit)
{
	struct rlimit r;

	if (getrlimit(which, &r) < 0)
		tally_add(t, V_UNKNOWN, ACT_NONE, NULL, "%s: %s", name, strerror(errno));
	else if (r.rlim_cur == RLIM_INFINITY)
		tally_add(t, V_PASS, ACT_NONE, NULL, "%s unlimited", name);
	else
		tally_add(t, r.rlim_cur < min && r.rlim_max < min ? V_WARN : V_PASS, ACT_NONE, NULL,
			  "%s %llu%s (hard %llu)", name, (unsigned long long)(r.rlim_cur >> shift),
			  unit,
			  (unsigned long long)(r.rlim_max == RLIM_INFINITY ? 0
									   : r.rlim_max >> shift));
}

/* A limit of the cgroup that we are at the root of; "max" and what cannot be read are no limit. */
static void judge_cgroup(struct tally *t, const char *const *files, const char *name, uint64_t min,
			 unsigned shift, const char *unit)
{
	for (; *files != NULL; files++) {
		cleanup_buf struct buf b;
		char text[32];
		const char *p;
		uint64_t v;
		size_t n;
		buf_init(&b, 64);
		if (fs_read(AT_FDCWD, *files, &b, NULL) < 0)
			continue;
		p = str_trim(buf_str(&b), &n);
		if (str_copyn(text, sizeof text, p, n) < 0 || str_u64(text, 0, 1ULL << 60, &v) < 0)
			return;
		tally_add(t, v < min ? V_WARN : V_PASS, ACT_NONE, NULL, "%s %llu%s", name,
			  (unsigned long long)(v >> shift), unit);
		return;
	}
}

static void judge_limits(struct ctx *c)
{
	static const char *const pids[] = {"/sys/fs/cgroup/pids.max",
					   "/sys/fs/cgroup/pids/pids.max", NULL};
	static const char *const memory[] = {"/sys/fs/cgroup/memory.max",
					     "/sys/fs/cgroup/memory/memory.limit_in_bytes", NULL};
	struct tally t = TALLY_INIT;

	judge_rlimit(&t, RLIMIT_NOFILE, "open files", NOFILE_MIN, 0, "");
	judge_rlimit(&t, RLIMIT_NPROC, "processes", PIDS_MIN, 0, "");
	judge_rlimit(&t, RLIMIT_MEMLOCK, "locked memory", 0, 10, " KiB");
	judge_cgroup(&t, pids, "pids.max", PIDS_MIN, 0, "");
	judge_cgroup(&t, memory, "memory.max", MEMORY_MIN, 20, " MiB");
	tally_say(c, C_SYS_LIMITS, &t);
}

static void judge_clock(struct ctx *c)
{
	int64_t now = clock_real_ms() / 1000;
	time_t t = (time_t)now;
	struct tm tm;
	char text[32] = "?";

	if (gmtime_r(&t, &tm) != NULL)
		(void)strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm);
	if (now < c->s->build_epoch)
		say(c, C_SYS_CLOCK, V_FAIL, ACT_NONE, NULL,
		    "the clock says %s UTC, which is before this program was built", text);
	else
		say(c, C_SYS_CLOCK, V_PASS, ACT_NONE, NULL, "%s UTC", text);
}

void group_system(struct ctx *c)
{
	say_begin(c, C_SYS_LIMITS);
	judge_limits(c);
	say_begin(c, C_SYS_CLOCK);
	judge_clock(c);
	say_begin(c, C_SYS_SHM); /* last: a file system may hang */
	judge_shm(c);
}

static unsigned count_certificates(const char *path)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----";
	cleanup_buf struct buf b;
	unsigned n = 0;

	buf_init(&b, 8U << 20);
	if (fs_read(AT_FDCWD, path, &b, NULL) < 0)
		return 0;
	for (const char *p = buf_str(&b); (p = strstr(p, begin)) != NULL; p += sizeof begin - 1)
		n++;
	return n;
}

static void judge_ca(struct ctx *c)
{
	static const char *const bundles[] = {"/etc/ssl/certs/ca-certificates.crt",
					      "/etc/pki/tls/certs/ca-bundle.crt",
					      "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};
	const char *given = c->s->ca_file, *dir = c->s->ca_dir;
	unsigned n = 0;

	if (given != NULL && *given != 0) {
		n = count_certificates(given);
		say(c, C_NET_CA, n > 0 ? V_PASS : V_FAIL, ACT_NONE,
		    n > 0 ? NULL : "correct SSL_CERT_FILE", "%s: %u certificates", given, n);
		return;
	}
	if (dir != NULL && *dir != 0) {
		struct stat st;
		bool ok = stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && access(dir, R_OK) == 0;
		say(c, C_NET_CA, ok ? V_PASS : V_FAIL, ACT_NONE, ok ? NULL : "correct SSL_CERT_DIR",
		    "%s: %s", dir, ok ? "a directory" : "not a readable directory");
		return;
	}
	for (size_t i = 0; n == 0 && i < sizeof bundles / sizeof bundles[0]; i++) {
		n = count_certificates(bundles[i]);
		if (n > 0)
			say(c, C_NET_CA, V_PASS, ACT_NONE, NULL, "%s: %u certificates", bundles[i],
			    n);
	}
	if (n == 0)
		say(c, C_NET_CA, V_FAIL, ACT_NONE, NULL,
		    "no bundle of CA certificates is in any usual place");
}

void group_net(struct ctx *c)
{
	struct probe_net out;

	say_begin(c, C_NET_CA);
	judge_ca(c);
	if (c->s->net == NULL || c->s->api_url == NULL || c->s->api_url[0] == 0) {
		say(c, C_NET_API, V_SKIP, ACT_NONE, NULL, "no RUNNER_URL: nothing to reach");
		say(c, C_NET_CLOCK, V_SKIP, ACT_NONE, NULL,
		    "no RUNNER_URL: nobody to compare with");
		return;
	}
	memset(&out, 0, sizeof out);
	say_begin(c, C_NET_API);
	c->s->net(c->s, deadline_minus(c->deadline, 100), &out);
	say(c, C_NET_API, out.ok ? V_PASS : V_FAIL, ACT_NONE, NULL, "%s", out.detail);
	say_begin(c, C_NET_CLOCK);
	if (!out.have_skew)
		say(c, C_NET_CLOCK, V_UNKNOWN, ACT_NONE, NULL, "no verified Date was read");
	else
		say(c, C_NET_CLOCK,
		    out.skew_s > SKEW_MAX_S || out.skew_s < -SKEW_MAX_S ? V_FAIL : V_PASS, ACT_NONE,
		    NULL, "the clock is %lld s %s",
		    (long long)(out.skew_s < 0 ? -out.skew_s : out.skew_s),
		    out.skew_s < 0 ? "behind" : "ahead");
}
