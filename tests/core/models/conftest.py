"""Fixtures for the raw server."""

import pytest

import raw_server


@pytest.fixture
def serving():
    return raw_server.serving


@pytest.fixture
def say():
    return raw_server.Say
