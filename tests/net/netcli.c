/*
 * Test binary: one or more exchanges of net/, told as JSON lines on stdout. Never shipped.
 *
 *	netcli [OPTION]... METHOD URL [METHOD URL]...
 *
 * -H 'Name: value'  -d BODY  -t DEADLINE_MS  -x EXCHANGE_MS  -f (follow)  -r once|idempotent|unsent
 * -R RESOLV_CONF  -T HOSTS  -b BUILD_EPOCH  -c CANCEL_FD  -k (any clock)  -w MS (pause between)
 * -B (print bodies whole as hex)  -n K (a new client after every K exchanges)
 * Proxies and CA from the environment, as init reads them.
 */
#include "base/str.h"
#include "net/net.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADERS_MAX 8

/* Of tests/net/netfail.c, where that is linked in. */
void netfail_begin(void) __attribute__((weak));

struct options {
	struct net_header headers[HEADERS_MAX];
	size_t n_headers;
	const char *body;
	int64_t deadline_ms, pause_ms, per_client;
	bool follow, any_clock, hex, retry;
	enum net_retry policy;
};

static void put_string(const char *key, const char *s, size_t n)
{
	printf(", \"%s\": \"", key);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			printf("\\u%04x", (unsigned)c);
		else
			putchar(c);
	}
	putchar('"');
}

static const char *env(const char *lower, const char *upper)
{
	const char *v = getenv(lower);

	return v != NULL ? v : getenv(upper);
}

static void note(void *arg, const char *what, int attempt, int64_t wait_ms)
{
	(void)arg;
	fprintf(stderr, "retry %d in %lld ms: %s\n", attempt, (long long)wait_ms, what);
}

static void tell_answer(const struct net_response *r, bool hex)
{
	char server[128], page[512];

	printf("\"ok\": true, \"status\": %d, \"ms\": %lld, \"body_len\": %zu, \"via_proxy\": %s, "
	       "\"retry_after_ms\": %lld, \"rate_limited\": %s, \"date_ms\": %lld, \"html\": %s",
	       r->status, (long long)r->ms, r->body.len, r->via_proxy ? "true" : "false",
	       (long long)r->retry_after_ms, r->rate_limited ? "true" : "false",
	       (long long)r->date_ms, net_is_html(r) ? "true" : "false");
	put_string("request_id", r->request_id, strlen(r->request_id));
	put_string("content_type", r->content_type, strlen(r->content_type));
	if (net_header_get(r, "server", server, sizeof server) == 0)
		put_string("server", server, strlen(server));
	net_describe(r, page, sizeof page);
	put_string("page", page, strlen(page));
	if (!hex) {
		put_string("body", buf_str(&r->body), r->body.len < 2000 ? r->body.len : 2000);
		return;
	}
	printf(", \"hex\": \"");
	for (size_t i = 0; i < r->body.len; i++)
		printf("%02x", r->body.data[i]);
	printf("\"");
}

static void tell_failure(const struct net_failure *f, const struct err *e)
{
	static const char *const stages[NET_STAGE__MAX] = {"resolve",	"connect", "proxy",
							   "handshake", "send",	   "receive"};

	printf("\"ok\": false, \"code\": %d, \"stage\": \"%s\", \"sent\": %s, \"cancelled\": %s, "
	       "\"timeout\": %s, \"permanent\": %s, \"no_name\": %s",
	       e->code, stages[f->stage], f->sent ? "true" : "false",
	       f->cancelled ? "true" : "false", f->timeout ? "true" : "false",
	       f->permanent ? "true" : "false", f->no_name ? "true" : "false");
	put_string("text", e->text, strlen(e->text));
}

