#!/usr/bin/python3
"""Every refusal of GitHub with the verdict, the remedy and the exit code that it gets. As a module: the cases that test_refusals.py runs. As
a program: prints the table for docs/faults.md, from the binary's own texts and the evidence of these cases."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
PROGRAM = os.path.join(REPO, "build", "ghcli")

ORG, GHES = "https://github.com/acme", "https://ghes.corp.test/acme"
NOT_FOUND = {"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"}
PAGE = "<!DOCTYPE html><html><body>Log in to the guest network</body></html>"


class Case:
    """``evidence`` for people; ``rule``: what the test GitHub answers instead; ``credential`` by name of support/credentials.py."""

    def __init__(self, fault, evidence, rule=None, credential="token", url=ORG, flow="v1", says=(), commands=("register",), prepare=None,
                 code=None, **env):
        self.fault, self.evidence, self.rule, self.credential = fault, evidence, rule, credential
        self.url, self.flow, self.says, self.commands, self.prepare, self.env = url, flow, says, commands, prepare, env
        self.code = code

    @property
    def name(self):
        return "%s: %s" % (self.fault, self.evidence)


def answer(step, status, message=None, body=None, **more):
    return dict(step=step, status=status, times=-1, body=body if body is not None else {"message": message}, **more)


def key(exception):
    return {"message": "refused", "typeKey": exception, "errorCode": 0}


OLD = "Runner version v2.310.0 is deprecated and cannot register. Minimum required version is v2.329.0."

CASES = [
    Case("token_expired", "404 at runner-registration, the token known for more than an hour", answer("registration", 404, body=NOT_FOUND),
         GHCLI_TOKEN_AGE_MS="3665000", says=("known for 61 min",)),
    Case("token_expired", "401 at runner-registration, the token known for more than an hour", answer("registration", 401, "Bad credentials"),
         GHCLI_TOKEN_AGE_MS="3665000"),
    Case("token_refused", "404 at runner-registration with a fresh RUNNER_TOKEN", answer("registration", 404, body=NOT_FOUND),
         says=("answer: Not Found",)),
    Case("token_refused", "404 at runner-registration: the token is of another repository", url="https://github.com/acme/widget"),
    Case("token_refused", "403 at runner-registration with RUNNER_TOKEN", answer("registration", 403, "Forbidden")),
    Case("token_refused", "404 in the middle of the runner-admin flow", answer("v2.groups", 404, body=NOT_FOUND), flow="v2"),
    Case("version_too_old", "the answer says that the runner's version is too old", answer("registration", 404, OLD),
         says=("rebuild the image", "RUNNER_VERSION")),
    Case("version_too_old", "403 with that text when the agent is added",
         answer("v1.add", 403, body=dict(key("AccessDeniedException"), message=OLD))),
    Case("version_likely", "bare 404 at runner-registration, the runner below 2.329.0", answer("registration", 404, body=NOT_FOUND),
         GHCLI_VERSION="2.310.0", says=("runner 2.310.0",)),
    Case("minted_refused", "404 at runner-registration with a token that a PAT minted just now", answer("registration", 404, body=NOT_FOUND),
         credential="pat"),
    Case("pat_invalid", "401 on a REST call with ACCESS_TOKEN", answer("rest.registration_token", 401, "Bad credentials"), credential="pat"),
    Case("pat_right", "403 when the PAT mints a token", answer("rest.registration_token", 403, "Resource not accessible by personal access token"),
         credential="pat"),
    Case("pat_right", "404 when the PAT mints a token", answer("rest.registration_token", 404, body=NOT_FOUND), credential="pat"),
    Case("sso", "403 that speaks of SAML", answer("rest.registration_token", 403, "Resource protected by organization SAML enforcement."),
         credential="pat"),
    Case("ip_allow_list", "403 that speaks of an IP allow list",
         answer("rest.registration_token", 403, "Although you appear to have the correct authorization credentials, the `acme` organization has an "
                "IP allow list enabled"), credential="pat"),
    Case("app_key", "401 on a call signed by the App", answer("app.installation", 401, "A JSON web token could not be decoded"), credential="app"),
    Case("app_suspended", "the App's call is answered \"suspended\"", answer("app.token", 403, "This installation has been suspended"),
         credential="app"),
    Case("app_installation", "404 when the installation's token is asked for", credential="app", APP_INSTALLATION_ID="999"),
    Case("app_right", "403 when the App mints a token", answer("rest.registration_token", 403, "Resource not accessible by integration"),
         credential="app"),
    Case("rate_limit", "429 with Retry-After beyond the budget", answer("registration", 429, "slow down", headers={"Retry-After": "3600"}),
         says=("429",), code=69),
    Case("rate_limit", "429 without Retry-After until the budget is over", answer("registration", 429, "slow down"), GHCLI_BUDGET_MS="5000"),
    Case("server", "5xx until the budget is over", answer("registration", 500, "oops"), GHCLI_BUDGET_MS="5000"),
    Case("moved", "301 on a REST call", answer("rest.registration_token", 301, "Moved Permanently",
                                               headers={"Location": "https://api.github.com/organizations/7/actions/runners/registration-token"}),
         credential="pat", code=(76, 78)),
    Case("proxy_page", "a web page instead of JSON", answer("registration", 403, body=PAGE, headers={"Content-Type": "text/html"}),
         code=76, says=("page",)),
    Case("wrong_host", "404 that is not JSON from a host that is not github.com", answer("registration", 404, body="404 page not found\n",
                                                                                         headers={"Content-Type": "text/plain"}), url=GHES),
    Case("tenant_denied", "401 from the Actions service", answer("v1.pools", 401, body="")),
    Case("group", "the pool is not found when the agent is added", answer("v1.add", 404, body=key("TaskAgentPoolNotFoundException"))),
    Case("group", "404 from generate-jitconfig", answer("rest.jit", 404, body=NOT_FOUND), credential="jit_generated"),
    Case("labels", "422 that speaks of labels", answer("v2.add", 422, "Invalid label: too long"), flow="v2"),
    Case("invalid", "422 when the agent is added", answer("v2.add", 422, "Validation failed"), flow="v2"),
    Case("runner_limit", "the owner has too many runners", answer("v2.add", 422, "The maximum number of runners (10000) was reached: runner limit"),
         flow="v2"),
    Case("busy", "422 when the runner is deleted", answer(r"rest\.delete|v2\.delete", 422, "Bad request - Runner \"r1\" is still running a job"),
         credential="pat", flow="v2", commands=("register", "remove"), GHCLI_REMOVE_MS="2500"),
    Case("unexpected", "an answer that the protocol does not have", answer("registration", 418, "I'm a teapot")),
    Case("not_found", "404 from the Actions service", answer("v1.lookup", 404, body=key("VssResourceNotFoundException"))),
]


def texts():
    done = subprocess.run([PROGRAM, "faults"], stdout=subprocess.PIPE, check=True)
    return {f["id"]: f for f in json.loads(done.stdout)["faults"]}


# Faults that no single answer shows: where they are tested instead.
ELSEWHERE = {
    "clock": "400 or 401 that names the server's time, or the clock more than 5 minutes off the answer's Date",
    "name_taken": "409 when the agent is added, and the look-up shows the name (RUNNER_REPLACE=no)",
    "app_not_installed": "404 for the scope's installation, and none of the owner among the App's installations",
    "app_enterprise": "an App with an enterprise's URL",
    "registration_gone": "400 invalid_client for the agent's own key",
}


def table():
    rows = ["| Evidence | Verdict | What to do | Exit |", "| --- | --- | --- | --- |"]
    for ident, t in texts().items():
        evidence = [c.evidence for c in CASES if c.fault == ident] or [ELSEWHERE[ident]]
        rows.append("| %s | %s | %s | %d |" % ("; ".join(evidence), t["verdict"], t["remedy"], t["code"]))
    return "\n".join(rows).replace("\\", "")


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
