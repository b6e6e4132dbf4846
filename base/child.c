#include "base/child.h"

#include "base/cleanup.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Three processes. The caller reads output. The keeper, a fork that never execs and never touches a
 * device, is a subreaper, so whatever the program starts stays below it however it daemonizes. The
 * program is the keeper's child. The keeper ends the tree when the program ended, at the deadline,
 * and when the caller dies (the life pipe closes); the caller in turn does not wait for a keeper
 * that somebody stopped for longer than KEEPER_GRACE_MS past the deadline.
 */

#define KILL_MS		500  /* how long killed processes may take to die */
#define KEEPER_GRACE_MS 1500 /* past the deadline, then the keeper itself is given up */
#define TREE_MAX	4096 /* processes looked at; beyond, the next round finds the rest */

static const char fallback_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

struct report {
	int end; /* enum child_end */
	int code;
};

struct pipes {
	int out[2], err_[2];
	int status[2]; /* keeper to caller: one struct report */
	int life[2];   /* nothing is ever written; closes when the caller is gone */
	int input;     /* what the program gets as standard input */
};

static void pipes_close(struct pipes *p)
{
	int *all[] = {&p->out[0],    &p->out[1],  &p->err_[0], &p->err_[1], &p->status[0],
		      &p->status[1], &p->life[0], &p->life[1], &p->input};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		fd_close(all[i]);
}

#define cleanup_pipes __attribute__((cleanup(pipes_close)))

/* A memfd and not a pipe: a program that does not read can neither block nor SIGPIPE the caller. */
static int input_open(const struct child_spec *spec)
{
	cleanup_fd int fd = -1;
	const char *p = spec->input;
	size_t left = spec->input_len;

	if (p == NULL)
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	fd = memfd_create("input", MFD_CLOEXEC);
	while (fd >= 0 && left > 0) {
		ssize_t r = write(fd, p, left);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return -1;
		p += r;
		left -= (size_t)r;
	}
	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return take_fd(&fd);
}

/* A descriptor that lands on 0, 1 or 2 (the caller has them closed) would be lost to the dup2s. */
static int above_stdio(int *fd)
{
	int up;

	if (*fd > STDERR_FILENO)
		return 0;
	up = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (up < 0)
		return -1;
	fd_close(fd);
	*fd = up;
	return 0;
}

static int pipes_open(struct pipes *p, const struct child_spec *spec)
{
	int *all[] = {&p->out[0],    &p->out[1],  &p->err_[0], &p->err_[1], &p->status[0],
		      &p->status[1], &p->life[0], &p->life[1], &p->input};

	if (pipe2(p->out, O_CLOEXEC) < 0 || pipe2(p->err_, O_CLOEXEC) < 0 ||
	    pipe2(p->status, O_CLOEXEC) < 0 || pipe2(p->life, O_CLOEXEC) < 0)
		return -1;
	p->input = input_open(spec);
	if (p->input < 0)
		return -1;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (above_stdio(all[i]) < 0)
			return -1;
	if (fcntl(p->out[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(p->err_[0], F_SETFL, O_NONBLOCK) < 0)
		return -1;
	return 0;
}

/* ---- the program, between fork and exec ---- */

int child_become(uid_t uid, gid_t gid)
{
	const struct passwd *pw;

	if (uid == (uid_t)-1 || (uid == geteuid() && uid == getuid() && gid == getegid()))
		return 0;
	pw = getpwuid(uid); /* groups such as video and render decide about device nodes */
	if (pw != NULL ? initgroups(pw->pw_name, gid) < 0 : setgroups(1, &gid) < 0)
		return -1;
	return setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0 ? -1 : 0;
}

static void close_others_on_exec(void)
{
	struct dirent *d;
	DIR *dir;

#ifdef SYS_close_range
	if (syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) == 0)
		return;
#endif
	dir = opendir("/proc/self/fd");
	if (dir == NULL)
		return;
	while ((d = readdir(dir)) != NULL) {
		uint64_t fd;
		if (str_u64(d->d_name, 3, 1U << 30, &fd) == 0)
			(void)fcntl((int)fd, F_SETFD, FD_CLOEXEC);
	}
	(void)closedir(dir);
}

static const char *path_of(const char *const *envp)
{
	for (; envp != NULL && *envp != NULL; envp++)
		if (str_starts(*envp, "PATH=") && (*envp)[5] != 0)
			return *envp + 5;
	return fallback_path;
}

/* Returns only on failure, with the errno that says most. */
static int exec_search(const char *const *argv, const char *const *envp)
{
	int best = ENOENT;
	const char *name = argv[0], *p = path_of(envp);

	if (strchr(name, '/') != NULL) {
		(void)execve(name, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)envp);
		return errno;
	}
	while (*name != 0) {
		size_t n = strcspn(p, ":");
		char file[4096];
		if (str_fmt(file, sizeof file, "%.*s/%s", n > 0 ? (int)n : 1, n > 0 ? p : ".",
			    name) == 0) {
			(void)execve(file, (char *const *)(uintptr_t)argv,
				     (char *const *)(uintptr_t)envp);
			if (errno != ENOENT && errno != ENOTDIR)
				best = errno;
		}
		if (p[n] == 0)
			break;
		p += n + 1;
	}
	return best;
}

