/*
 * Measures an init. INIT... is its command line; what runs below it is this program again.
 *
 *	measure start N plain|ns INIT...   microseconds from clone to the first instruction of CMD's
 *main, and to the end of init: "main_p50 main_p99 total_p50 total_p99" measure deaf N INIT...
 *microseconds in which a TERM to PID 1 is lost: "deaf" measure drain N INIT... milliseconds for N
 *zombies behind one SIGCHLD: "drain" measure orphans N INIT...          orphans reaped a second,
 *streamed: "orphans" measure idle SECONDS INIT...       "rss private_dirty wakeups fds" (kB, kB, a
 *second, open) measure idle-only SECONDS INIT...  the same of an init that starts no CMD measure
 *cycles N SECONDS INIT...   starts and stops: "cycles wrong fds_grown left"
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGS_MAX  64
#define RUNS_MAX  20000
#define SPREAD_NS 3000000 /* a TERM comes within this time of the start */

static char self[4096];

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "measure: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void doze_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static uint32_t chance(void)
{
	static uint32_t seed = 20260101;

	seed = seed * 1664525 + 1013904223;
	return seed >> 8;
}

/* ---- below the init ---- */

static int stamp(void)
{
	int64_t t = now_ns();

	return write(STDOUT_FILENO, &t, sizeof t) == (ssize_t)sizeof t ? 0 : 1;
}

static _Noreturn void park(void)
{
	(void)!write(STDOUT_FILENO, "r", 1);
	for (;;)
		(void)pause();
}

/* n orphans below PID 1 that end when standard input does. Standard output gets a byte when all are
 * there, and one when the last of them is ending. */
static int parked(int n)
{
	int alive[2];
	char c;

	if (pipe(alive) < 0)
		return 1;
	if (fork() == 0) {
		for (int i = 0; i < n; i++) {
			pid_t p = fork();
			if (p < 0)
				_exit(1);
			if (p == 0)
				_exit((int)read(STDIN_FILENO, &c, 1));
		}
		_exit(0);
	}
	while (wait(NULL) < 0 && errno == EINTR)
		;
	(void)close(STDIN_FILENO);
	(void)close(alive[1]);
	(void)!write(STDOUT_FILENO, "r", 1);
	while (read(alive[0], &c, 1) > 0)
		;
	park();
}

static int orphans(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t p = fork();
		if (p == 0)
			_exit(fork() < 0);
		if (p < 0 || waitpid(p, NULL, 0) != p)
			return 1;
	}
	return 0;
}

static int work(const char *what, int n)
{
	if (strcmp(what, "@stamp") == 0)
		return stamp();
	if (strcmp(what, "@park") == 0)
		park();
	if (strcmp(what, "@parked") == 0)
		return parked(n);
	if (strcmp(what, "@orphans") == 0)
		return orphans(n);
	return n; /* @exit */
}

/* ---- starting an init ---- */

struct job {
	char *argv[ARGS_MAX];
	char arg[16], what[16];
	int in, out; /* descriptors, -1: /dev/null */
};

static void prepare(struct job *j, char **init, const char *what, int n)
{
	int k = 0;

	for (; init[k] != NULL && k < ARGS_MAX - 4; k++)
		j->argv[k] = init[k];
	(void)snprintf(j->what, sizeof j->what, "%s", what);
	(void)snprintf(j->arg, sizeof j->arg, "%d", n);
	j->argv[k++] = self;
	j->argv[k++] = j->what;
	j->argv[k++] = j->arg;
	j->argv[k] = NULL;
	j->in = j->out = -1;
}

static int child(void *arg)
{
	struct job *j = arg;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (dup2(j->in >= 0 ? j->in : null, 0) < 0 || dup2(j->out >= 0 ? j->out : null, 1) < 0 ||
	    dup2(null, 2) < 0)
		_exit(125);
	(void)execv(j->argv[0], j->argv);
	_exit(126);
}

static pid_t launch(struct job *j, int flags)
{
	static _Alignas(16) char stack[65536];
	pid_t p = clone(child, stack + sizeof stack, flags | SIGCHLD, j);

	if (p < 0)
		die("clone");
	return p;
}

