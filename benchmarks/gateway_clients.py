"""Real, unmodified agents through the gateway, with a simulated provider.

Each client is run as its user would, with a home of its own: turns with tools, a sub-agent, its own
compaction, broken streams, a session that is continued. A second run goes to the provider directly.
`errors` are turns that did not end as the script of the model says, `differing` those that ended
otherwise than directly, `passed` requests that were passed on unmanaged. `read_share` is what was
read from the cache of what the call before had left there, the client's own breaks apart: what our
clearing took out counts against it as much as what had to be written anew behind it.
`read_share_of_sent` counts only what was sent: all that was written in the calls of our breaks, new
messages included. `read_share_of_known` is what was read of what could have been: blocks that the
provider had been sent before, the client's own breaks included (the Messages API only).
`read_share_between_our_breaks` leaves our breaks out; `breaks`, `lost_tokens` and `rewritten_tokens`
say how much they are. `direct_*` are the same for the client without a gateway.

    python benchmarks/gateway_clients.py [--claude PATH] [--codex PATH] [--pi PATH] [--turns N] [--json]
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from harness import make_parser, print_result
from longhold.core.http import serve_in_thread, server_of
from longhold.core.log import load
from longhold.core.messages import JsonObject
from longhold.core.request.billing.api_request import ApiRequest, Caller
from longhold.core.settings import load_settings
from longhold.gateway.server import GatewayOptions, running
from longhold.gateway.wrapping import environment_for, with_options
from longhold.insight.calls import explain_calls
from longhold.simulator import BrainAnswer, BrainRequest, SimulatorClock, SimulatorSettings
from longhold.simulator.brains import text, tool_use
from longhold.simulator.server import application
from longhold.simulator.simulation import ServedOutcome, Simulation

MODEL = "claude-opus-4-8"
WINDOW_TOKENS = 64_000
"""The client's own prompt is about 30,000; the rest is as small as in a window of 32K."""
TURNS = 30
CALLS = 2
LINES = 700
"""Of a command's output: about 2,000 tokens."""
AGENT_EVERY, CUT_EVERY = 10, 7
ASKED = re.compile(r"turn (\d+)")
SUMMARY = "<summary>The user asked for numbered turns; each counted some lines.</summary>"
TURN_SECONDS = 120
OURS = frozenset({"clearing", "collapse", "compaction", "redo", "snip", "spill", "undo"})
"""Causes of breaks that are decisions of the gateway."""


