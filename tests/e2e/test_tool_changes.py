"""Tool changes do not change the prompt: messages describe them, and the cache is read.

Real MCP servers, the official SDK over HTTP, the simulator's cache. The scenario is the
benchmark's, so that the test checks the same promise.
"""

import importlib.util
import sys
from pathlib import Path

import pytest

from lazy import needs

needs("anthropic", "mcp")

pytestmark = pytest.mark.slow

WHERE = Path(__file__).parents[2] / "benchmarks" / "tool_changes.py"


@pytest.fixture(scope="module")
def changes():
    """Load the benchmark as a module."""
    spec = importlib.util.spec_from_file_location("tool_changes", WHERE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["deferred", "fixed"])
async def test_a_search_a_server_or_a_file_moves_no_byte_of_the_prompt(changes, tmp_path, kind):
    found = await changes.changed(changes.MODELS[kind], tmp_path)
    assert found.answers == ["It is 3."] * 3
    assert found.frames == 1
    assert min(found.read_share.values()) >= 0.99, found.read_share
    assert set(found.read_share) == {"search", "instructions", "join", "search_joined", "go"}
