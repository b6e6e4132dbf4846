"""Every credential × every kind of scope and host × both flows registers, and leaves no runner behind, after every token expired too."""
import pytest

import ghpaths


@pytest.mark.parametrize("credential,scope", ghpaths.COMBINATIONS)
def test_it_registers_and_is_removed(each_world, ask, credential, scope):
    ghpaths.registers_and_is_removed(each_world, ask, credential, scope)


@pytest.mark.parametrize("credential,scope", [c for c in ghpaths.COMBINATIONS if c[0] != "token"])
def test_a_stop_after_every_token_expired_still_removes_it(each_world, drive, credential, scope):
    ghpaths.is_removed_after_every_token_expired(each_world, drive, credential, scope)
