"""Fixtures for tests of running agents."""

import subprocess
from contextlib import asynccontextmanager

import pytest

from casting import Cast
from longhold.agent.build import build_agent


@pytest.fixture
def project(tmp_path):
    """A small repository."""
    place = tmp_path / "project"
    place.mkdir()
    (place / "add.py").write_text("def add(a, b):\n    return a - b\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=place, check=True)
    return place


@pytest.fixture
def opened(project):
    """Opens agents over a cast, and closes them."""

    @asynccontextmanager
    async def open(scripts, **options):
        model = scripts if isinstance(scripts, Cast) else Cast(scripts)
        agent = await build_agent(model, directory=project, **options)
        try:
            yield agent
        finally:
            await agent.close()

    return open
