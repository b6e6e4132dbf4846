"""The promise, with a real runtime: stopped at any moment with the default grace, a container leaves no runner behind and is never killed."""
import random
import time

import pytest
from boxes import runner_env

STOPS = 50
SEED = 20261201


@pytest.mark.parametrize("n", range(STOPS))
def test_a_stop_at_a_random_moment_leaves_nothing_and_kills_nobody(final_image, container, make_world, n):
    moments = random.Random(SEED + n)
    world = make_world(flow=moments.choice(["v1", "v2"]))
    world.chaos(seed=n, latency=[0.4, 0.4], rate=0.0)  # each request is answered after 400 ms
    if moments.random() < 0.5:
        world.job(name="job-%d" % n, seconds=moments.uniform(0.5, 3.0))
    c = container(final_image, world=world, env=runner_env(world))
    time.sleep(moments.uniform(0.0, 6.0))  # the random moment itself
    c.stop(10)
    code = c.wait()
    assert world.runners() == [], c.logs
    assert not c.killed and code == 0, (code, c.logs)
