#include "net/answer.h"

#include "base/str.h"
#include "net/httpparse.h"

#include <string.h>
#include <strings.h>
#include <time.h>

int net_header_get(const struct net_response *r, const char *name, char *dst, size_t size)
{
	size_t n = 0;
	const unsigned char *v = http_header_find(r->head.data, r->head.len, name, &n);

	if (v == NULL || n >= size)
		return -1;
	str_show(dst, size, v, n);
	return 0;
}

void net_response_free(struct net_response *r)
{
	buf_free(&r->head);
	buf_free(&r->body);
}

/* Seconds or a date; -1 when neither. */
static int64_t retry_after(const char *value, int64_t server_now_ms)
{
	uint64_t s;
	int64_t at;

	if (str_u64(value, 0, 30ull * 86400, &s) == 0)
		return (int64_t)s * 1000;
	if (http_date_parse(value, &at) < 0)
		return -1;
	return at > server_now_ms ? at - server_now_ms : 0;
}

static void read_limits(struct net_response *r)
{
	char v[64];
	uint64_t at;
	/* the server's clock, where it told it, is the one that its dates are meant in */
	int64_t now = r->date_ms >= 0 ? r->date_ms : clock_real_ms();

	r->retry_after_ms = -1;
	r->rate_limited = net_header_get(r, "x-ratelimit-remaining", v, sizeof v) == 0 &&
			  strcmp(v, "0") == 0 && (r->status == 403 || r->status == 429);
	if (net_header_get(r, "retry-after", v, sizeof v) == 0)
		r->retry_after_ms = retry_after(v, now);
	if (r->retry_after_ms >= 0 || !r->rate_limited)
		return;
	if (net_header_get(r, "x-ratelimit-reset", v, sizeof v) == 0 &&
	    str_u64(v, 0, INT64_MAX / 1000, &at) == 0)
		r->retry_after_ms = (int64_t)at * 1000 > now ? (int64_t)at * 1000 - now : 0;
}

void answer_read_headers(struct net_response *r, bool verified)
{
	static const char *const ids[] = {"x-github-request-id", "x-vss-e2eid", "activityid"};
	char v[64];
	int64_t ms;

	r->date_ms = -1;
	if (verified && net_header_get(r, "date", v, sizeof v) == 0 && http_date_parse(v, &ms) == 0)
		r->date_ms = ms;
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
		if (net_header_get(r, ids[i], r->request_id, sizeof r->request_id) == 0)
			break;
	if (net_header_get(r, "content-type", r->content_type, sizeof r->content_type) < 0)
		r->content_type[0] = 0;
	read_limits(r);
}

bool net_is_html(const struct net_response *r)
{
	const char *p = buf_str(&r->body);

	if (strncasecmp(r->content_type, "text/html", 9) == 0 ||
	    strncasecmp(r->content_type, "application/xhtml", 17) == 0)
		return true;
	p += strspn(p, " \t\r\n");
	return strncasecmp(p, "<!doctype html", 14) == 0 || strncasecmp(p, "<html", 5) == 0;
}

void net_describe(const struct net_response *r, char *dst, size_t size)
{
	const char *body = buf_str(&r->body), *open = strcasestr(body, "<title>"), *end;
	char title[120] = "", server[64] = "", via[64] = "";

	if (open != NULL && (end = strcasestr(open, "</title>")) != NULL)
		str_show(title, sizeof title, open + 7, (size_t)(end - open - 7));
	(void)net_header_get(r, "server", server, sizeof server);
	(void)net_header_get(r, "via", via, sizeof via);
	if (str_fmt(dst, size, "%s%s%s%s%s%s%s%s", net_is_html(r) ? "a web page" : "an answer",
		    title[0] != 0 ? " titled \"" : "", title, title[0] != 0 ? "\"" : "",
		    server[0] != 0 ? ", server " : "", server, via[0] != 0 ? ", via " : "",
		    via) < 0)
		(void)str_copy(dst, size, "an answer");
}

int answer_redirect(const struct net_response *r, const struct url *base, struct url *out)
{
	char to[URL_TEXT_MAX];

	if (r->status < 300 || r->status > 399 || r->status == 304 ||
	    net_header_get(r, "location", to, sizeof to) < 0)
		return -1;
	if (to[0] == '/' && to[1] != '/') {
		struct url root = *base;
		(void)str_copy(root.path, sizeof root.path, "/");
		return url_join(&root, to, out);
	}
	return url_parse(to, out, NULL);
}

int answer_check_origin(const struct net_response *r, const struct net_request *q, const char *via,
			const struct net_op *op)
{
	char coding[64], page[320], from[URL_HOST_MAX + 32], to[URL_TEXT_MAX] = "";
	const char *through = via[0] != 0 ? " through the proxy " : "";
	struct url target;

	if (url_origin(q->url, from, sizeof from) < 0)
		from[0] = 0;
	if (r->status >= 300 && r->status < 400 && r->status != 304 &&
	    net_header_get(r, "location", to, sizeof to) == 0 &&
	    (answer_redirect(r, q->url, &target) < 0 || !url_same_origin(q->url, &target)))
		return err_set(
			op->e, XC_PROTOCOL, 0,
			"%s%s%s redirects (%d) to %s: a captive portal, a proxy's sign-in or a "
			"moved host; credentials are not sent there",
			from, through, via, r->status, to);
	if (r->status < 300 && r->body.len > 0 && net_is_html(r)) {
		net_describe(r, page, sizeof page);
		return err_set(op->e, XC_PROTOCOL, 0,
			       "%s%s%s answered with %s (%d): a captive portal, a proxy or a load "
			       "balancer "
			       "rather than the service",
			       from, through, via, page, r->status);
	}
	if (r->body.len > 0 && net_header_get(r, "content-encoding", coding, sizeof coding) == 0 &&
	    !str_eq_nocase(coding, "identity"))
		return err_set(op->e, XC_PROTOCOL, 0,
			       "%s%s%s answered in the coding %s, which was not asked for", from,
			       through, via, coding);
	return 0;
}

int answer_check_clock(const struct net_response *r, const char *peer, const struct net_op *op)
{
	int64_t now = clock_real_ms(), off = now - r->date_ms;
	time_t here = (time_t)(now / 1000), there = (time_t)(r->date_ms / 1000);
	char a[32] = "", b[32] = "";
	struct tm tm;

	if (r->date_ms < 0 || (off <= CLOCK_SLACK_MS && off >= -CLOCK_SLACK_MS))
		return 0;
	if (gmtime_r(&here, &tm) != NULL)
		(void)strftime(a, sizeof a, "%Y-%m-%d %H:%M:%SZ", &tm);
	if (gmtime_r(&there, &tm) != NULL)
		(void)strftime(b, sizeof b, "%Y-%m-%d %H:%M:%SZ", &tm);
	return err_set(op->e, XC_CLOCK, 0,
		       "the clock here is %lld s %s: here it is %s, %s says %s; set one of the two",
		       (long long)((off < 0 ? -off : off) / 1000), off < 0 ? "behind" : "ahead", a,
		       peer, b);
}
