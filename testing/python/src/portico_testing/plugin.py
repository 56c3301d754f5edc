"""Pytest fixtures."""

import pytest

from .faults import Faults
from .server import Server


@pytest.fixture(scope="session")
def portico():
    """One server for all tests of the session."""
    with Server() as server:
        yield server


@pytest.fixture
def portico_faults(portico):
    """Sets faults, and removes them after the test."""
    faults = Faults(portico)
    yield faults
    faults.clear()
