#include "gh/body.h"

#include "base/str.h"
#include "gh/b64.h"
#include "gh/json.h"

#include <string.h>

/* Labels: actions/runner, ConfigurationManager.cs and Util/VarUtil.cs (OSArchitecture); package
 * names: its releases. */
#if defined(__x86_64__)
#define ARCH_LABEL "X64"
#define ARCH_PKG   "linux-x64"
#elif defined(__aarch64__)
#define ARCH_LABEL "ARM64"
#define ARCH_PKG   "linux-arm64"
#elif defined(__arm__)
#define ARCH_LABEL "ARM"
#define ARCH_PKG   "linux-arm"
#else
#error "the runner has no release for this architecture"
#endif

const char *const body_default_labels[3] = {"self-hosted", "Linux", ARCH_LABEL};
const char *const body_package = ARCH_PKG;

static bool is_default_label(const char *label)
{
	for (size_t i = 0; i < 3; i++)
		if (str_eq_nocase(label, body_default_labels[i]))
			return true;
	return false;
}

/* Calls for each label to send, default ones first; a user label that repeats one of them is not
 * sent twice. */
static void each_label(struct json_out *o, const struct gh_settings *s,
		       void (*put)(struct json_out *, const char *, bool system))
{
	for (size_t i = 0; i < 3 && !s->no_default_labels; i++)
		put(o, body_default_labels[i], true);
	for (unsigned i = 0; i < s->n_labels; i++)
		if (s->no_default_labels || !is_default_label(s->labels[i]))
			put(o, s->labels[i], false);
}

static void label_object(struct json_out *o, const char *name, bool system)
{
	jo_open(o, NULL, '{');
	jo_u64(o, "id", 0);
	jo_str(o, "name", name);
	jo_str(o, "type", system ? "system" : "user");
	jo_close(o, '}');
}

static void label_string(struct json_out *o, const char *name, bool system)
{
	(void)system;
	jo_str(o, NULL, name);
}

int body_auth(struct buf *b, const char *url, const char *event)
{
	struct json_out o;

	jo_begin(&o, b, false);
	jo_open(&o, NULL, '{');
	jo_str(&o, "url", url);
	jo_str(&o, "runner_event", event);
	jo_close(&o, '}');
	return jo_end(&o);
}

static int modulus_text(struct buf *t, const struct key_parts *key)
{
	buf_init(t, 512);
	return b64_encode(t, B64_STD, key->modulus, sizeof key->modulus);
}

static void v1_key(struct json_out *o, const char *modulus)
{
	jo_open(o, "authorization", '{');
	jo_open(o, "publicKey", '{');
	jo_str(o, "exponent", "AQAB");
	jo_str(o, "modulus", modulus);
	jo_close(o, '}');
	jo_close(o, '}');
}

/* As captured from the official client; actions/runner, src/Sdk/DTWebApi/WebApi/TaskAgent.cs. For a
 * replacement the official client sends back what it looked up; the minimal body with the id set is
 * what ChristopherHX/github-act-runner (runnerconfiguration/add.go) sends. */
int body_v1(struct buf *b, const struct gh_settings *s, const struct key_parts *key,
	    uint64_t replace_id)
{
	cleanup_buf struct buf modulus = {0};
	struct json_out o;

	if (modulus_text(&modulus, key) < 0)
		return -1;
	jo_begin(&o, b, false);
	jo_open(&o, NULL, '{');
	jo_u64(&o, "maxParallelism", 1);
	jo_str(&o, "createdOn", "0001-01-01T00:00:00");
	v1_key(&o, buf_str(&modulus));
	jo_open(&o, "labels", '[');
	each_label(&o, s, label_object);
	jo_close(&o, ']');
	jo_u64(&o, "id", replace_id);
	jo_str(&o, "name", s->name);
	jo_str(&o, "version", s->agent_version);
	jo_str(&o, "osDescription", s->os_description);
	jo_bool(&o, "ephemeral", s->ephemeral);
	jo_bool(&o, "disableUpdate", s->disable_update);
	jo_u64(&o, "status", 0);
	jo_str(&o, "provisioningState", "Provisioned");
	jo_close(&o, '}');
	return jo_end(&o);
}

/* actions/runner, src/Runner.Common/RunnerDotcomServer.cs: AddRunnerAsync, ReplaceRunnerAsync. */
int body_v2(struct buf *b, const struct gh_settings *s, const struct key_parts *key, uint64_t group,
	    uint64_t replace_id)
{
	cleanup_buf struct buf modulus = {0};
	struct json_out o;
	char xml[512];

	if (modulus_text(&modulus, key) < 0 ||
	    str_fmt(xml, sizeof xml,
		    "<RSAKeyValue><Modulus>%s</Modulus><Exponent>AQAB</Exponent></RSAKeyValue>",
		    buf_str(&modulus)) < 0)
		return -1;
	jo_begin(&o, b, false);
	jo_open(&o, NULL, '{');
	jo_str(&o, "url", s->scope.url);
	jo_u64(&o, "group_id", group);
	jo_str(&o, "name", s->name);
	jo_str(&o, "version", s->agent_version);
	jo_bool(&o, "updates_disabled", s->disable_update);
	jo_bool(&o, "ephemeral", s->ephemeral);
	jo_open(&o, "labels", '[');
	each_label(&o, s, label_object);
	jo_close(&o, ']');
	jo_str(&o, "public_key", xml);
	if (replace_id != 0) {
		jo_u64(&o, "runner_id", replace_id);
		jo_bool(&o, "replace", true);
	}
	jo_close(&o, '}');
	return jo_end(&o);
}

/* cloudbase/garm, util/github/client.go: no label is implied, so the default ones are sent too. */
int body_jit(struct buf *b, const struct gh_settings *s, uint64_t group)
{
	struct json_out o;

	jo_begin(&o, b, false);
	jo_open(&o, NULL, '{');
	jo_str(&o, "name", s->name);
	jo_u64(&o, "runner_group_id", group);
	jo_open(&o, "labels", '[');
	each_label(&o, s, label_string);
	jo_close(&o, ']');
	jo_str(&o, "work_folder", s->work);
	jo_close(&o, '}');
	return jo_end(&o);
}
