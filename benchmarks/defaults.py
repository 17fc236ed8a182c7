"""What happens at default settings: models, ways to use Longhold and situations, over HTTP.

Everything is measured from the requests that reach the simulator and from the usage that it bills.
Results, messages and calls carry codes, and a code that a request lacks is lost. Only the
threshold, the window and whether a change of the prefix was declared are read from the session. A
summary counts as used if its code is in a later request; its price is that of the request at its
place in the bill. Rewrites behind the gateway are not judged and only affect its cost. Only five
files in the 8K window do not fit. In all other situations the protected content fits, so a session
must not end for lack of space. Each situation is also played with one rule switched off at a time
(`usd_without`), for one model.

    python benchmarks/defaults.py [--only SITUATION] [--model NAME] [--json]
"""

import asyncio
import base64
import json
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anthropic
import openai

from harness import make_parser, print_result, temporary_home
from longhold import Session
from longhold.agent.build import build_agent
from longhold.core.log.entries import Cleared, Compacted, Ran, Undone
from longhold.core.models import open_model
from longhold.core.models.capabilities import capabilities
from longhold.core.request.lifetime import lifetime_seconds
from longhold.core.settings import Settings
from longhold.core.turn.loop import Stopped
from longhold.core.view.tokens import estimate_tokens
from longhold.errors import LongholdError
from longhold.gateway.server import GatewayOptions
from longhold.gateway.server import running as run_gateway
from longhold.simulator import BrainAnswer, SimulatorClock, SimulatorSettings, run_simulator
from longhold.simulator.brains import text, thinking, tool_use

LOCAL = {"local-8k": 8_192, "local-32k": 32_768}
CLAUDE = ("claude-sonnet-5-5", "claude-opus-5", "claude-sonnet-4-5")
MODELS = (*CLAUDE, "gpt-6-sol", *LOCAL)
WORDS = [
    "anchor",
    "beam",
    "cleat",
    "davit",
    "fender",
    "keel",
    "ladder",
    "mast",
    "oar",
    "sail",
    "rudder",
    "winch",
    "shroud",
    "halyard",
]
TOKENS_PER_WORD = 1.6
CODE = re.compile(r"[URS]\d{4}x\d{4}(?!\d)")
SUM = re.compile(r"SUM\d{4}")
TITLES = {1: "Request and intent", 2: "Technical concepts", 4: "Errors and fixes"}
TITLES |= {5: "Problem solving", 7: "Pending tasks", 8: "Current work", 9: "Next step"}
SUMMARY_ASKED, NOTES_ASKED = "The work pauses here", "The notes lie in"
TOOLS = [
    {"name": name, "description": "d " * 20, "input_schema": {"type": "object"}}
    for name in ("Ask", "Bash", "Grep", "Query")
]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SLACK = 0.02
"""Share of a cached prefix that may be unread: providers cache in steps."""


def prose(seed: object, words: int) -> str:
    return " ".join(random.Random(str(seed)).choices(WORDS, k=max(0, words)))


def coded(kind: str, n: int, tokens: int) -> str:
    """Write lines of text, each with a code of its own, about as long as asked for."""
    lines = max(1, int(tokens / 40))
    return "\n".join(f"{kind}{n:04d}x{i:04d} {prose((kind, n, i), 18)}" for i in range(lines))


def find_codes(content: object) -> set[str]:
    return set(CODE.findall(content if isinstance(content, str) else str(content)))


