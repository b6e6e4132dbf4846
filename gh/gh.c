#include "gh/gh.h"

#include "base/str.h"
#include "build/version.h"
#include "gh/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* GitHub acts upon the User-Agent: one that it does not know gets another tenant, an old version a
 * 404 (actions/runner, src/Runner.Common/HostContext.cs builds it; ChristopherHX/github-act-runner,
 * issue 219). So: the real product and the real version of the installed runner, nothing else. */
static int user_agent(struct gh *g, struct err *e)
{
	const char *v = g->s->agent_version;

	if (v[0] == 0 || v[strspn(v, "0123456789.")] != 0)
		return err_set(e, XC_BUG, 0, "\"%s\" is no runner version", v);
	if (str_fmt(g->user_agent, sizeof g->user_agent, "GitHubActionsRunner-%s/%s", body_package,
		    v) < 0)
		return err_set(e, XC_BUG, 0, "the runner's version is too long");
	return 0;
}

struct gh *gh_open(const struct gh_settings *s, int cancel_fd, struct err *e)
{
	struct gh *g = calloc(1, sizeof *g);
	struct net_config c = {0};

	if (g == NULL) {
		err_set(e, XC_SYSTEM, errno, "GitHub client");
		return NULL;
	}
	g->s = s;
	g->cancel_fd = cancel_fd;
	if (user_agent(g, e) < 0) {
		free(g);
		return NULL;
	}
	c.https_proxy = s->https_proxy;
	c.http_proxy = s->http_proxy;
	c.no_proxy = s->no_proxy;
	c.ca_file = s->ca_file;
	c.ca_dir = s->ca_dir;
	c.user_agent = g->user_agent;
	c.exchange_ms = s->http_ms;
	c.build_epoch = INIT_BUILD_EPOCH;
	c.cancel_fd = cancel_fd;
	g->net = net_open(&c, e);
	if (g->net == NULL) {
		free(g);
		return NULL;
	}
	return g;
}

void gh_close(struct gh *g)
{
	if (g == NULL)
		return;
	net_close(g->net);
	explicit_bzero(g, sizeof *g);
	free(g);
}

void gh_set_cancel(struct gh *g, int cancel_fd)
{
	g->cancel_fd = cancel_fd;
	net_set_cancel(g->net, cancel_fd);
}