/* Straight to the kernel, for all 64: the C libraries keep 32 to 34 for themselves and refuse them
 * in sigaction, yet glibc's posix_spawn leaves 32 and 33 ignored in what it starts, and an ignored
 * signal survives exec. The kernel's structure is four words at most; zeroed, it is the default. */
static void default_signals(void)
{
	static const unsigned long dfl[4] = {0, 0, 0, 0};

	for (int s = 1; s <= 64; s++) /* KILL and STOP refuse, and need nothing */
		(void)syscall(SYS_rt_sigaction, s, dfl, NULL, 8UL);
}

static _Noreturn void program(const struct child_spec *spec, struct pipes *p, int exec_fd)
{
	const char *const *envp =
		spec->envp != NULL ? spec->envp : (const char *const *)(uintptr_t)environ;
	sigset_t none;
	int why = 0;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	if (dup2(p->input, STDIN_FILENO) < 0 || dup2(p->out[1], STDOUT_FILENO) < 0 ||
	    dup2(p->err_[1], STDERR_FILENO) < 0 || child_become(spec->uid, spec->gid) < 0 ||
	    (spec->cwd != NULL && chdir(spec->cwd) < 0))
		why = errno;
	close_others_on_exec();
	if (why == 0)
		why = exec_search(spec->argv, envp);
	(void)!write(exec_fd, &why, sizeof why);
	_exit(127);
}

/* ---- the keeper ---- */

struct proc {
	pid_t pid, ppid;
	bool ours;
};

