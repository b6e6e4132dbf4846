#include "init/setting.h"

#include <string.h>

#define IN(field) offsetof(struct config, field), sizeof(((struct config *)0)->field), 0, 0
#define NO_FIELD  0, 0, 0, 0
#define MS(field, least, most)                                                                     \
	offsetof(struct config, field), sizeof(((struct config *)0)->field), (least), (most)

#define SECOND 1000
#define HOUR   (3600 * SECOND)
#define MONTH  (720LL * HOUR)

#define YES_NO	 "1 true yes y on, or 0 false no n off"
#define TIME	 "a duration such as 90, 90s, 15m or 2h"
#define ABSOLUTE "an absolute path"

/* name, alias, secret, need, default, default for people, accepted, meaning, setter, field */
const struct setting settings[] = {
	{"RUNNER_URL", NULL, false, NEED_ALL, NULL, "required, but with JIT",
	 "https://HOST/OWNER/REPO, https://HOST/ORG or https://HOST/enterprises/NAME",
	 "where the runner belongs: repository, organisation or enterprise; https only", set_url,
	 NO_FIELD},
	{"RUNNER_TOKEN", NULL, true, NEED_LIFE, NULL, "one credential is required",
	 "one word without blanks", "registration token, good for an hour", set_token,
	 IN(gh.cred.token)},
	{"ACCESS_TOKEN", NULL, true, NEED_LIFE, NULL, NULL, "one word without blanks",
	 "personal access token: mints registration and removal tokens at any time", set_token,
	 IN(gh.cred.pat)},
	{"APP_ID", NULL, false, NEED_LIFE, NULL, NULL, "the App's id or its client id",
	 "GitHub App that registers and removes", set_app_id, IN(gh.cred.app_id)},
	{"APP_PRIVATE_KEY", NULL, true, NEED_LIFE, NULL, NULL,
	 "a PEM text, line breaks real or as \\n", "private key of the App", set_secret,
	 IN(gh.cred.app_key)},
	{"APP_INSTALLATION_ID", NULL, false, NEED_LIFE, NULL, "found", "a positive number",
	 "installation of the App", set_installation, NO_FIELD},
	{"ACTIONS_RUNNER_INPUT_JITCONFIG", NULL, true, NEED_LIFE, NULL, NULL,
	 "base64 as the JIT endpoint gave it",
	 "JIT configuration: nothing is registered, its files are written and the agent started",
	 set_token, IN(gh.cred.jit)},
	{"RUNNER_JIT", NULL, false, NEED_LIFE, "no", NULL, YES_NO,
	 "have GitHub make a JIT configuration, with the PAT or the App", set_bool,
	 IN(gh.jit_generate)},
	{"RUNNER_NAME", NULL, false, NEED_LIFE, NULL, "host name", "1 to 64 bytes, printable",
	 "name of the runner; a longer host name is shortened with a hash", set_name, NO_FIELD},
	{"RUNNER_LABELS", NULL, false, NEED_LIFE, NULL, "none beyond the default labels",
	 "a comma list of at most 100 labels, each 1 to 256 bytes",
	 "labels, each trimmed, duplicates in any case dropped", set_labels, NO_FIELD},
	{"RUNNER_NO_DEFAULT_LABELS", NULL, false, NEED_LIFE, "no", NULL, YES_NO,
	 "leave out self-hosted, Linux and X64 or ARM64", set_bool, IN(gh.no_default_labels)},
	{"RUNNER_GROUP", NULL, false, NEED_LIFE, NULL, "the default group",
	 "1 to 256 bytes, printable", "runner group (organisations and enterprises)", set_group,
	 IN(gh.group)},
	{"RUNNER_WORKDIR", NULL, false, NEED_ALL, "_work", NULL,
	 "a path, absolute or relative to the runner root, without ..", "work folder of the jobs",
	 set_work, IN(gh.work)},
	{"RUNNER_EPHEMERAL", NULL, false, NEED_LIFE, "yes", NULL, YES_NO,
	 "one job, then the runner is gone", set_bool, IN(gh.ephemeral)},
	{"RUNNER_REPLACE", NULL, false, NEED_LIFE, "yes", NULL, YES_NO,
	 "take over a runner of the same name", set_bool, IN(gh.replace)},
	{"RUNNER_DISABLE_UPDATE", NULL, false, NEED_LIFE, "yes", NULL, YES_NO,
	 "the agent does not update itself", set_bool, IN(gh.disable_update)},
	{"RUNNER_ROOT", NULL, false, NEED_ALL, NULL, "searched",
	 "the directory that holds bin/Runner.Listener",
	 "runner root; searched in /home/ci-runner/runner, /home/runner, /actions-runner, /runner, "
	 "/opt/actions-runner and the working directory",
	 set_root, IN(root)},
	{"RUNNER_USER", NULL, false, NEED_ALL, NULL, "init's own user",
	 "a user's name or uid, with :gid or :group if another group is meant",
	 "user that agent, checks and file writing run as when init is root", set_user, NO_FIELD},
	{"RUNNER_ALLOW_RUNASROOT", NULL, false, NEED_LIFE, "no", NULL, YES_NO,
	 "let jobs run as root", set_bool, IN(allow_root)},
	{"INIT_STOP_TIMEOUT", NULL, false, NEED_LIFE, "9s", NULL, TIME ", 3s at least",
	 "whole budget of a stop, from the signal to the exit; fits the 10 s of docker stop",
	 set_duration, MS(stop_ms, 3 * SECOND, MONTH)},
	{"INIT_DRAIN", NULL, false, NEED_LIFE, "0", NULL, TIME,
	 "how long a running job may go on after the first stop signal; added to the budget",
	 set_duration, MS(drain_ms, 0, MONTH)},
	{"INIT_REGISTER_TIMEOUT", NULL, false, NEED_LIFE, "2m", NULL, TIME ", 5s at least",
	 "whole budget of registering, retries included", set_duration,
	 MS(gh.register_ms, 5 * SECOND, MONTH)},
	{"INIT_HTTP_TIMEOUT", NULL, false, NEED_ALL, "15s", NULL, TIME ", 100ms to 1h",
	 "one HTTP exchange, look-up, connect and handshake included", set_duration,
	 MS(gh.http_ms, 100, HOUR)},
	{"INIT_IDLE_TIMEOUT", NULL, false, NEED_LIFE, "0", "none", TIME ", 0 for none",
	 "an idle runner that got no job for this long deregisters and exits 0", set_duration,
	 MS(idle_ms, 0, MONTH)},
	{"INIT_SELFTEST", NULL, false, NEED_LIFE, "fast", NULL, "off, fast or deep",
	 "checks before registering", set_gate, NO_FIELD},
	{"INIT_GPU", NULL, false, NEED_ALL, "auto", NULL, "auto, required or off",
	 "whether a GPU is expected; auto: if a device node, the driver or NVIDIA_VISIBLE_DEVICES "
	 "says so",
	 set_gpu, NO_FIELD},
	{"INIT_GPU_WAIT", NULL, false, NEED_ALL, "0", NULL, TIME,
	 "how long the gate waits for a GPU to appear", set_duration, MS(gpu_wait_ms, 0, MONTH)},
	{"INIT_GPU_WATCH", NULL, false, NEED_LIFE, "60s", NULL, TIME ", 0 for none",
	 "period of the health watch while idle", set_duration, MS(gpu_watch_ms, 0, MONTH)},
	{"INIT_CONSTRAINTS", NULL, false, NEED_ALL, NULL, "constraints.txt beside the binary",
	 ABSOLUTE, "the pins that the build tier compares with", set_path, IN(constraints)},
	{"INIT_IMAGE", "TILEOPS_RUNNER_IMAGE", false, NEED_ALL, NULL, "not told",
	 "at most 255 bytes", "name of the image, for reports and the job's log", set_text,
	 IN(expect.image)},
	{"INIT_PYTHON", NULL, false, NEED_ALL, NULL, "python3 in PATH", ABSOLUTE,
	 "the interpreter whose packages the checks look at", set_path, IN(expect.python)},
	{"INIT_EXPECT_CUDA", NULL, false, NEED_ALL, "12.9", NULL, "a version such as 12.9, or any",
	 "the CUDA that torch must be built for", set_text, IN(expect.cuda)},
	{"INIT_EXPECT_SUFFIX", NULL, false, NEED_ALL, "cu129", NULL, "a word such as cu129, or any",
	 "local version of torch, torchvision and torchaudio", set_text, IN(expect.suffix)},
	{"INIT_EXPECT_GPUS", NULL, false, NEED_ALL, "0", NULL, "0 to 64, 0 for not said",
	 "how many cards there must be", set_count, offsetof(struct config, expect.gpus),
	 sizeof(((struct config *)0)->expect.gpus), 0, 64},
	{"INIT_GPU_MAX_USED", NULL, false, NEED_ALL, "2G", NULL,
	 "a size such as 512M or 2G, 0 for any",
	 "memory that an idle card may have in use, else it is not healthy", set_bytes,
	 IN(expect.gpu_max_used)},
	{"INIT_FLOOR_GEMM_TFLOPS", NULL, false, NEED_ALL, "auto", NULL,
	 "a number such as 300, 0 for none, auto for half of what the model does",
	 "fp16 matrix products slower than this fail the deep self-test", set_floor,
	 IN(expect.gemm_tflops)},
	{"INIT_FLOOR_COPY_GBS", NULL, false, NEED_ALL, "auto", NULL,
	 "a number such as 20, 0 for none, auto for 10",
	 "copies between host and card slower than this fail the deep self-test", set_floor,
	 IN(expect.copy_gbs)},
	{"INIT_LABELS_FROM_FACTS", NULL, false, NEED_LIFE, "no", NULL, YES_NO,
	 "add labels for what the checks saw", set_bool, IN(labels_from_facts)},
	{"INIT_LABELS_PREFIX", NULL, false, NEED_LIFE, NULL, "none", "1 to 63 bytes, no comma",
	 "what those labels begin with", set_text, IN(labels_prefix)},
	{"INIT_CACHE_DIRS", NULL, false, NEED_ALL,
	 "TILELANG_CACHE_DIR:TILELANG_TMP_DIR:TRITON_CACHE_DIR:PIP_CACHE_DIR:AGENT_TOOLSDIRECTORY",
	 NULL, "a colon list of at most 16 variable names",
	 "variables whose values are cache directories, made and proved writable at start",
	 set_nothing, NO_FIELD},
	{"INIT_CACHE_MIN_FREE", NULL, false, NEED_ALL, "1G", NULL,
	 "a size such as 1048576, 512M or 1G", "free space below which the gate warns", set_bytes,
	 IN(cache_min_free)},
	{"INIT_LOG", NULL, false, NEED_ALL, "text", NULL, "text or json", "form of the log",
	 set_log_form, NO_FIELD},
	{"INIT_LOG_LEVEL", NULL, false, NEED_ALL, "info", NULL, "error, warn, info or debug",
	 "what is logged", set_log_level, NO_FIELD},
	{"INIT_STATE_DIR", NULL, false, NEED_ALL, NULL, "/run/init, else /tmp/init-UID", ABSOLUTE,
	 "directory of state.json and the journal", set_path, IN(state_dir)},
	{"https_proxy", "HTTPS_PROXY", false, NEED_ALL, NULL, "none",
	 "[http://][USER:PASS@]HOST:PORT", "proxy for https, as the agent reads it", set_proxy,
	 IN(gh.https_proxy)},
	{"http_proxy", "HTTP_PROXY", false, NEED_ALL, NULL, "none",
	 "[http://][USER:PASS@]HOST:PORT",
	 "proxy for http; GitHub is https, so init itself never uses it", set_proxy,
	 IN(gh.http_proxy)},
	{"no_proxy", "NO_PROXY", false, NEED_ALL, NULL, "none", "a comma list of hosts",
	 "hosts that are reached without the proxy", set_text, IN(gh.no_proxy)},
	{"SSL_CERT_FILE", NULL, false, NEED_ALL, NULL, "the usual bundles", ABSOLUTE,
	 "certificate authorities, a PEM bundle", set_path, IN(gh.ca_file)},
	{"SSL_CERT_DIR", NULL, false, NEED_ALL, NULL, "none", "a directory, or a colon list",
	 "certificate authorities, a directory", set_text, IN(gh.ca_dir)},
	{"GITHUB_ACTIONS_RUNNER_FORCE_GHES", NULL, false, NEED_LIFE, "no", NULL, YES_NO,
	 "treat RUNNER_URL's host as an Enterprise Server, as the agent does", set_bool,
	 IN(force_ghes)},
};

const unsigned settings_n = sizeof settings / sizeof settings[0];
_Static_assert(sizeof settings / sizeof settings[0] <= SETTINGS_MAX, "SETTINGS_MAX is too small");

int setting_index(const char *name)
{
	for (unsigned i = 0; i < settings_n; i++)
		if (strcmp(settings[i].name, name) == 0)
			return (int)i;
	return -1;
}
