"""The promise, with a real runtime: stopped at any moment with the default grace, a container leaves no runner behind and is never killed."""
import random
import time

from boxes import runner_env

STOPS = 50
SEED = 20261201


def test_fifty_stops_at_random_moments_leave_nothing_and_kill_nobody(final_image, container, make_world):
    moments = random.Random(SEED)
    ghosts, killed, wrong = [], [], []
    for n in range(STOPS):
        world = make_world(flow=moments.choice(["v1", "v2"]))
        world.chaos(seed=n, latency=[0.4, 0.4], rate=0.0)  # each request is answered after 400 ms
        if moments.random() < 0.5:
            world.job(name="job-%d" % n, seconds=moments.uniform(0.5, 3.0))
        c = container(final_image, world=world, env=runner_env(world))
        time.sleep(moments.uniform(0.0, 6.0))
        c.stop(10)
        code = c.wait()
        said = "life %d, exit %d\n%s" % (n, code, c.logs)
        if world.runners():
            ghosts.append(said)
        if c.killed or code == 137:
            killed.append(said)
        if code != 0:
            wrong.append(said)
    assert not ghosts and not killed and not wrong, "%d ghosts, %d killed, %d wrong statuses\n%s" % (
        len(ghosts), len(killed), len(wrong), "\n".join(ghosts + killed + wrong)[:6000])