static int collect(pid_t p)
{
	int status;

	while (waitpid(p, &status, __WALL) < 0)
		if (errno != EINTR)
			die("wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void pipe_for(int fds[2])
{
	if (pipe2(fds, O_CLOEXEC) < 0)
		die("pipe");
}

/* ---- measurements ---- */

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void show(const char *name, int64_t *v, int n)
{
	qsort(v, (size_t)n, sizeof *v, by_value);
	(void)printf("%s_p50 %.1f\n%s_p99 %.1f\n", name, (double)v[n / 2] / 1000, name,
		     (double)v[n * 99 / 100] / 1000);
}

static int start(int n, int flags, char **init)
{
	static int64_t to_main[RUNS_MAX], total[RUNS_MAX];
	struct job j;

	prepare(&j, init, "@stamp", 0);
	if (n > RUNS_MAX)
		n = RUNS_MAX;
	for (int i = -5; i < n; i++) { /* five to warm up */
		int fds[2];
		int64_t t0, t1, end;
		pid_t p;

		pipe_for(fds);
		j.out = fds[1];
		t0 = now_ns();
		p = launch(&j, flags | CLONE_VM | CLONE_VFORK);
		if (collect(p) != 0)
			die("a start failed");
		end = now_ns();
		if (read(fds[0], &t1, sizeof t1) != (ssize_t)sizeof t1)
			die("no stamp");
		(void)close(fds[0]);
		(void)close(fds[1]);
		if (i >= 0) {
			to_main[i] = t1 - t0;
			total[i] = end - t0;
		}
	}
	show("main", to_main, n);
	show("total", total, n);
	return 0;
}

/* What the kernel drops because PID 1 has not blocked it yet, as a share of the spread. */
static int deaf(int n, char **init)
{
	struct job j;
	int lost = 0;

	prepare(&j, init, "@park", 0);
	for (int i = 0; i < n; i++) {
		int64_t at = now_ns() + (int64_t)(chance() % SPREAD_NS), limit;
		pid_t p = launch(&j, CLONE_NEWPID);
		int ended = 0;

		while (now_ns() < at)
			;
		(void)kill(p, SIGTERM);
		limit = now_ns() + 250000000;
		while (!ended && now_ns() < limit) {
			ended = waitpid(p, NULL, WNOHANG) == p;
			if (!ended)
				doze_ms(1);
		}
		if (!ended) {
			lost++;
			(void)kill(p, SIGKILL);
			(void)collect(p);
		}
	}
	(void)printf("deaf %.0f\n", (double)lost * SPREAD_NS / 1000 / n);
	return 0;
}

/* Children of p, 2 standing for all above one. */
static int children(pid_t p)
{
	char path[64], buf[64];
	int fd, n = 0;
	ssize_t r;

	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)p, (int)p);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die(path);
	r = read(fd, buf, sizeof buf);
	(void)close(fd);
	for (ssize_t i = 0; i < r; i++)
		n += buf[i] == ' ';
	return n > 2 ? 2 : n;
}

static int drain(int n, char **init)
{
	struct job j;
	int in[2], out[2];
	int64_t t0;
	pid_t p;
	char c;

	prepare(&j, init, "@parked", n);
	pipe_for(in);
	pipe_for(out);
	j.in = in[0];
	j.out = out[1];
	p = launch(&j, CLONE_NEWPID);
	(void)close(in[0]);
	(void)close(out[1]);
	if (read(out[0], &c, 1) != 1)
		die("the orphans did not come up");
	(void)kill(p, SIGSTOP);
	(void)waitpid(p, NULL, WUNTRACED);
	(void)close(in[1]);
	if (read(out[0], &c, 1) != 1)
		die("the orphans did not end");
	doze_ms(500); /* they closed their descriptors; now they end */
	t0 = now_ns();
	(void)kill(p, SIGCONT);
	while (children(p) > 1)
		;
	(void)printf("drain %.1f\n", (double)(now_ns() - t0) / 1000000);
	(void)kill(p, SIGKILL);
	(void)collect(p);
	return 0;
}

static int stream(int n, char **init)
{
	struct job j;
	int64_t t0 = now_ns();

	prepare(&j, init, "@orphans", n);
	if (collect(launch(&j, CLONE_NEWPID)) != 0)
		die("the orphans failed");
	(void)printf("orphans %.0f\n", (double)n * 1e9 / (double)(now_ns() - t0));
	return 0;
}

