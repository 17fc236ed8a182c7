"""One store with many writers: other gateways, terminals and tenants."""

import signal
import threading
import time

import anthropic
import httpx2
import pytest

from command_line import longhold
from gateway_parts import MODEL, Agent, client_of, gateway_process, gateway_to, marked
from longhold.core.log import Log, load
from longhold.core.log.entries import Asked, Cleared, Pinned, Said, Undone
from longhold.core.messages import Usage
from longhold.core.settings import GatewaySettings, Settings, home
from longhold.gateway.tenants import OverBudget, TenantBudgets


def the_log():
    [log] = home().glob("projects/*/gw-*.jsonl")
    return log


def entries(kind):
    return [entry for entry in load(the_log()).entries if isinstance(entry, kind)]


def worked(gateway, clock):
    """Bring a session to where something was cleared, and go on with it."""
    agent = Agent(gateway().url)
    agent.ask("Read a dozen files.")
    clock.advance(600)
    agent.ask("Again.")
    return agent


def test_processes_pass_a_session_on_between_its_calls(gateway, upstream):
    agent, others = Agent(gateway().url), [gateway().url, gateway().url]
    upstream.simulation.brain.files = 1
    for number in range(4):
        agent.ask(f"Read file {number}.")
        agent.move(others[number % 2])
    assert all("x-longhold-passed" not in headers for headers in agent.headers)
    assert len(entries(Asked)) == len(agent.answers)


def test_a_writer_that_does_not_let_go_costs_the_client_nothing(gateway, upstream):
    quick = Settings(gateway=GatewaySettings(idle_seconds=0.0))
    agent = Agent(gateway(quick).url)
    upstream.simulation.brain.files = 1
    agent.ask("Read a file.")
    with gateway_to(upstream.url, quick) as second:
        while True:
            try:
                log = Log.open(the_log())
            except Exception:  # noqa: BLE001 - until the first gateway finds it idle
                continue
            break
        with log:
            agent.move(second.url)
            agent.ask("Read another.")
    assert agent.answers[-1].content[0].text == "Done after 1."
    assert "LogLocked" in agent.headers[-1]["x-longhold-passed"]


