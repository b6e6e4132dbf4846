#include "net/client.h"

#include "base/str.h"
#include "net/answer.h"
#include "net/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REDIRECTS_MAX	 3
/* Longest idle time of a connection that is used again. For a request that may be sent but once a
 * shorter one: a server's keep-alive can end at any moment, and then nobody knows what it saw. */
#define IDLE_MAX_MS	 15000
#define IDLE_MAX_ONCE_MS 2000

static const char default_agent[] = "init";

struct net *net_open(const struct net_config *c, struct err *e)
{
	struct net *n = calloc(1, sizeof *n);

	if (n == NULL) {
		(void)err_set(e, XC_SYSTEM, ENOMEM, "cannot set up the network client");
		return NULL;
	}
	n->c = *c;
	if (n->c.user_agent == NULL || n->c.user_agent[0] == 0)
		n->c.user_agent = default_agent;
	if (n->c.resolv_conf == NULL)
		n->c.resolv_conf = "/etc/resolv.conf";
	if (n->c.hosts == NULL)
		n->c.hosts = "/etc/hosts";
	if (proxy_parse(c->https_proxy, "https_proxy", &n->https_proxy, e) < 0 ||
	    proxy_parse(c->http_proxy, "http_proxy", &n->http_proxy, e) < 0 ||
	    (n->trust = tls_trust_open(c->ca_file, c->ca_dir, e)) == NULL) {
		net_close(n);
		return NULL;
	}
	return n;
}

void net_close(struct net *n)
{
	if (n == NULL)
		return;
	pool_close(n);
	tls_trust_free(n->trust);
	proxy_wipe(&n->https_proxy);
	proxy_wipe(&n->http_proxy);
	free(n);
}

void net_set_cancel(struct net *n, int cancel_fd)
{
	n->c.cancel_fd = cancel_fd;
}

unsigned net_ca_count(const struct net *n)
{
	return tls_trust_count(n->trust);
}

const char *net_ca_source(const struct net *n)
{
	return tls_trust_source(n->trust);
}

static int check_build_date(const struct net *n, const struct net_request *q, struct err *e)
{
	int64_t now = clock_real_ms() / 1000;
	time_t t = (time_t)now;
	char when[32] = "";
	struct tm tm;

	if (q->any_clock || now >= n->c.build_epoch)
		return 0;
	if (gmtime_r(&t, &tm) != NULL)
		(void)strftime(when, sizeof when, "%Y-%m-%d %H:%M:%SZ", &tm);
	return err_set(
		e, XC_CLOCK, 0,
		"the clock is wrong: it says %s, %lld s before this program was built; set it",
		when, (long long)(n->c.build_epoch - now));
}

static bool repeatable(const char *method)
{
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ||
	       strcmp(method, "DELETE") == 0;
}

static void empty_response(struct net_response *r)
{
	memset(r, 0, sizeof *r);
	buf_init(&r->head, NET_HEADERS_MAX);
	buf_init(&r->body, NET_BODY_MAX);
	r->retry_after_ms = -1;
	r->date_ms = -1;
}

/* What the answer says about the way it took, before anybody believes its content. */
static int check(struct net *n, const struct net_op *op, const struct net_request *q,
		 const struct proxy *p, const char *peer, struct net_response *r)
{
	char via[URL_HOST_MAX + 16] = "", wants[128] = "";

	answer_read_headers(r, q->url->tls);
	r->via_proxy = p != NULL;
	if (p != NULL)
		proxy_name(p, via, sizeof via);
	if (p != NULL && !q->url->tls && r->status == 407) {
		op->f->stage = NET_PROXY;
		(void)net_header_get(r, "proxy-authenticate", wants, sizeof wants);
		return proxy_denied(p, wants, op);
	}
	if (answer_check_origin(r, q, via, op) < 0)
		return -1;
	if (q->any_clock || n->clock_checked || r->date_ms < 0)
		return 0;
	if (answer_check_clock(r, peer, op) < 0)
		return -1;
	n->clock_checked = true;
	return 0;
}

/* One request, one answer. */
static int once(struct net *n, const struct net_op *op, const struct net_request *q,
		struct net_response *r)
{
	const struct proxy *p = pool_proxy(n, q->url);
	bool again = repeatable(q->method), reused = false, persists = false, silent = false;
	struct http_request h = {.q = q, .user_agent = n->c.user_agent};
	char peer[URL_HOST_MAX + 32];
	struct pool_conn *c;
	int got;

	if (url_authority(q->url, peer, sizeof peer) < 0)
		return err_set(op->e, XC_BUG, 0, "a URL that cannot be written");
	h.peer = peer;
	h.absolute = p != NULL && !q->url->tls;
	h.proxy_auth = h.absolute ? p->auth : "";
	c = pool_get(n, op, q->url, again ? IDLE_MAX_MS : IDLE_MAX_ONCE_MS, &reused);
	if (c == NULL)
		return -1;
	empty_response(r);
	got = http_exchange(&c->s, op, &h, r, &persists, &silent);
	if (got < 0 && silent && reused && again) {
		pool_put(n, c, false);
		c = pool_get(n, op, q->url, -1, &reused);
		if (c == NULL)
			return -1;
		empty_response(r);
		got = http_exchange(&c->s, op, &h, r, &persists, &silent);
	}
	pool_put(n, c, got == 0 && persists);
	if (got == 0 && check(n, op, q, p, peer, r) < 0) {
		net_response_free(r);
		return -1;
	}
	return got;
}

int net_exchange(struct net *n, const struct net_request *q, struct deadline d,
		 struct net_response *r, struct net_failure *f, struct err *e)
{
	struct net_failure unused = {0};
	struct net_op op = {.cancel_fd = n->c.cancel_fd,
			    .d = deadline_min(d, deadline_in(n->c.exchange_ms)),
			    .began_ms = clock_mono_ms(),
			    .f = f != NULL ? f : &unused,
			    .e = e};
	struct net_request hop = *q;
	struct url at = *q->url, to;
	bool follow =
		q->follow && (strcmp(q->method, "GET") == 0 || strcmp(q->method, "HEAD") == 0);

	for (int hops = 0;; hops++) {
		memset(op.f, 0, sizeof *op.f);
		if (check_build_date(n, q, e) < 0)
			return -1;
		hop.url = &at;
		if (once(n, &op, &hop, r) < 0)
			return -1;
		r->ms = clock_mono_ms() - op.began_ms;
		if (!follow || hops == REDIRECTS_MAX || answer_redirect(r, &at, &to) < 0)
			return 0;
		net_response_free(r);
		at = to;
	}
}
