"""Directories that jobs write to: made and proved as the job's user, before anything is registered; links that others planted lead nowhere."""
import os
import stat

import pytest

import harness
import lives

OTHER = 4242


@pytest.fixture
def volume(tmp_path):
    """A directory outside that is mounted at /ci-cache: ``volume(mode, uid, gid)``."""
    os.chmod(str(tmp_path), 0o755)
    os.chmod(str(tmp_path.parent), 0o755)

    def make(mode, uid, gid=None, name="volume"):
        path = str(tmp_path / name)
        os.mkdir(path)
        os.chown(path, uid, uid if gid is None else gid)
        os.chmod(path, mode)
        return path
    return make


def refused(run, make_world, *words, **options):
    world = make_world()
    pod = lives.start(run, world, **options)
    lives.refused(pod, world, 73, *words)
    assert world.log() == []
    return pod


def works(run, make_world, **options):
    world = make_world()
    pod = lives.listening(run, world, **options)
    pod.signal("TERM")
    lives.ended(pod, world, 0)


def facts(path):
    st = os.lstat(path)
    return st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)


def test_new_directories_are_group_writable_and_inherit_the_setgid_group(run, make_world, volume):
    cache = volume(0o2775, OTHER, 1000)
    works(run, make_world, binds={"/ci-cache": cache})
    assert facts(cache) == (OTHER, 1000, 0o2775)
    for name in ("tilelang", "tilelang/tmp", "triton", "pip"):
        assert facts(os.path.join(cache, name)) == (1000, 1000, 0o2775)
        assert not [n for n in os.listdir(os.path.join(cache, name)) if n.startswith(".init")]


def test_an_existing_directory_keeps_its_mode(run, make_world, volume):
    cache = volume(0o755, 1000)
    os.mkdir(os.path.join(cache, "triton"))
    os.chown(os.path.join(cache, "triton"), 1000, 1000)
    os.chmod(os.path.join(cache, "triton"), 0o700)
    works(run, make_world, binds={"/ci-cache": cache})
    assert facts(os.path.join(cache, "triton")) == (1000, 1000, 0o700)
    assert facts(cache) == (1000, 1000, 0o755)


def test_a_foreign_owner_is_named_with_mode_user_and_remedy(run, make_world, volume):
    cache = volume(0o755, OTHER)
    refused(run, make_world, "TILELANG_CACHE_DIR", "/ci-cache/tilelang", "owner 4242:4242, mode 0755", "uid 1000, gid 1000",
            "chown", "set TILELANG_CACHE_DIR to another place", binds={"/ci-cache": cache})
    assert os.listdir(cache) == []


def test_a_foreign_subdirectory_is_named(run, make_world, volume):
    cache = volume(0o777, 1000)
    os.mkdir(os.path.join(cache, "triton"), 0o750)
    os.chown(os.path.join(cache, "triton"), OTHER, OTHER)
    refused(run, make_world, "TRITON_CACHE_DIR", "/ci-cache/triton", "owner 4242:4242, mode 0750", binds={"/ci-cache": cache})


def test_a_supplementary_group_opens_a_foreign_directory(run, make_world, volume):
    works(run, make_world, binds={"/ci-cache": volume(0o2770, OTHER, 5000)}, groups=[5000])


def test_a_link_that_another_user_planted_is_not_followed(run, make_world, volume):
    cache = volume(0o1777, 0)
    target = volume(0o777, 1000, name="elsewhere")
    os.symlink("/elsewhere", os.path.join(cache, "triton"))
    os.lchown(os.path.join(cache, "triton"), OTHER, OTHER)
    refused(run, make_world, "TRITON_CACHE_DIR", "/ci-cache/triton", "uid 4242", "link", binds={"/ci-cache": cache, "/elsewhere": target})
    assert os.listdir(target) == []


def test_a_planted_link_on_the_way_is_not_followed_either(run, make_world, volume):
    cache = volume(0o1777, 0)
    target = volume(0o777, 1000, name="elsewhere")
    os.symlink("/elsewhere", os.path.join(cache, "tilelang"))
    os.lchown(os.path.join(cache, "tilelang"), OTHER, OTHER)
    refused(run, make_world, "uid 4242", binds={"/ci-cache": cache, "/elsewhere": target}, TILELANG_CACHE_DIR="/ci-cache/tilelang/deep/er",
            TRITON_CACHE_DIR="/tmp/t", PIP_CACHE_DIR="/tmp/p")
    assert os.listdir(target) == []


@pytest.mark.parametrize("owner", [0, 1000])
def test_a_link_of_root_or_of_the_jobs_user_is_followed(run, make_world, volume, owner):
    cache = volume(0o777, 0)
    target = volume(0o777, 1000, name="elsewhere")
    os.symlink("../elsewhere", os.path.join(cache, "triton"))
    os.lchown(os.path.join(cache, "triton"), owner, owner)
    works(run, make_world, binds={"/ci-cache": cache, "/elsewhere": target}, TRITON_CACHE_DIR="/ci-cache/triton/kernels")
    assert os.listdir(target) == ["kernels"]


def test_a_read_only_mount_is_called_so(run, make_world, volume):
    refused(run, make_world, "/ci-cache/tilelang", "read-only", "mount a writable volume", binds={"/ci-cache": (volume(0o777, 1000), True)})


def test_root_makes_directories_as_the_jobs_user(run, make_world, volume):
    cache = volume(0o777, 0)
    works(run, make_world, user=0, RUNNER_USER="ci-runner", binds={"/ci-cache": cache})
    assert facts(os.path.join(cache, "tilelang", "tmp")) == (1000, 1000, 0o775)


def test_root_does_not_lend_its_rights_to_the_jobs_directories(run, make_world, volume):
    refused(run, make_world, "uid 1000, gid 1000", "/ci-cache/tilelang", user=0, RUNNER_USER="ci-runner",
            binds={"/ci-cache": volume(0o755, 0)})


def test_a_file_in_the_way_is_named(run, make_world, volume):
    cache = volume(0o777, 1000)
    open(os.path.join(cache, "pip"), "w").close()
    refused(run, make_world, "PIP_CACHE_DIR", "/ci-cache/pip", "a file is in the way", binds={"/ci-cache": cache})


def test_a_directory_above_the_root_that_cannot_be_listed_is_named(run, make_world):
    refused(run, make_world, "RUNNER_ROOT", "/home/ci-runner", "list", folders={"/home/ci-runner": (0o711, 0)})


def test_a_foreign_work_folder_is_named(run, make_world):
    refused(run, make_world, "RUNNER_WORKDIR", "/data/w", "owner 0:0", RUNNER_WORKDIR="/data/w", folders={"/data/w": (0o755, 0)})


def test_a_foreign_log_folder_of_the_agent_is_named(run, make_world, volume):
    refused(run, make_world, "_diag", "owner 0:0", binds={harness.ROOT + "/_diag": volume(0o755, 0)})


def test_a_list_of_cache_variables_replaces_the_usual_ones(run, make_world, volume):
    cache = volume(0o755, OTHER)  # not writable, and not asked for
    works(run, make_world, binds={"/ci-cache": cache}, INIT_CACHE_DIRS="CCACHE_DIR", CCACHE_DIR="/tmp/cc/ache")