def test_undo_from_another_terminal_shows_at_the_next_call(gateway, upstream, clock):
    agent = worked(gateway, clock)
    session = the_log().stem
    [newest, *_] = reversed(entries(Cleared))
    assert longhold("undo", session, str(newest.n)).returncode == 0
    agent.messages.append({"role": "user", "content": "Go on."})
    agent.call()
    sent = {
        block["tool_use_id"]: block["content"]
        for message in upstream.requests[-1]["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    }
    given = {
        block["tool_use_id"]: block["content"]
        for message in agent.messages
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    }
    assert entries(Undone)
    assert all(sent[id] == given[id] for id in newest.ids)
    assert "x-longhold-passed" not in agent.headers[-1]


def test_compact_and_pin_from_another_terminal_show_at_the_next_call(gateway, upstream, clock):
    agent = worked(gateway, clock)
    session = the_log().stem
    first = next(e.n for e in load(the_log()).entries if isinstance(e, Said))
    pinned = longhold("pin", session, first)
    done = longhold("compact", session)
    assert (pinned.returncode, done.returncode) == (0, 0), pinned.stderr + done.stderr
    before = len(upstream.requests[-1]["messages"])
    agent.messages.append({"role": "user", "content": "Go on."})
    agent.call()
    assert entries(Pinned)
    assert len(upstream.requests[-1]["messages"]) < before
    assert "x-longhold-passed" not in agent.headers[-1]


@pytest.mark.parametrize("words", [["explain"], ["cost"], ["cache"], ["context"], ["history"]])
def test_reports_read_a_session_that_the_gateway_has_open(gateway, upstream, clock, words):
    worked(gateway, clock)
    more = ["file"] if words == ["history"] else []
    done = longhold(*words, the_log().stem, *more)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_a_restart_cuts_no_stream(upstream):
    upstream.simulation.brain.files = 0
    said = {
        "model": MODEL,
        "max_tokens": 50,
        "messages": marked([{"role": "user", "content": "Hi"}]),
    }
    with gateway_process(upstream.url) as (url, first, _):
        upstream.simulation.faults.plan({"queue": ["one_byte"]})
        kinds: list[str] = []
        began = threading.Event()

        def read():
            with client_of(url).messages.stream(**said) as stream:
                for event in stream:
                    kinds.append(event.type)
                    began.set()

        reader = threading.Thread(target=read)
        reader.start()
        assert began.wait(30)
        first.send_signal(signal.SIGTERM)
        reader.join(60)
        assert first.wait(60) in (0, -signal.SIGTERM)
    port = url.rpartition(":")[2]
    with gateway_process(upstream.url, "--port", port) as (again, _, _):
        assert again == url
        Agent(again).ask("Hello")
    assert kinds[-1] == "message_stop"


def test_a_drained_gateway_serves_until_the_balancer_has_noticed(upstream):
    upstream.simulation.brain.files = 0
    with gateway_process(upstream.url, "--drain", "3") as (url, process, _):
        with httpx2.Client(base_url=url) as client:
            assert client.get("/longhold/ready").status_code == 200
            process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + 2
            while (ready := client.get("/longhold/ready")).status_code == 200:
                assert time.monotonic() < deadline
            assert ready.status_code == 503
            assert client.get("/longhold/health").status_code == 200
            agent = Agent(url)
            agent.ask("Hello")
        assert agent.headers[0]["connection"] == "close"
        assert process.wait(30) in (0, -signal.SIGTERM)


def test_probes_need_no_token_and_figures_do(upstream):
    with gateway_process(upstream.url, "--token", "secret") as (url, _, _):
        statuses = {
            path: httpx2.get(f"{url}/longhold/{path}").status_code
            for path in ("health", "ready", "stats", "metrics")
        }
    assert statuses == {"health": 200, "ready": 200, "stats": 401, "metrics": 401}


def test_a_tenant_whose_day_is_spent_is_refused_and_others_are_not(gateway, upstream):
    upstream.simulation.brain.files = 0
    url = gateway(Settings(gateway=GatewaySettings(tenant_usd_per_day=0.001))).url
    Agent(url, key="sk-one").ask("Hello")
    calls = len(upstream.bodies)
    with pytest.raises(anthropic.APIStatusError) as raised:
        Agent(url, key="sk-one").ask("Hello again")
    assert raised.value.status_code == 402
    assert raised.value.body["error"]["type"] == "billing_error"
    assert "budget of $0.0010 a day" in raised.value.body["error"]["message"]
    assert len(upstream.bodies) == calls
    Agent(url, key="sk-two").ask("Hello")
    other = httpx2.post(f"{url}/v1/chat/completions", json={}, headers={"x-api-key": "sk-one"})
    assert other.json()["error"]["type"] == "billing_error"


def test_passing_by_costs_the_budget_as_well(gateway, upstream):
    upstream.simulation.brain.files = 0
    url = gateway(Settings(gateway=GatewaySettings(tenant_usd_per_day=0.001))).url
    bypassing = Agent(url, **{"x-longhold-bypass": "1"})
    bypassing.ask("Hello")
    with pytest.raises(anthropic.APIStatusError):
        bypassing.ask("Hello again")


def test_processes_share_what_a_tenant_has_spent(tmp_path):
    one, other = TenantBudgets(1.0, tmp_path), TenantBudgets(1.0, tmp_path)
    one.pay("t", MODEL, Usage(input_tokens=100_000))
    assert other.check("t") == 0.5
    other.pay("t", MODEL, Usage(input_tokens=100_000))
    for both in (one, other):
        with pytest.raises(OverBudget):
            both.check("t")
    assert one.check("another") == 0


def test_metrics_are_in_prometheus_words(gateway, upstream, clock):
    url = gateway(key="operator").url
    agent = Agent(url)
    agent.ask("Read a dozen files.")
    clock.advance(600)
    agent.ask("Again.")
    own = {"x-longhold-key": "operator"}
    lines = httpx2.get(f"{url}/longhold/metrics", headers=own).text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values["longhold_gateway_requests_total"] == str(len(agent.answers))
    assert int(values["longhold_gateway_changed_total"]) > 0
    assert values['longhold_gateway_plan_seconds_bucket{le="+Inf"}'] == str(len(agent.answers))
    assert float(values["longhold_gateway_shadow_usd_total"]) > float(
        values["longhold_gateway_billed_usd_total"]
    )
    typed = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert all(any(name.startswith(known) for known in typed) for name in values)