class Wire:
    """Answers as planned, writes summaries, and keeps what every request contained."""

    def __init__(self) -> None:
        self.plan: Callable[[Any], BrainAnswer] = lambda _: BrainAnswer(blocks=(text("Yes."),))
        self.kinds: list[str] = []
        self.found: set[str] = set()
        self.used_summaries: set[str] = set()
        self.summaries: dict[str, int] = {}

    def answer(self, request: Any) -> BrainAnswer:
        last = json.dumps(request.messages[-1:])
        if NOTES_ASKED in last:
            self.kinds.append("notes")
            return BrainAnswer(blocks=(text("The notes are up to date."),))
        if request.purpose == "summary" or SUMMARY_ASKED in last:
            code = f"SUM{len(self.summaries):04d}"
            self.summaries[code] = len(self.kinds)
            self.kinds.append("summary")
            parts = (f"## {n}. {title}\n{code}: all is well.\n" for n, title in TITLES.items())
            return BrainAnswer(blocks=(text(f"<summary>{''.join(parts)}</summary>"),))
        self.kinds.append("main")
        whole = json.dumps(request.messages)
        self.found = set(CODE.findall(whole))
        self.used_summaries |= set(SUM.findall(whole))
        return self.plan(request)


@dataclass(kw_only=True)
class Found:
    """The figures of one session."""

    unread_lost: int = 0
    unread_too_large: int = 0
    """Left out and said to be, of results that together exceed the window."""
    calls_repeated: int = 0
    open_turn_visible_share: float = 1.0
    user_words_lost: int = 0
    calls: int = 0
    past_calls: int = 0
    ended_with_room: int = 0
    compactions: int = 0
    model_summaries: int = 0
    live_tokens_rewritten: int = 0
    unused_usd: float = 0.0
    usd: float = 0.0
    wrong_windows: int = 0
    end: str = ""


