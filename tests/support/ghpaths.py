"""Every credential × every kind of scope and host: what each needs, and what must come of it."""
import credentials

SCOPES = {
    "org": ("https://github.com/acme", "orgs/acme", "github.com"),
    "repo": ("https://github.com/acme/widget", "repos/acme/widget", "github.com"),
    "enterprise": ("https://github.com/enterprises/big", "enterprises/big", "github.com"),
    "ghes-org": ("https://ghes.corp.test/acme", "orgs/acme", "ghes.corp.test"),
    "ghes-port": ("https://ghes.corp.test:8443/acme/widget", "repos/acme/widget", "ghes.corp.test:8443"),
    "ghes-enterprise": ("https://ghes.corp.test/enterprises/big", "enterprises/big", "ghes.corp.test"),
    "ghe.com-org": ("https://octo.ghe.com/acme", "orgs/acme", "octo.ghe.com"),
    "ghe.com-repo": ("https://octo.ghe.com/acme/widget", "repos/acme/widget", "octo.ghe.com"),
}
NO_APP = ("enterprise", "ghes-enterprise")  # an App cannot manage an enterprise's runners
CREDENTIALS = ("token", "pat", "app", "jit", "jit_generated")
COMBINATIONS = [(c, s) for c in CREDENTIALS for s in SCOPES if not (c == "app" and s in NO_APP)]
# every credential, every scope and every host once or more; the other combinations are in tests/long
SHORT = [("token", s) for s in ("org", "repo", "enterprise", "ghes-port", "ghe.com-org")] + \
    [("pat", "ghes-enterprise"), ("app", "ghe.com-repo"), ("jit", "ghes-port"), ("jit_generated", "repo")]


def given(credential, world, scope):
    url, entity, web = SCOPES[scope]
    if credential != "jit":
        return getattr(credentials, credential)(world, entity)
    env = credentials.jit(world, entity, web)
    del env["RUNNER_URL"]  # known here, so that the PAT can delete it by id
    return dict(credentials.pat(world, entity), **env)


def registers_and_is_removed(world, ask, credential, scope):
    url, entity, web = SCOPES[scope]
    made, gone = ask(world, url, "register", "remove", **given(credential, world, scope))
    assert made["ok"], made
    runner = made["runner"]
    assert runner["flow"] == ("jit" if credential.startswith("jit") else world.call_flow)
    assert not made["unsettled"] and runner["id"] != 0
    assert runner["page"].startswith("https://" + web + "/") and runner["page"].endswith("/settings/actions/runners/%d" % runner["id"])
    assert list(runner["files"]) == [".credentials_rsaparams", ".credentials", ".runner"] or credential.startswith("jit")
    assert gone["ok"] and gone["what"] == "removed" and gone["verified"], gone
    assert world.runners() == []


def is_removed_after_every_token_expired(world, drive, credential, scope):
    d = drive(world, SCOPES[scope][0], "register", "wait", "remove", **given(credential, world, scope))
    assert d.next()["ok"]
    world.advance(seconds=7200)
    d.go()
    gone = d.next()
    assert gone["ok"] and gone["what"] == "removed", d.pod.text
    assert world.runners() == []
