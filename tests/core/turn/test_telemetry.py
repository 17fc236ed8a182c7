"""Telemetry, as OpenTelemetry's own collectors receive it."""

import json
import random
import subprocess
import sys
from dataclasses import replace
from string import ascii_letters, digits

import pytest

from longhold.agent.build import build_agent
from longhold.core.log.entries import (
    Asked,
    CacheBroke,
    Cleared,
    Compacted,
    Dreamt,
    Failed,
    Remembered,
    Replied,
    Said,
    Switched,
    Withheld,
)
from longhold.core.messages import Text
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import Settings, load_settings
from longhold.core.turn.telemetry import (
    COUNTERS,
    HISTOGRAMS,
    CallSpan,
    Count,
    Event,
    Signals,
    Telemetry,
)
from longhold.errors import ConfigError
from longhold.session.session import Session

MODEL = "claude-sonnet-4-6"
COUNTED = "claude-opus-4-6"
"""Used by one test only: metrics add up over all of them."""
SECRET = "ghp_" + "".join(random.Random(3).choices(ascii_letters + digits, k=36))
ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": MODEL,
    "content": [{"type": "text", "text": "It is mended."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 10,
        "output_tokens": 7,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 40,
    },
}


def settings(**telemetry):
    given = Settings()
    return replace(given, telemetry=replace(given.telemetry, **telemetry))


def taken(entries, **options):
    """The signals of some entries."""
    signals = Signals(session="s", **options)
    found = [signal for entry in entries for signal in signals.take(entry)]
    return [*found, *signals.finish()]


def events(entries):
    return {one.name: one.attributes for one in taken(entries) if isinstance(one, Event)}