@dataclass(kw_only=True)
class Talk:
    """A conversation and what is measured of it."""

    model: str
    way: str
    settings: Settings
    wire: Wire = field(default_factory=Wire)
    clock: SimulatorClock = field(default_factory=lambda: SimulatorClock(is_frozen=True))
    found: Found = field(default_factory=Found)
    stack: ExitStack = field(default_factory=ExitStack)
    url: str = ""
    session: Any = None
    engine: Any = None
    """The agent's."""
    fresh: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    steps: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    messages: list[Any] = field(default_factory=list)
    tools: list[Any] = field(default_factory=lambda: list(TOOLS))
    cached: int = 0
    asked_at: float = 0.0
    seen_entries: int = 0
    is_bounded: bool = True
    """Whether nothing protected is larger than the threshold."""

    @property
    def window(self) -> int:
        return LOCAL.get(self.model) or capabilities(self.model).window_tokens

    @property
    def is_chat(self) -> bool:
        return not self.model.startswith("claude")

    @property
    def threshold(self) -> int:
        return self.session.fullness().window.auto_tokens if self.session else self.window

    @property
    def size(self) -> int:
        """About the default threshold, also where the rule that sets it is off."""
        return min(self.threshold, 95_000)

    def open(self, directory: Path, simulator: Any) -> None:
        self.simulator, self.url = simulator, simulator.url
        if self.way == "gateway":
            options = GatewayOptions(upstreams={"anthropic": self.url, "openai": self.url})
            self.url = self.stack.enter_context(run_gateway(options)).url
        key = {"api_key": "key", "max_retries": 0}
        sdk: Any = openai.AsyncOpenAI if self.is_chat else anthropic.AsyncAnthropic
        self.client = sdk(base_url=self.url + ("/v1" if self.is_chat else ""), **key)
        if self.way in ("prepare", "follow"):
            window = {"window": LOCAL[self.model]} if self.model in LOCAL else {}
            self.session = Session.open(
                model=self.model,
                system=prose("system", min(2_000, self.window // 40)),
                tools=self.tools,
                client=self.client,
                directory=directory,
                settings=self.settings,
                clock=self.clock.now,
                **window,
            )
            self.stack.callback(self.session.close)

    def user(self, content: Any) -> None:
        codes = set(CODE.findall(json.dumps(content)))
        self.fresh |= codes
        self.words |= codes
        self.steps = set()
        if self.way == "prepare":
            self.session.user(content)
        else:
            self.messages.append({"role": "user", "content": content})

    def results(self, uses: list[Any], tokens: int) -> None:
        blocks = []
        for use in uses:
            step = use.input["step"]
            said = coded("R", int(step[1:5]), tokens)
            self.fresh |= set(CODE.findall(said))
            self.steps.add(step)
            if self.way == "prepare":
                self.session.tool_result(use.id, said)
            blocks.append({"type": "tool_result", "tool_use_id": use.id, "content": said})
        if self.way != "prepare":
            self.messages.append({"role": "user", "content": blocks})

    def check_results(self, request: str) -> None:
        """Count what this request lacks of the results that an agent got since the last one."""
        history = list(self.engine.view.history)
        fresh, self.seen_entries = history[self.seen_entries :], len(history)
        got = "".join(str(one.content) for one in fresh if isinstance(one, Ran))
        lost = len(find_codes(got) - find_codes(request))
        frame = round(self.engine.make_weigher()(self.engine.frame.measure))
        limit = self.engine.fullness().window.full_tokens
        if estimate_tokens(got) + frame < limit:
            self.found.unread_lost += lost
        else:  # no request can hold them; what is left out must be stated
            assert not lost or "do not fit into the context window" in request
            self.found.unread_too_large += lost

    async def call(self) -> list[Any]:
        """Make one call, measure what it sent, and return the tool uses of the answer."""
        before = self.wire.kinds.count("main")
        answer = await self._ask()
        assert self.wire.kinds.count("main") > before, "the request has reached the simulator"
        found, wire = self.found, self.wire
        found.calls += 1
        found.unread_lost += len(self.fresh - wire.found)
        found.user_words_lost = max(found.user_words_lost, len(self.words - wire.found))
        hidden = self.steps - wire.found
        self.hidden |= hidden
        found.calls_repeated = len(self.hidden)
        if self.steps:
            share = 1 - len(hidden) / len(self.steps)
            found.open_turn_visible_share = min(found.open_turn_visible_share, share)
        self.fresh = set()
        self._measure(answer.usage)
        return self._uses(answer)

    async def _ask(self) -> Any:
        if self.way == "prepare":
            request = await self.session.prepare()
        elif self.way == "follow":
            request = await self.session.follow(self.messages, tools=self.tools)
        if self.way == "gateway":
            kwargs = {"model": self.model, "max_tokens": 1_000, "tools": self.tools}
            marked = _mark_last(self.messages)
            answer = await self.client.messages.create(**kwargs, messages=marked)
        elif self.is_chat:
            answer = await self.client.chat.completions.create(**request.kwargs)
        else:
            space = self.client.beta.messages if request.betas else self.client.messages
            betas = {"betas": list(request.betas)} if request.betas else {}
            answer = await space.create(**request.kwargs, **betas)
        if self.session is not None:
            await self.session.record(answer)
        if self.way != "prepare":
            content = [block.model_dump(exclude_none=True) for block in answer.content]
            self.messages.append({"role": "assistant", "content": content})
        return answer

    def _uses(self, answer: Any) -> list[Any]:
        if not self.is_chat:
            return [block for block in answer.content if block.type == "tool_use"]
        calls = answer.choices[0].message.tool_calls or []
        return [_Use(call.id, json.loads(call.function.arguments)) for call in calls]

    def _measure(self, usage: Any) -> None:
        if self.is_chat:
            read = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else 0
            prompt, cached = usage.prompt_tokens, usage.prompt_tokens
        else:
            read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
            prompt, cached = usage.input_tokens + read + written, read + written
        if self.session and self.is_bounded:
            self.found.past_calls += prompt > 1.25 * self.threshold
        gap, self.asked_at = self.clock.now() - self.asked_at, self.clock.now()
        is_alive = gap < lifetime_seconds(self.model, "5m")
        lost = self.cached - read if is_alive else 0
        is_judged = self.session is not None  # the gateway's log is not open here
        if is_judged and lost > SLACK * self.cached + 200 and not self._is_declared():
            self.found.live_tokens_rewritten += lost
        self.cached = cached if self.model not in LOCAL else 0

    def _is_declared(self) -> bool:
        """True if the session compacted, or cleared for a stated price or limit, since the last."""
        entries = list(self.session.view.history)[self.seen_entries :]
        self.seen_entries = len(self.session.view.history)
        undone = {entry.target for entry in entries if isinstance(entry, Undone)}
        return any(
            (isinstance(one, Compacted) and one.kind != "from" and one.n not in undone)
            or (isinstance(one, Cleared) and (one.cost_usd > 0 or one.how == "limit"))
            for one in entries
        )

    def finish(self, history: Any) -> Found:
        found, wire = self.found, self.wire
        compacted = [one for one in history if isinstance(one, Compacted)]
        found.compactions = sum(one.trigger != "manual" for one in compacted)
        found.model_summaries = min(found.compactions, len(wire.used_summaries))
        bill = self.simulator.simulation.stats.to_json()
        found.usd = bill["totals"]["cost_usd"]["total"]
        asked_for = {one.n for one in compacted if one.trigger == "manual"}
        for code, place in wire.summaries.items():
            if not asked_for and code not in wire.used_summaries and place < len(bill["requests"]):
                cost = bill["requests"][place]["cost_usd"]
                found.unused_usd += cost["total"] if cost else 0.0
        return found


@dataclass(frozen=True)
class _Use:
    id: str
    input: Any


def _mark_last(messages: list[Any]) -> list[Any]:
    """Put a cache breakpoint on the last message, as clients do."""
    last = messages[-1]
    content = last["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    blocks[-1] = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
    return [*messages[:-1], {**last, "content": blocks}]


def stepping(every: int = 0, *, thinks: bool = False, name: str = "Query") -> Callable[..., Any]:
    """Plan one call after another; each `every` calls, an answer instead."""
    done = iter(range(10_000))

    def plan(_: Any) -> BrainAnswer:
        n = next(done)
        if every and n % every == every - 1:
            return BrainAnswer(blocks=(text(f"Done so far: {n}."),))
        thought = (thinking(prose(n, 30)),) if thinks else ()
        use = tool_use(name, {"step": f"S{n:04d}x0000"})
        return BrainAnswer(blocks=(*thought, text("Next."), use))

    return plan


async def work(talk: Talk, calls: int, tokens: int, every: int = 0, pause: float = 5.0) -> None:
    """Let the model work: each of its calls gets a result of this size."""
    talk.user("Do all of it. U0000x0000")
    for n in range(calls):
        uses = await talk.call()
        if uses:
            talk.results(uses, tokens)
        elif every:
            talk.user(f"And part {n}, please. U{n:04d}x9999")
        talk.clock.advance(pause)


def scaled(talk: Talk, share: float, most: int) -> int:
    return max(60, min(most, int(talk.window * share)))


async def long_work(talk: Talk) -> None:
    talk.wire.plan = stepping()
    await work(talk, 60, scaled(talk, 0.02, 5_000))


async def thinking_work(talk: Talk) -> None:
    talk.wire.plan = stepping(thinks=True)
    await work(talk, 300, 1_500)


async def pasted(talk: Talk) -> None:
    talk.is_bounded = False
    talk.user("Here is a contract.\n" + coded("U", 1, scaled(talk, 0.16, 140_000)))
    await talk.call()
    for n in range(4):
        talk.user(f"Question {n}?")
        await talk.call()


async def specification(talk: Talk) -> None:
    talk.is_bounded = False
    talk.user("Build it so:\n" + coded("U", 1, scaled(talk, 0.02, 3_000)))
    await talk.call()
    for n in range(30):
        talk.user(f"Step {n}: {prose(n, int(scaled(talk, 0.03, 6_000) / TOKENS_PER_WORD))}")
        await talk.call()


async def pdf(talk: Talk) -> None:
    talk.is_bounded = False
    pages = b"".join(b"%d 0 obj <</Type /Page>> endobj\n" % n for n in range(30))
    data = base64.b64encode(b"%PDF-1.4\n" + pages).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    talk.user([{"type": "document", "source": source}, {"type": "text", "text": "Summarise it."}])
    for n in range(12):
        await talk.call()
        talk.user(f"{n}: {prose(n, 3_000)}")


async def images(talk: Talk) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    for n in range(capabilities(talk.model).image_limit + 5):
        talk.user([{"type": "image", "source": source}, {"type": "text", "text": f"{n}"}])
        if n > 90:
            await talk.call()


async def pinned(talk: Talk) -> None:
    talk.is_bounded = False
    talk.wire.plan = lambda _: BrainAnswer(blocks=(text(prose(talk.found.calls, 2_500)),))
    talk.user("Keep this in mind:\n" + coded("U", 1, int(1.1 * talk.size)))
    await talk.call()
    talk.session.pin(talk.session.view.items[0].id)
    for n in range(40):
        talk.user(f"Question {n}?")
        await talk.call()


async def large_second(talk: Talk) -> None:
    talk.is_bounded = False
    talk.wire.plan = lambda _: BrainAnswer(blocks=(text(prose(talk.found.calls, 2_500)),))
    while talk.session.fullness().used_tokens < 0.9 * talk.size and talk.found.calls < 60:
        talk.user("Go on.")
        await talk.call()
    talk.user("Now look at this:\n" + coded("U", 1, int(1.05 * talk.size)))
    await talk.call()


async def undo(talk: Talk) -> None:
    talk.wire.plan = stepping(4, name="Grep")
    await work(talk, 24, scaled(talk, 0.02, 1_000), every=4)
    await talk.session.compact()
    talk.session.undo()
    talk.user("And on.")
    await talk.call()


async def partial(talk: Talk) -> None:
    talk.wire.plan = stepping(4, name="Grep")
    await work(talk, 24, scaled(talk, 0.02, 1_000), every=4)
    items = talk.session.view.items
    pivot = next(one.id for one in items[len(items) * 2 // 3 :] if type(one).__name__ == "Spoken")
    before = talk.cached
    await talk.session.compact(start=pivot)
    talk.user("And on.")
    talk.cached = before // 2  # at least half lies before the compacted third
    await talk.call()


async def reordered(talk: Talk) -> None:
    talk.wire.plan = stepping(name="Grep")
    talk.user("Do all of it. U0000x0000")
    for n in range(30):
        talk.tools = TOOLS[::-1] if n % 10 == 9 else list(TOOLS)
        talk.results(await talk.call(), scaled(talk, 0.02, 1_200))
        talk.clock.advance(5)


async def pauses(talk: Talk) -> None:
    talk.wire.plan = stepping(name="Grep")
    talk.user("Do all of it. U0000x0000")
    lives = lifetime_seconds(talk.model, "5m")
    for n in range(30):
        talk.results(await talk.call(), scaled(talk, 0.02, 1_200))
        talk.clock.advance(lives * (0.9 if n % 6 == 5 else 1.3 if n == 20 else 0.02))


async def agent_work(talk: Talk, directory: Path, name: str) -> Any:
    """Let the agent read files: five in one answer, or a hundred one by one."""
    count, lines = (5, 1_400) if name == "reads" else (100, 100)
    count = min(count, 30) if talk.model in LOCAL else count
    for n in range(count):
        body = (f"R{n:04d}x{i:04d} = run({i}, '{prose((n, i), 4)}')" for i in range(lines))
        (directory / f"m{n}.py").write_text("\n".join(body) + "\n")
    done = iter(range(10_000))
    talk.wire.plan = _agent_plan(talk, done, count, name)
    overrides: dict[str, object] = {}
    if talk.model in LOCAL:
        overrides = {"window_tokens": talk.window, "max_output_tokens": talk.window // 4}
    base = talk.url + ("/v1" if talk.is_chat else "")
    model = open_model(talk.model, base_url=base, api_key="key", overrides=overrides or None)
    agent = await build_agent(
        model, directory=directory, settings=talk.settings, mode="bypass", clock=talk.clock.now
    )
    talk.engine = agent.engine
    window = agent.engine.fullness().window
    talk.found.wrong_windows += window.limit_tokens != talk.window
    async for event in agent.run("Go through all modules and list what is odd."):
        if isinstance(event, Stopped) and event.reason != "completed":
            talk.found.end = f"{event.reason}: {event.detail[:120]}"
            talk.found.ended_with_room += 1
    history = list(agent.engine.view.history)
    bill = talk.simulator.simulation.stats.to_json()["requests"]
    for kind, one in zip(talk.wire.kinds, bill, strict=False):
        prompt = one["read_tokens"] + one["write_5m_tokens"] + one["write_1h_tokens"]
        prompt += one["uncached_tokens"]
        talk.found.calls += kind == "main"
        talk.found.past_calls += (
            kind == "main" and name == "files" and prompt > 1.25 * window.auto_tokens
        )
    await agent.close()
    return history


def _agent_plan(talk: Talk, done: Iterator[int], count: int, name: str) -> Callable[..., Any]:
    shown: set[str] = set()

    def plan(request: Any) -> BrainAnswer:
        n = next(done)
        whole = json.dumps(request.messages)
        talk.check_results(whole)
        if name == "reads":
            if n == 0:
                uses = [tool_use("Read", {"file_path": f"m{i}.py"}) for i in range(count)]
                return BrainAnswer(blocks=tuple(uses))
            return BrainAnswer(blocks=(text("Reviewed."),))
        if n:
            files = {f"m{i}.py" for i in range(n)}
            seen = {one for one in files if one in whole}
            shown.update(files - seen)
            talk.found.calls_repeated = len(shown)
            share = len(seen) / len(files)
            talk.found.open_turn_visible_share = min(talk.found.open_turn_visible_share, share)
        if n >= count:
            return BrainAnswer(blocks=(text("Done."),))
        thought = () if talk.is_chat else (thinking(prose(n, 40)),)
        use = tool_use("Read", {"file_path": f"m{n}.py"})
        return BrainAnswer(blocks=(*thought, text("Next."), use))

    return plan


Play = Callable[[Talk], Awaitable[None]]
SITUATIONS: dict[str, tuple[Play | None, tuple[str, ...], tuple[str, ...]]] = {
    "long": (long_work, MODELS, ("prepare", "follow", "gateway")),
    "reads": (None, MODELS, ("agent",)),
    "pasted": (pasted, MODELS, ("prepare",)),
    "specification": (specification, MODELS, ("prepare",)),
    "files": (None, MODELS, ("agent",)),
    "pdf": (pdf, CLAUDE, ("prepare",)),
    "images": (images, ("claude-sonnet-4-5",), ("prepare",)),
    "pinned": (pinned, CLAUDE, ("prepare",)),
    "second": (large_second, CLAUDE, ("prepare",)),
    "undo": (undo, (*CLAUDE, "gpt-6-sol"), ("prepare",)),
    "partial": (partial, (*CLAUDE, "gpt-6-sol"), ("prepare",)),
    "reordered": (reordered, CLAUDE, ("follow",)),
    "pauses": (pauses, (*CLAUDE, "gpt-6-sol"), ("prepare",)),
    "thinking": (thinking_work, ("claude-sonnet-5-5",), ("prepare",)),
}
"""How each is played, by which models and in which ways."""
PRICED = "claude-opus-5"
PRICED_ANYWAY = {"images": "claude-sonnet-4-5", "thinking": "claude-sonnet-5-5"}


def without(rule: str) -> Settings:
    plain = Settings()
    match rule:
        case "clear":
            return replace(plain, clear=replace(plain.clear, on=False))
        case "notes":
            return replace(plain, notes=replace(plain.notes, on=False))
        case _:
            return replace(plain, window=replace(plain.window, auto_line=""))


RULES = ("clear", "notes", "cost threshold")


async def play(name: str, model: str, way: str, settings: Settings) -> Found:
    action = SITUATIONS[name][0]
    talk = Talk(model=model, way=way, settings=settings)
    options = SimulatorSettings(
        accepts_unknown_models=True, document_tokens=60_000, image_tokens=100
    )
    with temporary_home() as home, run_simulator(talk.wire, options, talk.clock) as simulator:
        directory = home / "project"
        directory.mkdir()
        history: Any = []
        with talk.stack:
            talk.open(directory, simulator)
            try:
                if action is None:
                    history = await agent_work(talk, directory, name)
                else:
                    await action(talk)
            except (LongholdError, anthropic.APIStatusError, openai.APIStatusError) as error:
                talk.found.end = f"{type(error).__name__}: {str(error)[:120]}"
                talk.found.ended_with_room += 1
            if talk.session is not None:
                wrong = talk.session.fullness().window.limit_tokens != talk.window
                talk.found.wrong_windows += wrong
                history = list(talk.session.view.history)
            await talk.client.close()
        return talk.finish(history)


def summarise(found: dict[str, Found]) -> dict[str, Any]:
    every = list(found.values())

    def total(name: str) -> Any:
        return sum(getattr(one, name) for one in every)

    usd, compactions, calls = total("usd"), total("compactions"), total("calls")
    return {
        "unread_lost": total("unread_lost"),
        "unread_too_large": total("unread_too_large"),
        "calls_repeated": total("calls_repeated"),
        "open_turn_visible_share": round(min(one.open_turn_visible_share for one in every), 3),
        "user_words_lost": total("user_words_lost"),
        "past_threshold_share": round(total("past_calls") / max(1, calls), 4),
        "ended_with_room": total("ended_with_room"),
        "model_summary_share": round(total("model_summaries") / compactions, 3)
        if compactions
        else 1.0,
        "live_tokens_rewritten": total("live_tokens_rewritten"),
        "paid_unused_share": round(total("unused_usd") / usd, 4) if usd else 0.0,
        "wrong_windows": total("wrong_windows"),
        "usd": round(usd, 4),
    }


def main() -> None:
    parser = make_parser(__doc__ or "")
    parser.add_argument("--only", choices=sorted(SITUATIONS), action="append", default=[])
    parser.add_argument("--model", choices=MODELS, default="")
    parser.add_argument("--no-rules", action="store_true", help="leave out the runs without rules")
    options = parser.parse_args()
    began = time.perf_counter()
    found: dict[str, Found] = {}
    money: dict[str, dict[str, float]] = {}
    for name, (_, models, ways) in SITUATIONS.items():
        if options.only and name not in options.only:
            continue
        for model in models:
            for way in ways:
                is_theirs = model.startswith("claude") or way in ("prepare", "agent")
                if options.model in ("", model) and is_theirs:
                    key = f"{name}.{model}.{way}"
                    found[key] = asyncio.run(play(name, model, way, Settings()))
        priced = PRICED_ANYWAY.get(name, PRICED)
        if options.model in ("", priced) and not options.no_rules:
            money[name] = {"default": round(found[f"{name}.{priced}.{ways[0]}"].usd, 4)}
            for rule in RULES:
                one = asyncio.run(play(name, priced, ways[0], without(rule)))
                money[name][rule] = round(one.usd, 4)
    runs = {key: {k: v for k, v in vars(one).items() if v} for key, one in found.items()}
    result = summarise(found) | {"usd_without": money, "runs": runs}
    print_result(result | {"seconds": round(time.perf_counter() - began, 1)}, options.json)


if __name__ == "__main__":
    main()