/* Reads "pid (comm) S ppid" of one process; comm may hold blanks and parentheses. */
static int parent_of(pid_t pid, pid_t *ppid)
{
	cleanup_fd int fd = -1;
	char path[64], text[512], *p;
	uint64_t v;
	ssize_t n;

	if (str_fmt(path, sizeof path, "/proc/%d/stat", (int)pid) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return -1;
	text[n] = 0;
	p = strrchr(text, ')');
	if (p == NULL || p[1] == 0 || p[2] == 0 || p[3] == 0)
		return -1;
	p += 4; /* over ") S " */
	p[strcspn(p, " ")] = 0;
	if (str_u64(p, 0, INT32_MAX, &v) < 0)
		return -1;
	*ppid = (pid_t)v;
	return 0;
}

static size_t list_procs(struct proc *t, size_t max)
{
	struct dirent *d;
	size_t n = 0;
	DIR *dir = opendir("/proc");

	if (dir == NULL)
		return 0;
	while (n < max && (d = readdir(dir)) != NULL) {
		uint64_t v;
		if (str_u64(d->d_name, 1, INT32_MAX, &v) < 0)
			continue;
		t[n] = (struct proc){(pid_t)v, 0, false};
		if (parent_of(t[n].pid, &t[n].ppid) == 0)
			n++;
	}
	(void)closedir(dir);
	return n;
}

/* Kills everything below this process that can be seen now. */
static void kill_tree(pid_t leader)
{
	static struct proc t[TREE_MAX]; /* the keeper's own copy: it is a fork */
	size_t n = list_procs(t, TREE_MAX);
	pid_t me = getpid();
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++) {
			bool below = t[i].ppid == me;
			for (size_t k = 0; !below && k < n; k++)
				below = t[k].ours && t[k].pid == t[i].ppid;
			if (below && !t[i].ours)
				more = t[i].ours = true;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (t[i].ours)
			(void)kill(t[i].pid, SIGKILL);
	(void)kill(-leader, SIGKILL); /* where /proc is missing or another namespace's */
}

struct keep {
	pid_t leader;
	bool leader_gone;
	int status;
};

/* true when nothing is left below us. */
static bool reap(struct keep *k)
{
	for (;;) {
		int st;
		pid_t p = waitpid(-1, &st, WNOHANG);
		if (p < 0 && errno == EINTR)
			continue;
		if (p <= 0)
			return p < 0;
		if (p == k->leader) {
			k->leader_gone = true;
			k->status = st;
		}
	}
}

static void end_tree(struct keep *k, int sigfd)
{
	struct deadline d = deadline_in(KILL_MS);

	while (!reap(k) && !deadline_passed(d)) {
		struct pollfd f = {sigfd, POLLIN, 0};
		struct signalfd_siginfo si;
		kill_tree(k->leader);
		(void)poll(&f, 1, 20);
		(void)!read(sigfd, &si, sizeof si);
	}
}

/* Until the program ended, the deadline passed or the caller died. */
static void keep_watch(struct keep *k, int sigfd, int life, struct deadline d)
{
	for (;;) {
		struct pollfd f[2] = {{sigfd, POLLIN, 0}, {life, 0, 0}};
		struct signalfd_siginfo si;
		(void)reap(k);
		if (k->leader_gone || deadline_passed(d))
			return;
		if (poll(f, 2, deadline_poll_ms(d)) > 0 && f[1].revents != 0)
			return;
		(void)!read(sigfd, &si, sizeof si);
	}
}

static struct report judge(struct keep *k, bool empty, int exec_fd)
{
	int why = 0;

	if (read(exec_fd, &why, sizeof why) == (ssize_t)sizeof why)
		return (struct report){CHILD_NOEXEC, why};
	if (!empty)
		return (struct report){CHILD_HUNG, 0};
	if (WIFEXITED(k->status))
		return (struct report){CHILD_EXITED, WEXITSTATUS(k->status)};
	return (struct report){CHILD_SIGNALED, WTERMSIG(k->status)};
}

static _Noreturn void keeper(const struct child_spec *spec, struct pipes *p)
{
	struct keep k = {-1, false, 0};
	struct report r = {CHILD_HUNG, 0};
	int ex[2], sigfd;
	sigset_t all;
	bool late;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	default_signals();
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)setsid();
	fd_close(&p->life[1]);
	fd_close(&p->status[0]);
	(void)sigemptyset(&all);
	(void)sigaddset(&all, SIGCHLD);
	sigfd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sigfd < 0 || pipe2(ex, O_CLOEXEC | O_NONBLOCK) < 0 || (k.leader = fork()) < 0)
		_exit(127); /* no report: the caller says so */
	if (k.leader == 0)
		program(spec, p, ex[1]);
	fd_close(&ex[1]);
	fd_close(&p->out[0]); /* the program alone holds the writing ends */
	fd_close(&p->out[1]);
	fd_close(&p->err_[0]);
	fd_close(&p->err_[1]);
	fd_close(&p->input);
	keep_watch(&k, sigfd, p->life[0], spec->deadline);
	late = !k.leader_gone;
	end_tree(&k, sigfd);
	r = judge(&k, reap(&k), ex[0]);
	if (late && r.end != CHILD_HUNG)
		r.end = CHILD_TIMEOUT;
	(void)!write(p->status[1], &r, sizeof r);
	_exit(0);
}

