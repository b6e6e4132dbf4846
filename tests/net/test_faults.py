"""Every fault gets its message and its exit code, within its deadline, and tells no secret."""
import pytest

import faults


@pytest.fixture
def bench(tmp_path):
    b = faults.Bench(str(tmp_path))
    yield b
    b.close()


@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda f: "%s: %s" % (f.group, f.name))
def test_a_fault_is_named_and_has_its_exit_code(bench, fault):
    r = fault.run(bench)
    assert r.last["ok"] is False, r
    assert r.last["code"] == fault.code, r
    for words in fault.says:
        assert words in r.last["text"], r
    with open(faults.DOCUMENT, encoding="utf-8") as f:
        assert faults.row(fault, r.last) in f.read(), "docs/faults.md is out of date: tests/net/faults.py --write"
    assert "secret" not in r.last["text"] and "secret" not in r.log