class Scripted:
    """Works on the turn that was asked for last: some commands, now and then an agent, an answer."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        words, calls, turn = "", 0, 0
        for message in request.messages:
            for block in message["content"]:
                if block["type"] == "text" and message["role"] != "assistant":
                    words = block["text"]
                    if found := ASKED.findall(words):
                        turn, calls = int(found[-1]), 0
                calls += block["type"] == "tool_use"
        names = {tool.get("name") for tool in request.tools}
        if "summary" in words and "turn" not in words[-200:] and len(words) > 1_000:
            return BrainAnswer(blocks=(text(SUMMARY),))
        shell = next((name for name in ("Bash", "bash", "exec") if name in names), "")
        if not shell or not turn:
            return BrainAnswer(blocks=(text("A title"),))
        if turn % AGENT_EVERY == 0 and calls == 0 and "Agent" in names:
            asked = {"description": "count", "prompt": f"Work on turn {turn * 1_000 + 1}."}
            asked["subagent_type"] = "general-purpose"
            return BrainAnswer(blocks=(tool_use("Agent", asked),))
        if calls < CALLS:
            command = f"seq {turn * 10_000 + calls * 1_000} {turn * 10_000 + calls * 1_000 + LINES}"
            script = f'text((await tools.exec_command({{cmd: "{command}"}})).output)'
            given = {"input": script} if shell == "exec" else {"command": command}
            return BrainAnswer(blocks=(tool_use(shell, given),))
        return BrainAnswer(blocks=(text(f"Turn {turn} is done."),))


@dataclass(kw_only=True)
class ClientRun:
    """What a client said, turn by turn."""

    answers: list[str] = field(default_factory=list)
    exit_codes: list[int] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


class Watched(Simulation):
    """Counts what it had been sent before, and what of that was in its cache."""

    known_tokens = read_tokens = prompt_tokens = 0

    async def create(self, request: ApiRequest, caller: Caller) -> ServedOutcome:
        outcome = await super().create(request, caller)
        plan, pieces = outcome.usage.message.plan, outcome.prepared.read
        known = sum(piece.tokens for piece in pieces if piece.digest in self._sent)
        self._sent |= {piece.digest for piece in pieces}
        self.known_tokens += max(known, plan.read_tokens)
        self.read_tokens += plan.read_tokens
        self.prompt_tokens += plan.prompt_tokens
        return outcome

    @cached_property
    def _sent(self) -> set[bytes]:
        return set()

    def shares(self) -> JsonObject:
        read, known, prompt = self.read_tokens, self.known_tokens, self.prompt_tokens
        return {
            "read_share_of_known": round(read / known, 4) if known else None,
            "prompt_read_share": round(read / prompt, 4) if prompt else None,
        }


@dataclass(frozen=True, kw_only=True)
class Provider:
    url: str
    simulation: Watched


@contextmanager
def provider() -> Iterator[Provider]:
    simulation = Watched(
        Scripted(), SimulatorSettings(accepts_unknown_models=True), SimulatorClock()
    )
    with serve_in_thread(server_of(application(simulation))) as url:
        yield Provider(url=url, simulation=simulation)


class ClaudeCode:
    """Speaks to one process of the client, as a program that embeds it would."""

    def __init__(self, command: str, home: Path, environment: Mapping[str, str]) -> None:
        self._command, self._home, self._environment = command, home, environment
        self.run = ClientRun()

    def talk(self, messages: Sequence[str], simulation: Simulation, *options: str) -> None:
        """Send one message after the other, each after the answer to the one before."""
        own = {"HOME": str(self._home), "PATH": os.environ["PATH"], "DISABLE_TELEMETRY": "1"}
        work = self._home / "work"
        work.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            [
                *(self._command, "-p", "--model", MODEL, "--verbose"),
                *("--input-format", "stream-json", "--output-format", "stream-json"),
                *("--allowedTools", "Bash,Read,Agent,Task", *options),
            ],
            env={**own, **self._environment, "ANTHROPIC_API_KEY": "sk-ant-nobodys"},
            cwd=work,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        for number, words in enumerate(messages, 1):
            if number % CUT_EVERY == 0:
                simulation.faults.plan({"queue": ["cut"]})
            said = {"role": "user", "content": words}
            process.stdin.write(json.dumps({"type": "user", "message": said}) + "\n")
            process.stdin.flush()
            self._read_answer(process.stdout)
        process.stdin.close()
        self.run.exit_codes.append(process.wait(TURN_SECONDS))
        process.stdout.close()

    def _read_answer(self, lines: Iterator[str]) -> None:
        for line in lines:
            event = json.loads(line)
            if event.get("type") == "result":
                self.run.answers.append(str(event.get("result", "")))
                if event.get("is_error"):
                    self.run.complaints.append(line[:300])
                return
        self.run.complaints.append("the client ended")


def claude_code(command: str, upstream: Provider, home: Path, base: str, turns: int) -> ClientRun:
    """Play a session: turns, the client's own compaction in the middle, and its continuation."""
    client = ClaudeCode(command, home, environment_for(base, {}))
    asked = [f"Work on turn {n}." for n in range(1, turns + 1)]
    middle = turns * 2 // 3
    client.talk([*asked[:middle], "/compact", *asked[middle:-2]], upstream.simulation)
    client.talk(asked[-2:], upstream.simulation, "--continue")
    return client.run


def pi(command: str, upstream: Provider, home: Path, base: str, turns: int) -> ClientRun:
    """Run a process for each turn, each continuing the session of the one before."""
    run, settings = ClientRun(), home / ".pi" / "agent"
    settings.mkdir(parents=True)
    own = {"providers": {"anthropic": {"baseUrl": base}}}
    (settings / "models.json").write_text(json.dumps(own), encoding="utf-8")
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": "nobodys"}
    for number in range(1, turns + 1):
        if number % CUT_EVERY == 0:
            upstream.simulation.faults.plan({"queue": ["529"]})
        words = [
            *(command, "-p", "--offline", "--provider", "anthropic", "--model", MODEL),
            *("--thinking", "off"),
            *(["--continue"] if number > 1 else []),
            f"Work on turn {number}.",
        ]
        take_turn(run, words, environment, home)
    return run


def take_turn(run: ClientRun, words: list[str], environment: dict[str, str], home: Path) -> None:
    """Run a client once, to its end."""
    done = subprocess.run(
        words,
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=TURN_SECONDS,
    )
    run.answers.append(done.stdout.strip())
    run.exit_codes.append(done.returncode)
    if done.returncode:
        run.complaints.append(done.stderr[-300:])


