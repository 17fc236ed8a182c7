"""What a gateway saves, costs and breaks: recorded sessions replayed through it, call by call.

Each recorded session is played as its client would: whole list, streamed, marks on the system
prompt and on the last message, thinking left out. Upstream is the simulator, which bills. Every
target sees the same requests: `direct` (none between), ours, and any other by `--target URL`, which
must have been started with `--upstream` (a fixed port of this machine) as its provider.

`cost_ratio_warm`: billed through the target over billed directly, no pause between calls;
`cost_ratio_paused`: with the recorded pauses (ours only, as its clock must be moved too).
`worst_session_ratio`: the same for the session that fared worst, in either run. `added_*_ms`: time
to the first byte beyond direct, call by call. `streams_changed`: answers whose content differs
from what upstream sent. `unexplained_moves`: calls that read less from the cache than the call
before left there, without an entry that says why (for another target, which has no such log: how
many more there are than directly, where the client's own compactions move the prefix as well).
`rss_mb`: of the target's process, if it was started here. `regrets`, `regret_tokens`: results that
had left the view when a later call needed them, warm and paused; `policy.py` counts the cost policy's.
`uncached_*`: the share saved for an SDK loop of 40 calls and 144K tokens that sets no breakpoints,
by clearing alone and with breakpoints added.

With `--folds` the sessions are split by project as in `replay.py`. For each fold the stake is chosen
that costs least on the other folds with no session there above 1.01; the fold is then played with it.

    python benchmarks/gateway.py [FILES…] [--target URL --upstream PORT] [--sessions N] [--folds N] [--json]
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx2
import msgspec

from harness import make_parser, percentile, print_result, recordings, rss_mb, run_gateway
from longhold.core.http import serve_in_thread, server_of
from longhold.core.log import load
from longhold.core.log.entries import AnyEntry, CacheBroke, Replied
from longhold.core.messages import JsonObject, block_to_wire, is_blank, is_thought, message_to_wire
from longhold.core.settings import load_settings
from longhold.core.view import View
from longhold.errors import LongholdError
from longhold.gateway.conversations import Conversations
from longhold.gateway.server import GatewayOptions, running
from longhold.insight.transcripts.formats import open_transcript
from longhold.simulator import BrainAnswer, BrainRequest, SimulatorClock, SimulatorSettings
from longhold.simulator.server import application as simulator_application
from longhold.simulator.simulation import Simulation
from needs import regret
from replay import find_directory, split_sessions

MODEL = "claude-opus-4-8"
FRAME_TOKENS = 15_000
"""About what a coding agent's system prompt and tools weigh."""
WINDOW_TOKENS = 200_000
"""The window that the recorded sessions had."""
FEWEST_CALLS = 20
MARK = {"cache_control": {"type": "ephemeral"}}
STAKES = (0.02, 0.05)
"""Chosen from by fold. The page promises at most 5 %."""
KEPT = ("regrets", "regret_tokens", "streams_changed", "errors", "moves")
MOST_RATIO = 1.01
PLAIN_LINES = 309
LOST_TOKENS = 2_000
"""A call that reads less by more than this has lost its prefix."""
CONTENT = re.compile(rb"^data: (\{.*\"content_block.*\})$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class RecordedCall:
    messages: list[JsonObject]
    answer: tuple[JsonObject, ...]
    at: float


@dataclass(frozen=True, kw_only=True)
class RecordedSession:
    name: str
    calls: list[RecordedCall]
    directory: str = ""
    is_marked: bool = True
    """The client sets cache breakpoints."""


@dataclass(kw_only=True)
class Played:
    """What one session cost through one target."""

    name: str
    usd: float = 0.0
    first_ms: list[float] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    errors: int = 0
    lost: int = 0
    log: str = ""
    """The session that the target says it is, if it says so."""


class Prompter:
    """Answers each call as it was answered then."""

    def __init__(self) -> None:
        self.answer_next: tuple[JsonObject, ...] = ()

    def answer(self, request: BrainRequest) -> BrainAnswer:
        return BrainAnswer(blocks=self.answer_next)


def calls_of(history: Sequence[AnyEntry]) -> list[RecordedCall]:
    """Give every call with the list its client had then."""
    view, calls, seen = View(), list[RecordedCall](), set[str]()
    answers: dict[str, list[JsonObject]] = {}
    for entry in history:
        if isinstance(entry, Replied):
            kept = [b for b in entry.content if not is_thought(b) and not is_blank(b)]
            answers.setdefault(entry.response_id, []).extend(map(block_to_wire, kept))
    for entry in history:
        if isinstance(entry, Replied) and entry.response_id not in seen:
            seen.add(entry.response_id)
            messages = [message_to_wire(message) for message in view.messages()]
            messages = [bare for message in messages if (bare := thoughtless(message))]
            if messages and messages[-1]["role"] == "user" and answers[entry.response_id]:
                answer = tuple(answers[entry.response_id])
                calls.append(RecordedCall(messages=messages, answer=answer, at=entry.at))
        view.apply(entry)
    return calls


def thoughtless(message: JsonObject) -> JsonObject | None:
    content = [
        block
        for block in message["content"]
        if block.get("type") not in ("thinking", "redacted_thinking")
    ]
    return {**message, "content": content} if content else None


def recorded(files: Sequence[Path], most: int) -> list[RecordedSession]:
    """Load the longest sessions."""
    found = []
    for file in files:
        try:
            with open_transcript(file) as transcript:
                history = list(transcript.entries)
        except (LongholdError, OSError):
            continue
        calls = calls_of(history)
        if len(calls) >= FEWEST_CALLS:
            place = find_directory(file)
            found.append(RecordedSession(name=file.name, calls=calls, directory=place))
    return sorted(found, key=lambda one: len(one.calls))[-most:]


def plain_session() -> RecordedSession:
    """Make a loop of 40 calls in 8 turns that ends with 144K tokens and sets no breakpoints."""
    messages: list[JsonObject] = []
    calls = []
    for number in range(40):
        turn, step = divmod(number, 5)
        if step == 0:
            messages.append(
                _say("user", {"type": "text", "text": f"Read four more files: {turn}."})
            )
        if step == 4:
            answer = {"type": "text", "text": f"These are the files of turn {turn}."}
            messages_after = [_say("assistant", answer)]
        else:
            id = f"toolu_{number}"
            given = {"value": f"src/file_{number}.py"}
            answer = {"type": "tool_use", "id": id, "name": "Read", "input": given}
            text = "".join(f"{n} line {n * number} of file {number}\n" for n in range(PLAIN_LINES))
            result = {"type": "tool_result", "tool_use_id": id, "content": text}
            messages_after = [_say("assistant", answer), _say("user", result)]
        calls.append(RecordedCall(messages=list(messages), answer=(answer,), at=float(number)))
        messages += messages_after
    return RecordedSession(name="plain", calls=calls, is_marked=False)


def _say(role: str, block: JsonObject) -> JsonObject:
    return {"role": role, "content": [block]}


def frame() -> JsonObject:
    """Make a system prompt and tools of a coding agent's size."""
    text = "Work with care, read before you write, and say what you did. " * 14
    names = [
        "Bash",
        "Edit",
        "Glob",
        "Grep",
        "Read",
        "Task",
        "TodoWrite",
        "WebFetch",
        "WebSearch",
        "Write",
    ]
    schema = {"type": "object", "properties": {"value": {"type": "string", "description": text}}}
    tools = [{"name": name, "description": text * 3, "input_schema": schema} for name in names]
    system = [{"type": "text", "text": text * 22}, {"type": "text", "text": text * 4, **MARK}]
    return {"model": MODEL, "max_tokens": 8_000, "system": system, "tools": tools, "stream": True}


def marked(messages: Sequence[JsonObject]) -> list[JsonObject]:
    *first, last = messages
    *blocks, end = last["content"]
    return [*first, {**last, "content": [*blocks, {**end, **MARK}]}]


def body_of(session: RecordedSession, call: RecordedCall) -> JsonObject:
    if session.is_marked:
        return {**frame(), "messages": marked(call.messages)}
    made = frame()
    system = [{k: v for k, v in block.items() if k != "cache_control"} for block in made["system"]]
    return {**made, "system": system, "messages": call.messages}


def play(
    url: str, sessions: Sequence[RecordedSession], upstream: "Upstream", *, paused: bool
) -> list[Played]:
    """Play sessions through a target, each under a session header of its own."""
    done = []
    with httpx2.Client(timeout=120.0) as client:
        for session in sessions:
            done.append(play_one(client, url, session, upstream, paused))
    return done


def play_one(
    client: httpx2.Client, url: str, session: RecordedSession, upstream: "Upstream", paused: bool
) -> Played:
    played, before, left = Played(name=session.name), session.calls[0].at, 0
    upstream.simulation.reset()
    for call in session.calls:
        if paused:
            upstream.clock.advance(max(0.0, call.at - before))
        before = call.at
        upstream.brain.answer_next = call.answer
        body = msgspec.json.encode(body_of(session, call))
        headers = {
            "x-api-key": "a key of nobody's",
            "anthropic-version": "2023-06-01",
            "content-type": "application/json",
            "x-claude-code-session-id": f"{upstream.run}-{session.name}",
        }
        began = time.perf_counter()
        with client.stream("POST", f"{url}/v1/messages", content=body, headers=headers) as got:
            chunks = iter(got.iter_raw())
            first = next(chunks, b"")
            played.first_ms.append(1_000 * (time.perf_counter() - began))
            whole = first + b"".join(chunks)
        played.errors += got.status_code != 200
        played.log = got.headers.get("x-longhold-session", played.log)
        played.contents.append(b"\n".join(CONTENT.findall(whole)))
        usage = upstream.last()
        played.usd += usage["cost_usd"]["total"] if usage["cost_usd"] else 0.0
        played.lost += usage["read_tokens"] < left - LOST_TOKENS
        left = usage["read_tokens"] + usage["write_5m_tokens"]
    return played


@dataclass(kw_only=True)
class Upstream:
    """The provider's part."""

    url: str
    simulation: Simulation
    clock: SimulatorClock
    brain: Prompter
    run: str = ""

    def last(self) -> JsonObject:
        return self.simulation.stats.to_json()["requests"][-1]


@contextmanager
def provider(port: int) -> Iterator[Upstream]:
    """Serve the simulator in this process."""
    clock, brain = SimulatorClock(), Prompter()
    settings = SimulatorSettings(remembered_requests=1)
    simulation = Simulation(brain, settings, clock)
    server = server_of(simulator_application(simulation))
    with serve_in_thread(server, port) as url:
        yield Upstream(url=url, simulation=simulation, clock=clock, brain=brain)


def undeclared_breaks(played: Sequence[Played], home: str) -> int:
    """Count moves of the prefix that no entry explains; where there is no log, none does."""
    count = 0
    for one in played:
        logs = list(Path(home).glob(f"projects/*/{one.log}.jsonl")) if one.log else []
        if not logs:
            count += one.lost
            continue
        entries = load(logs[0]).entries
        count += sum(
            isinstance(e, CacheBroke) and e.first_moved != "" and not e.expected for e in entries
        )
    return count


def regret_in(home: str) -> JsonObject:
    """Sum up what was needed of results that had left the view, over all logs."""
    logs = Path(home).glob("projects/*/gw-*.jsonl")
    found = [regret(load(log).entries) for log in logs]
    return {"regrets": sum(n for n, _ in found), "regret_tokens": sum(n for _, n in found)}


def compared(direct: Sequence[Played], through: Sequence[Played]) -> JsonObject:
    pairs = list(zip(direct, through, strict=True))
    added = [
        b - a for one, other in pairs for a, b in zip(one.first_ms, other.first_ms, strict=True)
    ]
    changed = sum(
        a != b for one, other in pairs for a, b in zip(one.contents, other.contents, strict=True)
    )
    return {
        "cost_ratio": sum(o.usd for o in through) / max(1e-9, sum(o.usd for o in direct)),
        "worst": max(other.usd / max(1e-9, one.usd) for one, other in pairs),
        "added_p50_ms": percentile(added, 0.5),
        "added_p99_ms": percentile(added, 0.99),
        "streams_changed": changed,
        "errors": sum(one.errors for one in through),
        "sessions": {
            one.name: {"calls": len(one.first_ms), "direct": one.usd, "through": other.usd}
            for one, other in pairs
        },
    }


def measured_ours(
    sessions: Sequence[RecordedSession], upstream: Upstream, direct: Sequence[Sequence[Played]]
) -> JsonObject:
    """Play warm through a process of its own, and paused where the clock can be moved."""
    with tempfile.TemporaryDirectory(prefix="longhold-") as home:
        with run_gateway(upstream.url, home) as (url, pid):
            httpx2.get(f"{url}/longhold/stats")  # loads what is loaded once
            upstream.run = "warm"
            through = play(url, sessions, upstream, paused=False)
            memory = rss_mb(pid)
        warm = compared(direct[0], through) | regret_in(home)
        moves = undeclared_breaks(through, home)
    through, paused, claimed = play_inside(sessions, upstream, direct[1], paused=True)
    moves += paused.pop("moves")
    return report(warm, paused, moves, memory) | {"claimed": claimed}


def play_inside(
    sessions: Sequence[RecordedSession],
    upstream: Upstream,
    direct: Sequence[Played],
    *,
    paused: bool,
    **changes: object,
) -> tuple[list[Played], JsonObject, JsonObject]:
    """Play through a gateway in this process, whose clock can be moved; `changes` are settings of it."""
    with tempfile.TemporaryDirectory(prefix="longhold-") as home:
        os.environ["LONGHOLD_HOME"] = home
        upstreams = {"anthropic": upstream.url, "openai": upstream.url}
        settings = load_settings()
        settings = replace(
            settings,
            window=replace(settings.window, limit_tokens=WINDOW_TOKENS),
            gateway=replace(settings.gateway, **changes),
        )
        # Logs are stamped with the real time, which the moved clock is ahead of.
        clock = upstream.clock.now if paused else time.time
        conversations = Conversations(settings, clock=clock)
        with running(
            GatewayOptions(upstreams=upstreams), settings=settings, conversations=conversations
        ) as gateway:
            upstream.run = "paused" if paused else "warm"
            through = play(gateway.url, sessions, upstream, paused=paused)
            claimed = gateway.planner.stats()["totals"]
        found = compared(direct, through) | regret_in(home)
        return through, found | {"moves": undeclared_breaks(through, home)}, claimed


def measured_plain(upstream: Upstream) -> JsonObject:
    """Return what is saved for a client without breakpoints."""
    sessions = [plain_session()]
    direct = play(upstream.url, sessions, upstream, paused=False)
    prompt = upstream.last()
    found: JsonObject = {"uncached_calls": len(sessions[0].calls), "uncached_usd": direct[0].usd}
    found["uncached_tokens"] = sum(
        prompt[key] for key in ("read_tokens", "write_5m_tokens", "uncached_tokens")
    )
    for name, breakpoints in (("cleared", "client"), ("with_breakpoints", "add")):
        through, _, _ = play_inside(
            sessions, upstream, direct, paused=False, breakpoints=breakpoints
        )
        found[f"uncached_saved_{name}"] = 1 - through[0].usd / direct[0].usd
    return found


def measured_by_fold(
    sessions: Sequence[RecordedSession],
    upstream: Upstream,
    direct: Sequence[Sequence[Played]],
    folds: int,
) -> JsonObject:
    """Choose the stake on the other folds, and add up the folds played with their choices."""
    played = {
        stake: [
            play_inside(sessions, upstream, direct[paused], paused=bool(paused), stake_share=stake)
            for paused in (0, 1)
        ]
        for stake in STAKES
    }
    bills = {stake: [through for through, _, _ in runs] for stake, runs in played.items()}
    known = [
        {"directory": one.directory, "calls": len(one.calls), "at": at}
        for at, one in enumerate(sessions)
    ]
    parts = [[int(one["at"]) for one in part] for part in split_sessions(known, folds) if part]
    chosen, out = [], []
    for part in parts:
        rest = [at for other in parts if other is not part for at in other]
        stake = choose_stake(bills, direct, rest)
        chosen.append(
            {"stake_share": stake, "sessions": len(part)} | ratios(bills[stake], direct, part)
        )
        out += [(at, stake) for at in part]
    mixed = [[bills[stake][run][at] for at, stake in sorted(out)] for run in (0, 1)]
    places = [at for at, _ in sorted(out)]
    plain = [[direct[run][at] for at in places] for run in (0, 1)]
    return {
        "folds": chosen,
        "out_of_fold": ratios(mixed, plain, range(len(places))),
        "by_stake": {
            str(stake): ratios(bills[stake], direct, places)
            | {key: [found[key] for _, found, _ in played[stake]] for key in KEPT}
            for stake in STAKES
        },
    }


def choose_stake(
    bills: Mapping[float, Sequence[Sequence[Played]]],
    direct: Sequence[Sequence[Played]],
    places: Sequence[int],
) -> float:
    """Return the cheapest stake with which no session costs much more, else the smallest."""
    found = {stake: ratios(bills[stake], direct, places) for stake in STAKES}
    safe = [stake for stake in STAKES if found[stake]["worst_session_ratio"] <= MOST_RATIO]
    return min(safe, key=lambda stake: found[stake]["cost_ratio_warm"]) if safe else min(STAKES)


def ratios(
    through: Sequence[Sequence[Played]], direct: Sequence[Sequence[Played]], places: Sequence[int]
) -> JsonObject:
    pairs = [[(through[run][at].usd, direct[run][at].usd) for at in places] for run in (0, 1)]
    warm, paused = (sum(a for a, _ in run) / sum(b for _, b in run) for run in pairs)
    worst = max(a / b for run in pairs for a, b in run)
    return {"cost_ratio_warm": warm, "cost_ratio_paused": paused, "worst_session_ratio": worst}


def measured_other(
    url: str, sessions: Sequence[RecordedSession], upstream: Upstream, direct: Sequence[Played]
) -> JsonObject:
    upstream.run = "warm"
    through = play(url, sessions, upstream, paused=False)
    moves = sum(max(0, b.lost - a.lost) for a, b in zip(direct, through, strict=True))
    return report(compared(direct, through), None, moves, None)


def report(
    warm: JsonObject, paused: JsonObject | None, moves: int, memory: float | None
) -> JsonObject:
    runs = [warm] if paused is None else [warm, paused]
    return {
        "cost_ratio_warm": warm["cost_ratio"],
        "cost_ratio_paused": paused["cost_ratio"] if paused else None,
        "worst_session_ratio": max(run["worst"] for run in runs),
        "added_p50_ms": warm["added_p50_ms"],
        "added_p99_ms": warm["added_p99_ms"],
        "streams_changed": sum(run["streams_changed"] for run in runs),
        "unexplained_moves": moves,
        "errors": sum(run["errors"] for run in runs),
        "rss_mb": memory,
        "regret_tokens": [run.get("regret_tokens") for run in runs],
        "regrets": [run.get("regrets") for run in runs],
        "sessions": {"warm": warm["sessions"], "paused": paused["sessions"] if paused else None},
    }


def main() -> None:
    parser = make_parser(__doc__, takes_files=True, sessions=5, folds=0)
    parser.add_argument("--target", default="", help="another gateway's address")
    parser.add_argument("--upstream", type=int, default=0, help="the simulator's port")
    options = parser.parse_args()
    with recordings(options.files) as files:
        sessions = recorded(files, options.sessions)
    if not sessions:
        sys.exit("no recorded sessions; name files")
    with provider(options.upstream) as upstream:
        warm = play(upstream.url, sessions, upstream, paused=False)
        if options.target:
            targets = {options.target: measured_other(options.target, sessions, upstream, warm)}
        else:
            paused = play(upstream.url, sessions, upstream, paused=True)
            if options.folds:
                found = measured_by_fold(sessions, upstream, (warm, paused), options.folds)
                print_result(found, options.json)
                return
            ours = measured_ours(sessions, upstream, (warm, paused))
            targets = {"longhold": ours | measured_plain(upstream)}
    calls = sum(len(session.calls) for session in sessions)
    found = {"sessions": len(sessions), "calls": calls, "targets": targets}
    print_result(found, options.json)


if __name__ == "__main__":
    main()