static int one(struct net *n, const struct options *o, const char *method, const char *text)
{
	struct net_response r;
	struct net_failure f = {.stage = NET_RESOLVE};
	struct err e = ERR_INIT;
	struct url u;
	struct net_request q = {.method = method,
				.url = &u,
				.headers = o->headers,
				.n_headers = o->n_headers,
				.body = o->body,
				.body_len = o->body != NULL ? strlen(o->body) : 0,
				.follow = o->follow,
				.any_clock = o->any_clock};
	struct deadline d = deadline_in(o->deadline_ms);
	int64_t began = clock_mono_ms();
	int got;

	if (url_parse(text, &u, &e) < 0)
		got = -1;
	else if (o->retry)
		got = net_call(n, &q, o->policy, d, note, NULL, &r, &f, &e);
	else
		got = net_exchange(n, &q, d, &r, &f, &e);
	printf("{\"took_ms\": %lld, ", (long long)(clock_mono_ms() - began));
	if (got == 0) {
		tell_answer(&r, o->hex);
		net_response_free(&r);
	} else {
		tell_failure(&f, &e);
	}
	printf("}\n");
	fflush(stdout);
	return got;
}

static void add_header(struct options *o, char *line)
{
	char *colon = strchr(line, ':');

	if (colon == NULL || o->n_headers == HEADERS_MAX)
		exit(64);
	*colon++ = 0;
	while (*colon == ' ')
		colon++;
	o->headers[o->n_headers++] = (struct net_header){line, colon};
}

static int64_t number(const char *s)
{
	int64_t v;

	if (str_i64(s, INT64_MIN + 1, INT64_MAX, &v) < 0)
		exit(64);
	return v;
}

static void read_option(int c, char *arg, struct options *o, struct net_config *nc)
{
	switch (c) {
	case 'H':
		add_header(o, arg);
		break;
	case 'd':
		o->body = arg;
		break;
	case 't':
		o->deadline_ms = number(arg);
		break;
	case 'x':
		nc->exchange_ms = number(arg);
		break;
	case 'w':
		o->pause_ms = number(arg);
		break;
	case 'n':
		o->per_client = number(arg);
		break;
	case 'R':
		nc->resolv_conf = arg;
		break;
	case 'T':
		nc->hosts = arg;
		break;
	case 'b':
		nc->build_epoch = number(arg);
		break;
	case 'c':
		nc->cancel_fd = (int)number(arg);
		break;
	case 'r':
		o->retry = true;
		o->policy = strcmp(arg, "once") == 0	 ? NET_ONCE
			    : strcmp(arg, "unsent") == 0 ? NET_UNSENT
							 : NET_IDEMPOTENT;
		break;
	default:
		o->follow = o->follow || c == 'f';
		o->any_clock = o->any_clock || c == 'k';
		o->hex = o->hex || c == 'B';
		if (c == '?')
			exit(64);
	}
}

int main(int argc, char **argv)
{
	struct options o = {.deadline_ms = 20000};
	struct net_config nc = {.https_proxy = env("https_proxy", "HTTPS_PROXY"),
				.http_proxy = env("http_proxy", "HTTP_PROXY"),
				.no_proxy = env("no_proxy", "NO_PROXY"),
				.ca_file = getenv("SSL_CERT_FILE"),
				.ca_dir = getenv("SSL_CERT_DIR"),
				.user_agent = "netcli/1",
				.exchange_ms = 15000,
				.cancel_fd = -1};
	struct err e = ERR_INIT;
	struct net_failure none = {.stage = NET_RESOLVE};
	struct net *n = NULL;
	int c, bad = 0;

	while ((c = getopt(argc, argv, "H:d:t:x:w:R:T:b:c:r:n:fkB")) != -1)
		read_option(c, optarg, &o, &nc);
	for (int i = optind; i + 1 < argc; i += 2) {
		int64_t k = (i - optind) / 2;
		if (n == NULL || (o.per_client > 0 && k % o.per_client == 0)) {
			net_close(n);
			if (netfail_begin != NULL)
				netfail_begin();
			n = net_open(&nc, &e);
		}
		if (i > optind && o.pause_ms > 0)
			(void)poll(NULL, 0, (int)o.pause_ms);
		if (n == NULL) {
			printf("{\"took_ms\": 0, ");
			tell_failure(&none, &e);
			printf("}\n");
			bad++;
		} else {
			bad += one(n, &o, argv[i], argv[i + 1]) < 0 ? 1 : 0;
		}
	}
	net_close(n);
	return bad > 0 ? 1 : 0;
}
