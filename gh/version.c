/*
 * Which runner is installed. Its build gives the version to the assembly (actions/runner,
 * src/dir.proj), and the assembly's list of libraries names it; reading that costs nothing, while
 * `--version` starts .NET.
 */
#include "gh/version.h"
#include "base/child.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "gh/gh.h"
#include "gh/json.h"

#include <fcntl.h>
#include <string.h>

#define DEPS_JSON_MAX (4u << 20)
#define OUTPUT_MAX    4096

/* "2.336.0": two to four numbers. */
static bool is_version(const char *s)
{
	unsigned dots = 0;
	bool digit = false;

	for (; *s != 0; s++) {
		if (*s == '.' && digit) {
			dots++;
			digit = false;
		} else if (*s >= '0' && *s <= '9') {
			digit = true;
		} else {
			return false;
		}
	}
	return digit && dots >= 1 && dots <= 3;
}

int version_from_deps(const void *text, size_t len, char *dst, size_t size, struct err *e)
{
	static const char prefix[] = "Runner.Listener/";
	struct json_cursor c = {0};
	struct json_at at, libs;
	const char *name;
	struct json j;
	int rc = -1;

	if (json_parse(&j, text, len, JSON_STRICT, "Runner.Listener.deps.json", &at, e) < 0)
		return -1;
	if (json_obj(&at, "libraries", JSON_REQUIRED, &libs, e) == 1) {
		rc = 1;
		while (rc == 1 && (name = json_next_name(&libs, &c)) != NULL)
			if (str_starts(name, prefix) && is_version(name + strlen(prefix)))
				rc = str_copy(dst, size, name + strlen(prefix));
		if (rc != 0)
			rc = err_set(
				e, XC_FILES, 0,
				"Runner.Listener.deps.json: no library Runner.Listener/VERSION");
	}
	json_free(&j);
	return rc;
}

int version_from_output(const char *text, char *dst, size_t size, struct err *e)
{
	size_t n = strcspn(text, "\n");
	char line[128], shown[80];
	const char *p;

	str_show(shown, sizeof shown, text, n);
	if (str_copyn(line, sizeof line, text, n) == 0) {
		p = str_trim(line, &n);
		if (str_copyn(dst, size, p, n) == 0 && is_version(dst))
			return 0;
	}
	dst[0] = 0;
	return err_set(e, XC_FILES, 0, "Runner.Listener --version printed \"%s\", no version",
		       shown);
}

static int ask_listener(const char *root, const char *const *envp, uid_t uid, gid_t gid,
			struct deadline d, char *dst, size_t size, struct err *e)
{
	char path[1100];
	const char *argv[] = {path, "--version", NULL};
	struct child_spec spec = {.argv = argv,
				  .envp = envp,
				  .cwd = root,
				  .out_max = OUTPUT_MAX,
				  .uid = uid,
				  .gid = gid,
				  .deadline = d};
	struct child_result r;
	int rc;

	if (str_fmt(path, sizeof path, "%s/bin/Runner.Listener", root) < 0)
		return err_set(e, XC_FILES, 0, "RUNNER_ROOT is too long");
	if (child_run(&spec, &r, e) < 0)
		return -1;
	if (r.end == CHILD_EXITED && r.code == 0)
		rc = version_from_output(buf_str(&r.out), dst, size, e);
	else if (r.end == CHILD_NOEXEC)
		rc = err_set(e, XC_FILES, r.code, "%s cannot be executed", path);
	else
		rc = err_set(e, XC_FILES, 0, "%s --version %s", path,
			     r.end == CHILD_EXITED     ? "failed"
			     : r.end == CHILD_SIGNALED ? "was killed"
						       : "did not end in time");
	child_result_free(&r);
	return rc;
}

int gh_agent_version(const char *root, const char *const *envp, uid_t uid, gid_t gid,
		     struct deadline d, char *dst, size_t size, struct err *e)
{
	struct err why = ERR_INIT;
	cleanup_buf struct buf text = {0};
	char path[1100];

	buf_init(&text, DEPS_JSON_MAX);
	if (str_fmt(path, sizeof path, "%s/bin/Runner.Listener.deps.json", root) < 0)
		return err_set(e, XC_FILES, 0, "RUNNER_ROOT is too long");
	if (fs_read(AT_FDCWD, path, &text, &why) == 0 &&
	    version_from_deps(text.data, text.len, dst, size, &why) == 0)
		return 0;
	log_event(LL_DEBUG, "version_slow", NULL, 0, "%s: asking Runner.Listener --version",
		  why.text);
	return ask_listener(root, envp, uid, gid, d, dst, size, e);
}