def codex(command: str, upstream: Provider, home: Path, base: str, turns: int) -> ClientRun:
    """Run a process for each turn, each resuming the session of the one before."""
    home.mkdir(parents=True)
    own = {"HOME": str(home), "CODEX_HOME": str(home), "PATH": os.environ["PATH"]}
    own["CODEX_API_KEY"] = "nobodys"
    run = ClientRun()
    options = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    for number in range(1, turns + 1):
        if number % CUT_EVERY == 0:
            upstream.simulation.faults.plan({"queue": ["cut"]})
        resumed = ["resume", "--last"] if number > 1 else []
        words = [*with_options([command], base, has_history=False), "exec", *resumed, *options]
        take_turn(run, [*words, f"Work on turn {number}."], own, home)
    return run


def cache_figures(home: Path) -> JsonObject:
    """Sum up what the gateway's logs say of the cache, by whose doing it broke."""
    read = calls = 0
    lost, rewritten = Counter[str](), Counter[str]()
    breaks: dict[str, Counter[str]] = {"client": Counter(), "ours": Counter(), "others": Counter()}
    for log in home.glob("projects/*/gw-*.jsonl"):
        for call in explain_calls(load(log).entries):
            calls += 1
            read += call.tally.cache_read_tokens
            if call.cause:
                whose = whose_break(call.cause)
                breaks[whose][call.cause] += 1
                lost[whose] += call.tally.lost_tokens
                rewritten[whose] += call.tally.cache_write_tokens + call.tally.input_tokens
    possible = read + lost["ours"] + lost["others"]
    sent = read + rewritten["ours"] + rewritten["others"]
    return {
        "calls": calls,
        "read_share": round(read / possible, 4) if possible else None,
        "read_share_of_sent": round(read / sent, 4) if sent else None,
        "read_share_between_our_breaks": round(read / (possible - lost["ours"]), 4)
        if read
        else None,
        "breaks": {whose: dict(found) for whose, found in breaks.items()},
        "lost_tokens": {whose: lost[whose] for whose in breaks},
        "rewritten_tokens": {whose: rewritten[whose] for whose in breaks},
    }


def whose_break(cause: str) -> str:
    """Tell who moved the prefix: what the gateway decides, or what its client does to a request."""
    if cause in OURS:
        return "ours"
    is_other = cause.startswith("lifetime") or cause == "provider"
    return "others" if is_other else "client"


def measured(kind: str, command: str, turns: int) -> JsonObject:
    play = {"claude": claude_code, "codex": codex, "pi": pi}[kind]
    with tempfile.TemporaryDirectory(prefix="longhold-clients-") as place:
        root = Path(place)
        os.environ["LONGHOLD_HOME"] = str(root / "longhold")
        os.environ["LONGHOLD_WINDOW_LIMIT_TOKENS"] = str(WINDOW_TOKENS)
        with provider() as upstream:
            direct = play(command, upstream, root / "direct", upstream.url, turns)
            direct_usd = billed_usd(upstream)
            shares = {f"direct_{k}": v for k, v in upstream.simulation.shares().items()}
        with provider() as upstream:
            upstreams = {"anthropic": upstream.url, "openai": upstream.url}
            options = GatewayOptions(upstreams=upstreams, apart=False)
            with running(options, settings=load_settings(root)) as gateway:
                through = play(command, upstream, root / "through", gateway.url, turns)
                stats = gateway.planner.stats()
            through_usd = billed_usd(upstream)
            shares |= upstream.simulation.shares()
        pairs = zip(direct.answers, through.answers, strict=False)
        return {
            "turns": len(through.answers),
            "errors": len(through.complaints) + sum(map(bool, through.exit_codes)),
            "complaints": through.complaints,
            "differing": sum(a != b for a, b in pairs),
            "passed": stats["failures"],
            "direct_usd": round(direct_usd, 4),
            "through_usd": round(through_usd, 4),
            **shares,
            **cache_figures(root / "longhold"),
            "last": through.answers[-1:],
        }


def billed_usd(upstream: Provider) -> float:
    cost = upstream.simulation.stats.to_json()["totals"]["cost_usd"]
    return float(cost["total"]) if cost else 0.0


def main() -> None:
    parser = make_parser(__doc__, turns=TURNS)
    parser.add_argument("--claude", default=shutil.which("claude") or "")
    parser.add_argument("--codex", default=shutil.which("codex") or "")
    parser.add_argument("--pi", default=shutil.which("pi") or "")
    given = parser.parse_args()
    chosen = {"claude": given.claude, "codex": given.codex, "pi": given.pi}
    found = {name: measured(name, path, given.turns) for name, path in chosen.items() if path}
    if not found:
        sys.exit("no client is installed; name one")
    print_result(found, given.json)


if __name__ == "__main__":
    main()
