/*
 * Repetition: the one layer that tries again, as a table of what happened × what may be repeated.
 *
 * Base 1 s, factor 2, at most 15 s, each pause shortened by up to half at random so that a fleet
 * which starts together does not come back together. A pause that the server asked for is kept in
 * full and lengthened by up to a tenth.
 */
#include "net/client.h"

#include "base/str.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#define BASE_MS	 1000
#define CAP_MS	 15000
#define LEAST_MS 200 /* an attempt with less time than this is not worth its pause */

enum outcome {
	O_DONE,	   /* an answer for the caller */
	O_LIMITED, /* 429, or 403 that says so: not processed */
	O_BUSY,	   /* 503: not processed */
	O_SERVER,  /* other 5xx, 408: who knows */
	O_DENIED,  /* 401, 403: a token that was minted a moment ago may not be known everywhere */
	O_UNSENT,  /* look-up, connect, handshake, proxy */
	O_NO_NAME, /* DNS says no such host: at boot, perhaps not yet */
	O_LOST,	   /* sent, and no whole answer */
	O_FOREIGN, /* answered by something that is not the service */
	O_CLOCK,   /* perhaps set in a moment */
	O_FINAL,   /* told to finish, or it cannot help */
	O__MAX
};

#define ALWAYS INT32_MAX

static const struct {
	const char *name;
	int32_t max[NET_RETRY__MAX]; /* repetitions: once, idempotent, unsent */
} table[O__MAX] = {
	[O_DONE] = {"answered", {0, 0, 0}},
	[O_LIMITED] = {"rate limited", {0, ALWAYS, ALWAYS}},
	[O_BUSY] = {"service unavailable", {0, ALWAYS, ALWAYS}},
	[O_SERVER] = {"server error", {0, ALWAYS, 0}},
	[O_DENIED] = {"denied", {0, 2, 0}},
	[O_UNSENT] = {"not reached", {0, ALWAYS, ALWAYS}},
	[O_NO_NAME] = {"no such host", {0, 4, 4}},
	[O_LOST] = {"no answer", {0, ALWAYS, 0}},
	[O_FOREIGN] = {"foreign answer", {0, 3, 0}},
	[O_CLOCK] = {"wrong clock", {0, 3, 3}},
	[O_FINAL] = {"failed", {0, 0, 0}},
};

static enum outcome of_status(const struct net_response *r)
{
	if (r->status == 429 || (r->status == 403 && (r->rate_limited || r->retry_after_ms >= 0)))
		return O_LIMITED;
	if (r->status == 503)
		return O_BUSY;
	if (r->status == 408 || (r->status >= 500 && r->status != 501 && r->status != 505))
		return O_SERVER;
	return r->status == 401 || r->status == 403 ? O_DENIED : O_DONE;
}

static enum outcome of_failure(const struct net_failure *f, const struct err *e)
{
	if (f->cancelled || f->permanent)
		return O_FINAL;
	if (e->code == XC_CLOCK)
		return f->sent ? O_FINAL : O_CLOCK;
	if (e->code == XC_PROTOCOL)
		return O_FOREIGN;
	if (e->code != XC_UNAVAILABLE)
		return O_FINAL;
	if (f->no_name)
		return O_NO_NAME;
	return f->sent ? O_LOST : O_UNSENT;
}

static int64_t pause_of(int attempt, const struct net_response *r)
{
	int64_t ms = BASE_MS;

	if (r != NULL && r->retry_after_ms >= 0) {
		ms = r->retry_after_ms > BASE_MS ? r->retry_after_ms : BASE_MS;
		return ms +
		       (int64_t)(io_random() % ((uint32_t)(ms / 10 < 5000 ? ms / 10 : 5000) + 1));
	}
	for (int i = 1; i < attempt && ms < CAP_MS; i++)
		ms *= 2;
	if (ms > CAP_MS)
		ms = CAP_MS;
	return ms - (int64_t)(io_random() % (uint32_t)(ms / 2));
}

static void describe(enum outcome o, const struct net_response *r, const struct err *e, char *dst,
		     size_t size)
{
	int n;

	if (r == NULL)
		n = str_copy(dst, size, e->text);
	else
		n = str_fmt(dst, size, "status %d (%s)%s%s%s", r->status, table[o].name,
			    r->request_id[0] != 0 ? ", request " : "", r->request_id,
			    r->via_proxy ? ", through the proxy" : "");
	if (n < 0)
		(void)str_copy(dst, size, table[o].name);
}

/* The server asked for a longer pause than there is time left: said at once, with when it would
 * work. */
static int too_long(const char *what, int64_t wait_ms, int64_t left_ms, struct err *e)
{
	time_t at = (time_t)((clock_real_ms() + wait_ms) / 1000);
	char when[32] = "";
	struct tm tm;

	if (gmtime_r(&at, &tm) != NULL)
		(void)strftime(when, sizeof when, "%Y-%m-%d %H:%M:%SZ", &tm);
	return err_set(e, XC_UNAVAILABLE, 0,
		       "%s: it would work at %s, in %lld s, and only %lld s are left", what, when,
		       (long long)(wait_ms / 1000), (long long)(left_ms / 1000));
}

/* 0 after the pause, -1 when told to finish. */
static int pause_for(const struct net *n, int64_t ms, struct net_failure *f, struct err *e)
{
	struct net_op op = {.cancel_fd = n->c.cancel_fd, .d = deadline_in(ms), .f = f, .e = e};

	if (op_wait(&op, NULL, 0, DEADLINE_NEVER) != OP_CANCELLED)
		return 0;
	memset(f, 0, sizeof *f);
	return op_cancelled(&op);
}

int net_call(struct net *n, const struct net_request *q, enum net_retry policy, struct deadline d,
	     net_retry_note *note, void *arg, struct net_response *r, struct net_failure *f,
	     struct err *e)
{
	struct net_failure here;
	struct err why;
	char what[ERR_TEXT_MAX];
	int32_t repeated[O__MAX] = {0};

	if (f == NULL)
		f = &here;
	for (int attempt = 1;; attempt++) {
		enum outcome o;
		int64_t wait, left;
		int got;
		why = (struct err)ERR_INIT;
		got = net_exchange(n, q, d, r, f, &why);
		o = got == 0 ? of_status(r) : of_failure(f, &why);
		wait = pause_of(attempt, got == 0 ? r : NULL);
		left = deadline_left_ms(d);
		describe(o, got == 0 ? r : NULL, &why, what, sizeof what);
		if (repeated[o]++ >= table[o].max[policy] || wait > left - LEAST_MS) {
			bool asked = got == 0 && r->retry_after_ms > left && o != O_DONE &&
				     table[o].max[policy] > 0;
			if (asked) {
				net_response_free(r);
				memset(f, 0, sizeof *f);
				return too_long(what, wait, left, e);
			}
			if (got < 0 && e != NULL)
				*e = why;
			return got;
		}
		if (note != NULL)
			note(arg, what, attempt, wait);
		if (got == 0)
			net_response_free(r);
		if (pause_for(n, wait, f, e) < 0)
			return -1;
	}
}
