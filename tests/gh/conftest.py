"""Fixtures: see support/ghdriver.py."""
from ghdriver import ask, drive, each_world as world, ghcli  # noqa: F401
