"""What takes minutes: an agent that never gets up."""
import lives


def test_exit_2_for_ever_ends_in_75_after_growing_pauses(run, make_world):
    world = make_world(flow="v2")
    pod = lives.start(run, world, scenario={"exit": 2, "at": "start"})
    assert pod.wait(600) == 75, pod.text
    assert world.runners() == []
    assert 2 < len(pod.agents()) <= 20
