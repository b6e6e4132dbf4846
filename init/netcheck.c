#include "init/netcheck.h"

#include "base/str.h"
#include "net/net.h"

#include <string.h>

static void tell(struct probe_net *out, const struct err *e)
{
	str_show(out->detail, sizeof out->detail, e->text, strlen(e->text));
}

static void told(struct probe_net *out, const struct net_response *r, const char *host)
{
	out->ok = true;
	out->have_skew = r->date_ms >= 0;
	out->skew_s = out->have_skew ? (clock_real_ms() - r->date_ms) / 1000 : 0;
	if (str_fmt(out->detail, sizeof out->detail, "%s answered %d in %lld ms%s", host, r->status,
		    (long long)r->ms, r->via_proxy ? " through the proxy" : "") < 0)
		out->detail[0] = 0;
}

void netcheck_run(const struct probe_settings *s, struct deadline d, struct probe_net *out)
{
	const struct net_config nc = {.https_proxy = s->https_proxy,
				      .http_proxy = s->http_proxy,
				      .no_proxy = s->no_proxy,
				      .ca_file = s->ca_file,
				      .ca_dir = s->ca_dir,
				      .user_agent = "init-selftest",
				      .exchange_ms = s->http_ms > 0 ? s->http_ms : 15000,
				      .build_epoch = s->build_epoch,
				      .cancel_fd = -1};
	struct url url;
	struct net_request q = {.method = "GET", .url = &url, .any_clock = true};
	struct net_response r;
	struct err e = ERR_INIT;
	struct net *n;

	memset(out, 0, sizeof *out);
	if (url_parse(s->api_url, &url, &e) < 0) {
		tell(out, &e);
		return;
	}
	n = net_open(&nc, &e);
	if (n == NULL) {
		tell(out, &e);
		return;
	}
	if (net_exchange(n, &q, d, &r, NULL, &e) < 0) {
		tell(out, &e);
	} else {
		told(out, &r, url.host);
		net_response_free(&r);
	}
	net_close(n);
}
