"""What the configuration does to a life: environments wiped and handed on, users, names, the log's form."""
import json
import os

import pytest

import harness
import lives

EXEC = """
import ctypes, json
env = json.load(open("/run/env.json"))
array = (ctypes.c_char_p * (len(env) + 1))(*[e.encode() for e in env], None)
ctypes.CDLL(None).execve(b"/opt/init/init", (ctypes.c_char_p * 2)(b"init", None), array)
"""


def test_every_duplicate_of_a_secret_is_wiped_from_proc(run, world):
    env = harness.life_env(world, lives.REPO_URL)
    entries = ["%s=%s" % kv for kv in env.items()] + ["RUNNER_TOKEN=SECONDSECOND", "ACCESS_TOKEN=\r\n", "ACCESS_TOKEN=THIRDTHIRD",
                                                      "actions_runner_input_TOKEN=FOURTHFOURTH", "KEPT=yes"]
    pod = run(["--", "/usr/bin/python3", "-IS", "-c", EXEC], {"PATH": env["PATH"]}, world=world,
              files={"/run/env.json": (json.dumps(entries), 0o444, 0)})
    pod.wait_text("Listening for Jobs")
    seen = 0
    for p in pod.processes().values():
        with open("/proc/%d/environ" % p["host_pid"], "rb") as f:
            text = f.read()
        seen += b"KEPT=yes" in text
        for word in (env["RUNNER_TOKEN"], "SECONDSECOND", "THIRDTHIRD", "FOURTHFOURTH"):
            assert word.encode() not in text, (p, word)
    assert seen >= 3  # init, its registrar, the agent
    agent = lives.agent(pod)["environ"]
    assert agent["KEPT"] == "yes" and not [k for k in agent if "TOKEN" in k.upper()]
    pod.signal("TERM")
    pod.wait()
    assert world.runners() == []


def test_a_full_host_name_of_64_characters_is_a_name(run, world):
    host = "h" * 63 + "x"
    pod = lives.listening(run, world, RUNNER_NAME=None, hostname=host)
    assert world.runners()[0]["name"] == host
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_the_dotenv_of_the_image_is_kept_and_completed(run, world, tmp_path):
    root = str(tmp_path / "runner")
    harness.make_runner_root(root)
    os.chmod(str(tmp_path), 0o755)
    with open(os.path.join(root, ".env"), "w") as f:
        f.write("ImageOS=ubuntu22\nLANG=de_DE.UTF-8")
    os.chown(os.path.join(root, ".env"), 1000, 1000)
    pod = lives.listening(run, world, root=root, JAVA_HOME="/opt/java")
    with open(os.path.join(root, ".env")) as f:
        assert f.read() == "ImageOS=ubuntu22\nLANG=de_DE.UTF-8\nJAVA_HOME=/opt/java\n"
    pod.signal("TERM")
    lives.ended(pod, world, 0)


@pytest.mark.parametrize("folder_mode, mode", [(0o755, 0o400), (0o700, 0o644)], ids=["file", "folder"])
def test_root_does_not_carry_a_file_to_the_job_through_dotenv(run, make_world, tmp_path, folder_mode, mode):
    root = str(tmp_path / "runner")
    harness.make_runner_root(root)
    os.chmod(str(tmp_path), 0o755)
    os.symlink("/vault/other", os.path.join(root, ".env"))  # what a job of an earlier life may have left
    os.lchown(os.path.join(root, ".env"), 1000, 1000)
    world = make_world()
    pod = lives.start(run, world, user=0, RUNNER_USER="ci-runner", root=root, folders={"/vault": (folder_mode, 0)},
                      files={"/vault/other": ("OTHERSECRET\n", mode, 0)})
    lives.refused(pod, world, 78, "RUNNER_ROOT", ".env")
    assert "OTHERSECRET" not in pod.text and os.path.islink(os.path.join(root, ".env"))


def test_the_registrar_of_root_has_no_capability_and_no_way_to_get_one(run, world):
    pod = lives.listening(run, world, user=0, RUNNER_USER="ci-runner")
    ours = [p for p in pod.processes().values() if p["uid"] == 0 and p["status"]["NSpid"].split()[-1] != "1"]
    idle = [p for p in ours if int(p["status"]["CapEff"], 16) == 0]
    assert idle, ours
    for p in idle:
        s = p["status"]
        assert [int(s[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")] == [0] * 5 and s["NoNewPrivs"] == "1"
        assert s["Groups"].split() == []
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def test_in_json_every_line_of_a_life_is_an_object(run, world):
    pod = lives.listening(run, world, INIT_LOG="json", INIT_LOG_LEVEL="debug")
    pod.signal("TERM")
    lives.ended(pod, world, 0)
    lines = [json.loads(line) for line in pod.err.decode().splitlines() if line.startswith("{")]
    assert len(lines) > 5 and not pod.log
    for x in lines:
        assert {"ts", "level", "event", "msg"} <= set(x) and x["level"] in ("error", "warn", "info", "debug"), x
        assert x["event"].replace("_", "").isalnum() and x["event"] == x["event"].lower(), x