/* ---- the caller ---- */

/* Takes what is there. false at the end of the stream; beyond out_max it is read and dropped. */
static bool drain(int *fd, struct buf *b, bool *cut)
{
	char chunk[16384];

	for (int rounds = 0; *fd >= 0 && rounds < 256; rounds++) {
		ssize_t n = read(*fd, chunk, sizeof chunk);
		size_t room = b->max - b->len, take;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0) {
			fd_close(fd);
			return false;
		}
		take = (size_t)n < room ? (size_t)n : room;
		if (buf_put(b, chunk, take) < 0 || take < (size_t)n)
			*cut = true;
	}
	return *fd >= 0;
}

static void collect(struct pipes *p, struct child_result *r, struct report *rep,
		    struct deadline cap)
{
	for (;;) {
		struct pollfd f[3] = {
			{p->status[0], POLLIN, 0}, {p->out[0], POLLIN, 0}, {p->err_[0], POLLIN, 0}};
		bool ended;
		if (poll(f, 3, deadline_poll_ms(cap)) < 0 && errno != EINTR)
			return;
		ended = f[0].revents != 0;
		(void)drain(&p->out[0], &r->out, &r->cut);
		(void)drain(&p->err_[0], &r->err_, &r->cut);
		if (ended && read(p->status[0], rep, sizeof *rep) == (ssize_t)sizeof *rep)
			return;
		if (ended || deadline_passed(cap))
			return; /* rep still says what it was born with */
	}
}

/* The keeper is gone or is made to go; a zombie is left rather than waited for without end. */
static void keeper_end(pid_t keeper_pid)
{
	for (int i = 0; i < 70; i++) {
		pid_t got = waitpid(keeper_pid, NULL, WNOHANG);
		if (got == keeper_pid || (got < 0 && errno == ECHILD))
			return;
		if (i >= 20)
			(void)kill(keeper_pid, SIGKILL);
		(void)poll(NULL, 0, i < 20 ? 1 : 10);
	}
}

int child_run(const struct child_spec *spec, struct child_result *r, struct err *e)
{
	cleanup_pipes struct pipes p = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, -1};
	int64_t start = clock_mono_ms();
	struct report rep = {CHILD__MAX, 0};
	struct deadline cap = spec->deadline;
	pid_t pid;

	if (pipes_open(&p, spec) < 0)
		return err_set(e, XC_SYSTEM, errno, "cannot make the pipes to run %s",
			       spec->argv[0]);
	pid = fork();
	if (pid < 0)
		return err_set(e, XC_SYSTEM, errno,
			       "cannot fork to run %s: look at the pids limit of the container",
			       spec->argv[0]);
	if (pid == 0)
		keeper(spec, &p);
	fd_close(&p.out[1]);
	fd_close(&p.err_[1]);
	fd_close(&p.status[1]);
	fd_close(&p.life[0]);
	memset(r, 0, sizeof *r);
	buf_init(&r->out, spec->out_max > 0 ? spec->out_max : 1);
	buf_init(&r->err_, spec->out_max > 0 ? spec->out_max : 1);
	if (cap.at_ms < INT64_MAX - KEEPER_GRACE_MS)
		cap.at_ms += KEEPER_GRACE_MS;
	collect(&p, r, &rep, cap);
	if (rep.end == CHILD__MAX && !deadline_passed(cap)) {
		keeper_end(pid);
		child_result_free(r);
		return err_set(e, XC_SYSTEM, 0,
			       "the process that watches %s ended early: look at the pids and "
			       "memory limits of the container",
			       spec->argv[0]);
	}
	r->end = rep.end == CHILD__MAX ? CHILD_HUNG : (enum child_end)rep.end;
	r->code = rep.code;
	keeper_end(pid);
	r->ms = clock_mono_ms() - start;
	return 0;
}

void child_result_free(struct child_result *r)
{
	buf_free(&r->out);
	buf_free(&r->err_);
}
