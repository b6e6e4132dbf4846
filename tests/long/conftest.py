"""Fixtures of the protocol's driver: see support/ghdriver.py."""
from ghdriver import ask, drive, each_world, ghcli  # noqa: F401
