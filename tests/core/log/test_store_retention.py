"""The retention benchmark's row for a model: its own summaries, or digests where it failed."""

import importlib.util
import sys
from pathlib import Path

from longhold.core.log.entries import Ran, Replied, Said, add_measure
from longhold.core.messages import Text, ToolUse
from longhold.core.models.scripted import ScriptedModel
from longhold.core.view import fold

WHERE = Path(__file__).parents[3] / "benchmarks" / "retention.py"
SUMMARY = "\n ".join(
    f"## {n}. {name}\n The importer is to be fixed."
    for n, name in (
        *((1, "Request and intent"), (2, "Technical concepts"), (4, "Errors and fixes")),
        *((5, "Problem solving"), (7, "Pending tasks"), (8, "Current work"), (9, "Next step")),
    )
)


def benchmark():
    """Load the benchmark as a module."""
    spec = importlib.util.spec_from_file_location("retention", WHERE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def segment(retention):
    """Give a short recorded segment."""
    use = ToolUse(id="t", name="Read", input={"file_path": "/p/importer.py"})
    entries = [
        add_measure(Said(n=1, content=(Text(text="Fix the importer"),))),
        add_measure(Replied(n=2, response_id="a", model="claude-opus-4-6", content=(use,))),
        add_measure(Ran(n=3, tool_use_id="t", content="rows = read()\n" * 400)),
        add_measure(Replied(n=4, response_id="b", content=(Text(text="It reads twice."),))),
    ]
    items = list(fold(entries).items)
    return retention.Segment("x", entries, items, "what was recorded", 2_000)


async def test_a_models_summary_is_measured_with_what_the_log_adds():
    retention = benchmark()
    model = ScriptedModel(f"text: <summary>{SUMMARY}</summary>", name="claude-opus-4-6")
    found, is_written = await retention.by_model(segment(retention), "claude-opus-4-6", model)
    assert is_written
    assert "The importer is to be fixed." in found
    scores = retention.measure(found, segment(retention), len, is_ours=True)
    assert (scores["user_messages"], scores["read_files"]) == (1.0, 1.0)


async def test_a_model_that_writes_no_summary_is_not_credited_with_one():
    retention = benchmark()
    model = ScriptedModel("text: no", name="claude-opus-4-6")
    found, is_written = await retention.by_model(segment(retention), "claude-opus-4-6", model)
    assert not is_written
    assert "without a model" in found


async def test_without_a_model_there_is_no_row_for_one():
    rows = await benchmark().run([], len, quiet=True)
    assert sorted(rows) == [
        *("digest", "digest_at_recorded_size", "recorded"),
        *("sessions", "skipped", "tokenizer"),
    ]