@pytest.mark.parametrize(
    ("entry", "name", "attributes"),
    [
        (
            Compacted(
                n=2,
                at=5.0,
                first=1,
                last=1,
                summary=(),
                before_tokens=900,
                after_tokens=90,
                by="notes",
            ),
            "longhold.compaction",
            {"longhold.before_tokens": 900, "longhold.after_tokens": 90, "longhold.by": "notes"},
        ),
        (
            Cleared(n=2, ids=("t",), texts=("gone",), saved_tokens=500),
            "longhold.clear",
            {"longhold.results": 1, "longhold.saved_tokens": 500},
        ),
        (
            CacheBroke(n=2, cause="tool", lost_tokens=1_000, usd=0.25),
            "longhold.cache_break",
            {"longhold.by": "tool", "longhold.lost_tokens": 1_000, "longhold.usd": 0.25},
        ),
        (
            Remembered(n=2, cursor=1, names=("private.md",), commit="7"),
            "longhold.memory",
            {"longhold.memories": 1, "longhold.commit": "7"},
        ),
        (
            Dreamt(n=2, commit="8", merged=2, removed=1),
            "longhold.dream",
            {"longhold.merged": 2, "longhold.removed": 1},
        ),
        (
            Failed(n=2, what="compact: fork", error="in /home/me/secret"),
            "longhold.failure",
            {"longhold.what": "compact: fork"},
        ),
        (
            Withheld(n=2, what="notes", why="in /home/me/secret"),
            "longhold.refusal",
            {"longhold.what": "notes"},
        ),
        (
            Switched(n=2, model="claude-opus-4-6"),
            "longhold.switch",
            {"longhold.after": "claude-opus-4-6"},
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str | dict) else "",
)
def test_what_changed_or_failed_is_an_event_with_before_and_after(entry, name, attributes):
    found = events([Said(n=1, content=(Text(text="hello"),)), entry])
    assert attributes.items() <= found[name].items()
    assert "private" not in str(found) and "/home" not in str(found)
    counts = {one.name for one in taken([entry]) if isinstance(one, Count)}
    assert counts and counts <= {*HISTOGRAMS, *COUNTERS}


def test_a_compaction_names_the_one_before_it():
    said = [Said(n=n, content=(Text(text="hello"),)) for n in (1, 4)]
    first = Compacted(n=3, first=1, last=1, summary=())
    second = Compacted(n=7, first=3, last=4, summary=())
    calls = [Asked(n=n, at=float(n)) for n in (2, 5, 6)]
    entries = [said[0], calls[0], first, said[1], *calls[1:], second]
    chain = [
        (one.attributes["longhold.previous"], one.attributes["longhold.calls_since"])
        for one in taken(entries)
        if isinstance(one, Event) and one.name == "longhold.compaction"
    ]
    assert chain == [(0, 1), (3, 2)]


def test_a_call_without_an_answer_is_an_error():
    first, second = (
        one
        for one in taken([Asked(n=1, at=1.0), Asked(n=2, at=3.0)], model=MODEL)
        if isinstance(one, CallSpan)
    )
    assert (first.start, first.end, first.error) == (1.0, 1.0, "no answer")
    assert second.start == 3.0


def test_calls_after_a_compaction_say_so_and_those_before_do_not():
    said = Said(n=1, content=(Text(text="hello"),))
    compacted = Compacted(n=3, first=1, last=1, summary=())
    entries = [said, Asked(n=2, at=1.0), compacted, Asked(n=4, at=2.0)]
    signals = Signals(session="s")
    found = [
        one.attributes.get("gen_ai.conversation.compacted")
        for entry in entries
        for one in (*signals.take(entry), *signals.finish())
        if isinstance(one, CallSpan)
    ]
    assert found == [None, True]


def test_a_clock_that_was_set_back_makes_no_negative_time():
    made = taken([Asked(n=1, at=100.0), Replied(n=2, at=5.0, response_id="r", content=())])
    (span,) = [one for one in made if isinstance(one, CallSpan)]
    assert (span.start, span.end) == (100.0, 100.0)
    assert min(one.value for one in made if isinstance(one, Count)) >= 0


def test_nothing_is_imported_or_reported_unless_it_is_switched_on(tmp_path):
    code = (
        "import sys; from longhold.session.session import Session\n"
        f"s = Session.open(model={MODEL!r}, system='', tools=[]); s.user('hi'); s.close()\n"
        "print(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "False"


def test_a_project_cannot_switch_it_on(tmp_path):
    (tmp_path / ".longhold").mkdir()
    (tmp_path / ".longhold" / "settings.toml").write_text("[telemetry]\non = true\n")
    (tmp_path / ".git").mkdir()
    with pytest.raises(ConfigError, match=r"telemetry\.on can only be set by the user"):
        load_settings(tmp_path)


@pytest.fixture(scope="module")
def sdk():
    """Providers of this process, which can be set once."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import metrics, trace
    from opentelemetry._logs import set_logger_provider
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import (
        InMemoryLogRecordExporter,
        SimpleLogRecordProcessor,
    )
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, logs, reader = (
        InMemorySpanExporter(),
        InMemoryLogRecordExporter(),
        InMemoryMetricReader(),
    )
    tracing, logging = TracerProvider(), LoggerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    logging.add_log_record_processor(SimpleLogRecordProcessor(logs))
    trace.set_tracer_provider(tracing)
    set_logger_provider(logging)
    metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
    return spans, logs, reader


@pytest.fixture
def collected(sdk):
    """What arrives from here on, and the metrics of all tests."""
    sdk[0].clear()
    sdk[1].clear()
    return sdk


async def test_a_programs_call_is_a_span_with_its_usage(collected, tmp_path):
    session = Session.open(
        model=COUNTED, system="Help.", tools=[], settings=settings(on=True), directory=tmp_path
    )
    session.user("Mend it.")
    await session.prepare()
    await session.record(ANSWER | {"model": COUNTED})
    (span,) = collected[0].get_finished_spans()
    session.close()
    assert span.name == f"chat {COUNTED}" and span.kind.name == "CLIENT"
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": COUNTED,
        "gen_ai.response.id": "msg_1",
        "gen_ai.response.finish_reasons": ("end_turn",),
        "gen_ai.conversation.id": session.id,
        "gen_ai.usage.input_tokens": 150,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 100,
        "gen_ai.usage.cache_write.input_tokens": 40,
    }
    assert expected.items() <= dict(span.attributes).items()
    assert "mended" not in str(span.attributes)
    assert "gen_ai.conversation.compacted" not in span.attributes
    points = {
        metric.name: [one for one in metric.data.data_points if COUNTED in one.attributes.values()]
        for resource in collected[2].get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    kinds = {
        one.attributes["gen_ai.token.type"]: one.sum for one in points["gen_ai.client.token.usage"]
    }
    assert kinds == {"input": 150, "output": 7}
    assert points["longhold.cost"][0].value > 0


async def test_an_agents_tools_are_spans_and_content_is_masked_when_asked_for(collected, tmp_path):
    given = json.dumps({"command": f"echo {SECRET}; exit 3"})
    model = ScriptedModel(f"tool: Bash {given}\n---\ntext: Done.\n", name=MODEL)
    agent = await build_agent(
        model, directory=tmp_path, mode="bypass", settings=settings(on=True, content=True)
    )
    async for _ in agent.run("Run it."):
        pass
    await agent.close()
    spans = {span.name: span for span in collected[0].get_finished_spans()}
    tool = spans["execute_tool Bash"]
    assert tool.attributes["gen_ai.tool.name"] == "Bash"
    assert tool.attributes["error.type"] == "tool_error" and not tool.status.is_ok
    assert "echo" in tool.attributes["gen_ai.tool.call.arguments"]
    (answer,) = json.loads(spans[f"chat {MODEL}"].attributes["gen_ai.output.messages"])
    assert answer["parts"] == [{"type": "text", "content": "Done."}]
    assert (answer["role"], tool.attributes["gen_ai.tool.type"]) == ("assistant", "function")
    assert SECRET not in str([dict(span.attributes) for span in spans.values()])


async def test_a_resumed_session_reports_only_what_is_new(collected, tmp_path):
    given = settings(on=True)
    session = Session.open(model=MODEL, system="", tools=[], settings=given, directory=tmp_path)
    session.user("One.")
    await session.prepare()
    await session.record(ANSWER)
    session.close()
    collected[0].clear()
    again = Session.resume(session.id, settings=given)
    again.close()
    assert not collected[0].get_finished_spans()


def test_an_event_has_its_name_and_time(collected, tmp_path):
    session = Session.open(
        model=MODEL, system="", tools=[], settings=settings(on=True), directory=tmp_path
    )
    failed = session._engine.record(Failed(what="gauge", error="off"))
    session.close()
    records = [each.log_record for each in collected[1].get_finished_logs()]
    (record,) = [each for each in records if each.event_name == "longhold.failure"]
    assert abs(record.timestamp / 1e9 - failed.at) < 0.001
    assert record.attributes["longhold.what"] == "gauge" and "off" not in str(record.attributes)


async def test_without_the_package_the_session_says_so_once_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    session = Session.open(
        model=MODEL, system="", tools=[], settings=settings(on=True), directory=tmp_path
    )
    report = Telemetry(session._engine)
    report(session._engine)
    report(session._engine)
    failed = [each for each in session.view.history if isinstance(each, Failed)]
    session.close()
    assert [each.what for each in failed] == ["telemetry"] and "[telemetry]" in failed[0].error
