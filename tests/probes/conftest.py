import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import node as nodes  # noqa: E402


@pytest.fixture
def node(tmp_path):
    """A healthy node with one H200."""
    return nodes.Node(tmp_path)


@pytest.fixture
def pair(tmp_path):
    """A healthy node with two."""
    return nodes.Node(tmp_path, cards=2)
