#include "gh/scope.h"

#include "base/str.h"

#include <string.h>

/* Most path parts that mean something; one more is looked for, so that a surplus is seen. */
#define PARTS_MAX 2
#define PART_MAX  256 /* bytes of an owner, repository or enterprise name, with NUL */

static bool ends_nocase(const char *s, const char *tail)
{
	size_t n = strlen(s), t = strlen(tail);

	return n >= t && str_eq_nocase(s + n - t, tail);
}

/* actions/runner, src/Runner.Sdk/Util/UrlUtil.cs: IsHostedServer. */
static bool host_is_hosted(const char *host)
{
	return str_eq_nocase(host, "github.com") || str_eq_nocase(host, "www.github.com") ||
	       str_eq_nocase(host, "github.localhost") ||
	       (ends_nocase(host, ".ghe.com") && host[0] != '.') ||
	       (ends_nocase(host, ".ghe.localhost") && host[0] != '.');
}

/* GitHub's names are letters, digits, '-', '_' and '.'; anything else in the path is a pasted
 * mistake, and an escaped one could smuggle a '/' into the entity path. */
static int check_part(const char *part, struct err *e)
{
	if (strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
		return err_set(e, XC_CONFIG, 0, "the path has a part \"%s\"", part);
	for (const char *p = part; *p != 0; p++) {
		bool ok = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			  (*p >= '0' && *p <= '9') || *p == '-' || *p == '_' || *p == '.' ||
			  *p == '~';
		if (!ok)
			return err_set(e, XC_CONFIG, 0,
				       "the path has a '%c': names on GitHub consist of letters, "
				       "digits, '-', '_' and '.'",
				       *p >= 0x20 && *p < 0x7f ? *p : '?');
	}
	return 0;
}

/* Splits at '/', dropping empty parts, so that trailing and doubled slashes are harmless. Returns
 * how many there are, PARTS_MAX + 1 standing for "too many"; -1 with *e. */
static int split(const char *path, char parts[PARTS_MAX][PART_MAX], struct err *e)
{
	int n = 0;

	while (*path != 0 && *path != '?' && *path != '#') {
		size_t len = strcspn(path, "/?#");
		if (len > 0) {
			if (n == PARTS_MAX)
				return PARTS_MAX + 1;
			if (str_copyn(parts[n], PART_MAX, path, len) < 0)
				return err_set(e, XC_CONFIG, 0, "a part of the path is too long");
			n++;
		}
		path += len;
		if (*path == '/')
			path++;
	}
	return n;
}

/* Sent verbatim, ".git" yields a bare 404 (myoung34/docker-github-actions-runner, issue 377). */
static void drop_git_suffix(char *repo)
{
	for (size_t n = strlen(repo); n > 4 && str_eq_nocase(repo + n - 4, ".git"); n -= 4)
		repo[n - 4] = 0;
}

static int classify(struct gh_scope *s, int n, char parts[PARTS_MAX][PART_MAX], struct err *e)
{
	if (n == 1) {
		s->kind = GH_ORG;
		if (str_eq_nocase(parts[0], "enterprises"))
			return err_set(e, XC_CONFIG, 0,
				       "the enterprise's name is missing after /enterprises");
		return str_fmt(s->entity, sizeof s->entity, "/orgs/%s", parts[0]);
	}
	if (str_eq_nocase(parts[0], "enterprises")) {
		s->kind = GH_ENTERPRISE;
		(void)str_copy(parts[0], PART_MAX, "enterprises");
		return str_fmt(s->entity, sizeof s->entity, "/enterprises/%s", parts[1]);
	}
	s->kind = GH_REPO;
	drop_git_suffix(parts[1]);
	if (check_part(parts[1], e) < 0) /* "...git" is ".." by now */
		return -1;
	return str_fmt(s->entity, sizeof s->entity, "/repos/%s/%s", parts[0], parts[1]);
}

/* API base: actions/runner, src/Runner.Common/RunnerDotcomServer.cs; the port is kept, as
 * actions/scaleset does (config.go), and www.github.com is corrected, as it does too. */
static int api_base(struct gh_scope *s, struct err *e)
{
	s->api = s->web;
	if (!s->hosted)
		return str_copy(s->api.path, sizeof s->api.path, "/api/v3");
	(void)str_copy(s->api.path, sizeof s->api.path, "/");
	if (str_fmt(s->api.host, sizeof s->api.host, "api.%s", s->web.host) < 0)
		return err_set(e, XC_CONFIG, 0, "the host name is too long");
	return 0;
}

static int build(struct gh_scope *s, int n, char parts[PARTS_MAX][PART_MAX], struct err *e)
{
	if (classify(s, n, parts, e) < 0)
		return -1;
	if (str_fmt(s->web.path, sizeof s->web.path, n == 1 ? "/%s" : "/%s/%s", parts[0],
		    parts[1]) < 0 ||
	    url_text(&s->web, s->url, sizeof s->url) < 0)
		return err_set(e, XC_CONFIG, 0, "the URL is too long");
	return api_base(s, e);
}

static int parse(const char *text, bool force_ghes, struct gh_scope *s, struct err *e)
{
	char parts[PARTS_MAX][PART_MAX] = {{0}};
	int n;

	if (url_parse(text, &s->web, e) < 0)
		return -1;
	if (!s->web.tls)
		return err_set(e, XC_CONFIG, 0,
			       "http would send the credential in the clear: use https");
	if (str_eq_nocase(s->web.host, "www.github.com"))
		(void)str_copy(s->web.host, sizeof s->web.host, "github.com");
	if (str_eq_nocase(s->web.host, "api.github.com"))
		return err_set(e, XC_CONFIG, 0,
			       "api.github.com is the API: give the page's URL, as in "
			       "https://github.com/OWNER/REPO");
	s->hosted = !force_ghes && host_is_hosted(s->web.host);
	n = split(s->web.path, parts, e);
	if (n < 0)
		return -1;
	if (n == 0 || n > PARTS_MAX)
		return err_set(e, XC_CONFIG, 0,
			       "the path has %s: accepted are https://HOST/OWNER/REPO, "
			       "https://HOST/ORG and https://HOST/enterprises/NAME",
			       n == 0 ? "no part" : "more than two parts");
	for (int i = 0; i < n; i++)
		if (check_part(parts[i], e) < 0)
			return -1;
	return build(s, n, parts, e);
}

int gh_scope_parse(const char *text, bool force_ghes, struct gh_scope *out, struct err *e)
{
	struct gh_scope s;

	memset(&s, 0, sizeof s);
	if (parse(text, force_ghes, &s, e) < 0)
		return -1;
	*out = s;
	return 0;
}

static bool same_or_below(const char *host, const char *parent)
{
	size_t n = strlen(host), p = strlen(parent);

	if (str_eq_nocase(host, parent))
		return true;
	return n > p && host[n - p - 1] == '.' && str_eq_nocase(host + n - p, parent);
}

/* actions/runner, src/Sdk/Common/Common/Utility/UriUtility.cs compares authorities as text; a port
 * that is the scheme's own then differs from none, which nobody wants. */
int gh_scope_check_tenant(const struct gh_scope *scope, const char *tenant, struct err *e)
{
	struct url t;
	struct err why = ERR_INIT;

	if (url_parse(tenant, &t, &why) < 0)
		return err_set(e, XC_PROTOCOL, 0, "the tenant URL that GitHub answered is none: %s",
			       why.text);
	if (!t.tls)
		return err_set(e, XC_PROTOCOL, 0,
			       "the tenant URL that GitHub answered (host %s) is not https",
			       t.host);
	if (scope->hosted)
		return 0;
	if (!same_or_below(t.host, scope->web.host) || t.port != scope->web.port)
		return err_set(e, XC_PROTOCOL, 0,
			       "GitHub Actions is not set up on this server: RUNNER_URL is on "
			       "%s:%u, the tenant that it names on %s:%u",
			       scope->web.host, (unsigned)scope->web.port, t.host,
			       (unsigned)t.port);
	return 0;
}
