"""What tests of the life cycle say again and again."""
import harness

REPO_URL = "https://github.com/acme/widget"
ORG_URL = "https://github.com/acme"

URLS = [
    # id, input URL, entity, what `.runner` must say as gitHubUrl
    ("org", "https://github.com/acme", "orgs/acme"),
    ("repo", "https://github.com/acme/widget", "repos/acme/widget"),
    ("enterprise", "https://github.com/enterprises/big", "enterprises/big"),
    ("enterprise-case", "https://github.com/Enterprises/big", "enterprises/big"),
    ("host-case", "https://GitHub.com/Acme/Widget", "repos/acme/widget"),
    ("www", "https://www.github.com/acme/widget", "repos/acme/widget"),
    ("slash", "https://github.com/acme/widget/", "repos/acme/widget"),
    ("slashes", "https://github.com//acme//widget//", "repos/acme/widget"),
    ("git", "https://github.com/acme/widget.git", "repos/acme/widget"),
    ("residency", "https://octo.ghe.com/acme/widget", "repos/acme/widget"),
    ("ghes", "https://ghes.corp.test/acme", "orgs/acme"),
    ("ghes-port", "https://ghes.corp.test:8443/acme/widget", "repos/acme/widget"),
]


def start(run, world, url=REPO_URL, scenario=None, entity=None, token=None, **env):
    """A life under way. Keywords in lower case go to ``run_init``, in upper case into the environment."""
    options = {k: env.pop(k) for k in list(env) if k.islower()}
    return run(env=harness.life_env(world, url, entity=entity, token=token, **env), world=world, scenario=scenario, **options)


def listening(run, world, url=REPO_URL, **kwargs):
    pod = start(run, world, url, **kwargs)
    if not world.wait_for("online"):
        raise harness.Late("the agent did not come online\n%s\n%s" % (pod.text, world.steps()))
    pod.wait_text("Listening for Jobs")
    return pod


def ended(pod, world, code, timeout=harness.LIMIT):
    """The pod ended with ``code`` and the service knows no runner any more."""
    got = pod.wait(timeout)
    assert got == code, "exit %s instead of %s\n%s\n%s" % (got, code, pod.text, world.steps())
    left = world.runners()
    assert left == [], "ghosts: %s\n%s" % (left, pod.text)


def receipt(pod):
    """The last line of init's log."""
    assert pod.log, pod.text
    return pod.log[-1]


def deregistered(pod, name="r1"):
    line = receipt(pod)
    assert 'runner "%s" (id ' % name in line and "deregistered: 20" in line, pod.text


def removed_by_service(pod, name="r1"):
    line = receipt(pod)
    assert 'runner "%s" (id ' % name in line and "removed by the service after its job" in line, pod.text


def refused(pod, world, code, *words, adds=0):
    """The pod ended with ``code``; some line of its log holds every one of ``words``; nothing was added."""
    got = pod.wait()
    assert got == code, "exit %s instead of %s\n%s\n%s" % (got, code, pod.text, world.steps())
    log = "\n".join(pod.log)
    for word in words:
        assert word in log, "%r is not in the log\n%s" % (word, pod.text)
    assert sum(1 for s in world.steps() if s in ("v1.add", "v2.add", "v1.replace", "v2.replace")) == adds, world.steps()
    assert world.runners() == [], world.runners()


def agent(pod, n=-1):
    """What the stand-in reported of its n-th start."""
    seen = pod.agents()
    assert seen, "the agent never started\n" + pod.text
    return seen[n]


def names_the_ghost(pod, ghost, url=REPO_URL):
    """The last line has the id and an address at which the runner can be removed by hand."""
    line = receipt(pod)
    host, _, path = url.split("://")[1].partition("/")
    assert "id %d" % ghost["id"] in line and "https://" + host in line, pod.text
    assert all(piece in line.lower() for piece in path.lower().split("/")), pod.text
