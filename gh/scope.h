/*
 * RUNNER_URL: repository, organisation or enterprise; hosted or GHES. Pure.
 * Forms and API bases: actions/runner, src/Runner.Sdk/Util/UrlUtil.cs and
 * src/Runner.Common/RunnerDotcomServer.cs; www.github.com as actions/scaleset maps it.
 */
#ifndef GH_SCOPE_H
#define GH_SCOPE_H

#include "base/err.h"
#include "gh/runner.h"

/* Accepts a trailing or doubled slash, a trailing `.git`, a query or fragment (dropped). Refuses
 * http, a path of 0 or 3 and more parts. `force_ghes`: GITHUB_ACTIONS_RUNNER_FORCE_GHES. 0, or -1
 * with XC_CONFIG. */
int gh_scope_parse(const char *text, bool force_ghes, struct gh_scope *out, struct err *e);

/* The tenant URL that registration answered: https, and for GHES on the host of `scope` or below it
 * (ports compared by value, a default port equals none). 0, or -1 with XC_PROTOCOL. */
int gh_scope_check_tenant(const struct gh_scope *scope, const char *tenant, struct err *e);

#endif