static long field(pid_t p, const char *file, const char *name)
{
	char path[64], line[256];
	long v = -1;
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%d/%s", (int)p, file);
	f = fopen(path, "re");
	if (f == NULL)
		die(path);
	while (fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			v = strtol(line + strlen(name), NULL, 10);
	(void)fclose(f);
	return v;
}

static int open_fds(pid_t p)
{
	char path[64];
	int n = 0;
	DIR *d;

	(void)snprintf(path, sizeof path, "/proc/%d/fd", (int)p);
	d = opendir(path);
	if (d == NULL)
		die(path);
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n - 2;
}

static int idle(int seconds, bool alone, char **init)
{
	struct job j;
	long before;
	int out[2];
	pid_t p;
	char c;

	prepare(&j, init, "@park", 0);
	pipe_for(out);
	j.out = out[1];
	if (alone)
		j.argv[2] = NULL; /* name and folder */
	p = launch(&j, CLONE_NEWPID);
	if (!alone && read(out[0], &c, 1) != 1)
		die("CMD did not come up");
	doze_ms(500);
	before = field(p, "status", "voluntary_ctxt_switches:");
	doze_ms(seconds * 1000L);
	(void)printf("wakeups %.1f\n",
		     (double)(field(p, "status", "voluntary_ctxt_switches:") - before) / seconds);
	(void)printf("rss %ld\n", field(p, "smaps_rollup", "Rss:"));
	(void)printf("private_dirty %ld\n", field(p, "smaps_rollup", "Private_Dirty:"));
	(void)printf("fds %d\n", open_fds(p));
	(void)kill(p, SIGKILL);
	(void)collect(p);
	return 0;
}

/* One life: CMD's own end, a TERM at any time after it came up, or a storm of orphans. */
static int cycle(char **init, int i)
{
	int kind = i % 3, flags = i % 2 == 0 ? CLONE_NEWPID : 0, code = i % 256, out[2], got;
	struct job j;
	pid_t p;
	char c;

	if (kind == 0) {
		prepare(&j, init, "@exit", code);
		return collect(launch(&j, flags | CLONE_VM | CLONE_VFORK)) == code;
	}
	if (kind == 1) {
		prepare(&j, init, "@orphans", 5);
		return collect(launch(&j, flags | CLONE_VM | CLONE_VFORK)) == 0;
	}
	prepare(&j, init, "@park", 0);
	pipe_for(out);
	j.out = out[1];
	p = launch(&j, flags | CLONE_VM | CLONE_VFORK);
	(void)!read(out[0], &c, 1);
	(void)close(out[0]);
	(void)close(out[1]);
	(void)kill(p, SIGTERM);
	got = collect(p);
	return got == 128 + SIGTERM;
}

static int cycles(int n, int seconds, char **init)
{
	int64_t end = now_ns() + (int64_t)seconds * 1000000000;
	int i, wrong = 0, before, left = 0;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* whatever an init leaves comes to us */
	before = open_fds(getpid());
	for (i = 0; i < n && now_ns() < end; i++)
		wrong += !cycle(init, i);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		left++;
	if (errno != ECHILD)
		left++;
	(void)printf("cycles %d\nwrong %d\nfds_grown %d\nleft %d\n", i, wrong,
		     open_fds(getpid()) - before, left);
	return wrong != 0 || left != 0;
}

int main(int argc, char **argv)
{
	ssize_t k = readlink("/proc/self/exe", self, sizeof self - 1);
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;

	if (k < 0)
		die("/proc/self/exe");
	if (what[0] == '@')
		return work(what, n);
	if (argc < 4 || n <= 0)
		return 64;
	if (strcmp(what, "deaf") == 0)
		return deaf(n, argv + 3);
	if (strcmp(what, "drain") == 0)
		return drain(n, argv + 3);
	if (strcmp(what, "orphans") == 0)
		return stream(n, argv + 3);
	if (strcmp(what, "idle") == 0)
		return idle(n, false, argv + 3);
	if (strcmp(what, "idle-only") == 0)
		return idle(n, true, argv + 3);
	if (argc > 4 && strcmp(what, "start") == 0)
		return start(n, argv[3][0] == 'n' ? CLONE_NEWPID : 0, argv + 4);
	if (argc > 4 && strcmp(what, "cycles") == 0)
		return cycles(n, (int)strtol(argv[3], NULL, 10), argv + 4);
	return 64;
}
