"""The cache against a second, naive implementation written straight from the published rules.

The naive implementation shares no code with the simulator: it keeps whole prefixes instead of
hashes, walks every list, and counts tokens with the encoder itself. Both must bill every request of
random sessions the same.
"""

import copy
import importlib
import json
import warnings

from hypothesis import given, settings
from hypothesis import strategies as st

from longhold.core.request.billing.api_request import Caller, parse_request
from longhold.core.request.billing.cache import PromptCache
from longhold.core.request.billing.preparation import Workbench, prepare
from longhold.core.request.billing.tokens import BillingSettings

SETTINGS = BillingSettings(accepts_foreign_thinking=True)
CALLER_VERSION = "2023-06-01"

MINIMUM = {"claude-opus-5": 512, "claude-sonnet-4-6": 1024, "claude-sonnet-4-5": 1024}
SCALE = {"claude-opus-5": 1.3, "claude-sonnet-4-6": 1.0, "claude-sonnet-4-5": 1.0}
STRIPS = {"claude-sonnet-4-5"}
SECONDS = {"5m": 300, "1h": 3600}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    O200K = importlib.import_module("bpe_openai").get_encoding("o200k_base")


class Naive:
    """Entries as dictionaries in a list, compared prefix by prefix."""

    def __init__(self):
        self.entries = []

    def ask(self, body, workspace, now):
        """Bill one request; returns the tokens and a function that makes its writes readable."""
        positions = self.positions(body)
        prefixes = [[p["key"] for p in positions[: i + 1]] for i in range(len(positions))]
        sums = []
        for position in positions:
            sums.append(position["tokens"] + (sums[-1] if sums else 0))
        minimum = MINIMUM[body["model"]]
        marked = [i for i, p in enumerate(positions) if p["ttl"] and sums[i] >= minimum]

        def entry_at(index):
            for entry in self.entries:
                same = (entry["workspace"], entry["model"]) == (workspace, body["model"])
                if same and entry["prefix"] == prefixes[index] and entry["expires"] > now:
                    return entry
            return None

        hits = set()
        for index in marked:
            for checked in range(20):
                if index - checked >= 0 and entry_at(index - checked):
                    hits.add(index - checked)
        hit = max(hits, default=None)
        if hit is not None:
            found = entry_at(hit)
            found["expires"] = now + SECONDS[found["ttl"]]
        written = []
        for index in marked:
            present = entry_at(index) if hit is not None and index <= hit else None
            if present:
                present["expires"] = now + SECONDS[present["ttl"]]
            else:
                ttl = positions[index]["ttl"]
                written.append(
                    {
                        "workspace": workspace,
                        "model": body["model"],
                        "prefix": prefixes[index],
                        "ttl": ttl,
                        "expires": now + SECONDS[ttl],
                    }
                )
        a = 0 if hit is None else sums[hit]
        after = [i for i in marked if hit is None or i > hit]
        hours = [i for i in after if positions[i]["ttl"] == "1h"]
        b = sums[max(hours)] if hours else a
        c = sums[max(after)] if after else b
        total = sums[-1]
        return (a, c - b, b - a, total - c), lambda: self.entries.extend(written)

    def positions(self, body):
        """List tools, web tools, system and messages with what each one's key depends on."""
        blocks = [b for m in body["messages"] for b in m["content"]]
        choice = body.get("tool_choice", {"type": "auto"})
        tools_key = ["model", body["model"]]
        system_key = [
            any(b["type"] == "document" and b.get("citations") for b in blocks),
            body.get("speed", "standard"),
        ]
        messages_key = [
            choice["type"],
            choice.get("name"),
            choice.get("disable_parallel_tool_use", False),
            any(b["type"] == "image" for b in blocks),
            self.thinking(body),
            body.get("output_config", {}).get("effort", "high"),
        ]
        tools = body.get("tools", [])
        early, middle = [tools_key], [tools_key, system_key]
        late = [tools_key, system_key, messages_key]
        listed = [(early, "tool", t) for t in tools if "type" not in t]
        listed += [(middle, "web", t) for t in tools if "type" in t]
        listed += [(middle, "system", b) for b in body.get("system", [])]
        listed += [(late, r, b) for r, b in self.shown(body)]
        found = []
        for salt, role, block in listed:
            plain = {k: v for k, v in block.items() if k != "cache_control"}
            control = block.get("cache_control")
            found.append(
                {
                    "key": json.dumps([*salt, role, plain]),
                    "tokens": self.tokens(plain, SCALE[body["model"]]),
                    "ttl": control.get("ttl", "5m") if control else None,
                }
            )
        if "cache_control" in body:
            found[-1]["ttl"] = found[-1]["ttl"] or body["cache_control"].get("ttl", "5m")
        return found

    def thinking(self, body):
        """Absent thinking is disabled on all models used here."""
        config = body.get("thinking", {"type": "disabled"})
        return [config["type"], config.get("budget_tokens")]

    def shown(self, body):
        """Some models never see thinking from before the last real user message."""
        last = 0
        for index, message in enumerate(body["messages"]):
            if message["role"] == "user" and any(
                b["type"] != "tool_result" for b in message["content"]
            ):
                last = index
        for index, message in enumerate(body["messages"]):
            for block in message["content"]:
                is_old = block["type"] == "thinking" and index < last
                if not (is_old and body["model"] in STRIPS):
                    yield message["role"], block

    def tokens(self, block, scale):
        """Three tokens of framing, plus the text; images have a fixed price."""
        match block.get("type"):
            case "text":
                count = len(O200K.encode_ordinary(block["text"]))
            case "thinking":
                count = len(O200K.encode_ordinary(block["thinking"]))
            case "tool_use":
                arguments = json.dumps(block["input"], separators=(",", ":"))
                count = len(O200K.encode_ordinary(f"{block['name']} {arguments}"))
            case "tool_result":
                count = len(O200K.encode_ordinary(block["content"]))
            case "image":
                count = 1600
            case "document":
                count = len(O200K.encode_ordinary(block["source"]["data"]))
            case _:
                count = len(O200K.encode_ordinary(json.dumps(block, separators=(",", ":"))))
        return int(count * scale) + 3


def words(count, salt):
    """Text of about as many tokens as words."""
    return " ".join(f"word{salt}" if i % 7 == 0 else "and" for i in range(count))


TOOLS = [
    {"name": n, "description": words(c, n), "input_schema": {"type": "object"}}
    for n, c in (("Read", 30), ("Grep", 400), ("Bash", 700))
]
WEB = {"type": "web_search_20250305", "name": "web_search"}
SYSTEMS = [[], [30], [600, 20], [1200]]
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def document(cites):
    """A text document, with or without citations."""
    block = {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "d"},
    }
    return {**block, "citations": {"enabled": True}} if cites else block


sizes = st.sampled_from([3, 40, 300, 700])
places = st.sampled_from([0, 1, 2, 3, -1, -1, -1, -2, -20, 5, 11, 29])


@st.composite
def session_steps(draw):
    """A random session: growth, edits, settings, waits and requests, in any order."""
    kinds = ("say", "many", "loop", "edit", "cut", *["wait"] * 3, *["send"] * 6)
    steps = []
    for _ in range(draw(st.integers(4, 25))):
        kind = draw(st.sampled_from(kinds))
        steps.append((kind, draw(_arguments(kind))))
    return [*steps, ("send", draw(_arguments("send")))]


def _arguments(kind):
    match kind:
        case "say":
            return st.tuples(sizes, sizes, st.booleans(), st.integers(0, 3))
        case "many":
            return st.tuples(st.integers(16, 20), st.integers(0, 1))
        case "loop":
            return st.tuples(sizes, st.booleans())
        case "edit" | "cut":
            return st.integers(0, 30)
        case "wait":
            return st.sampled_from([1, 200, 200, 299, 300, 301, 2000, 3599, 3600])
        case _:
            return st.tuples(
                st.lists(places, max_size=4, unique=True),
                st.integers(0, 4),
                st.sampled_from([None, None, "5m", "1h"]),
                st.booleans(),
                st.sampled_from(["a", "a", "a", "b"]),
                st.lists(st.sampled_from(SWITCHES), max_size=1),
            )


SWITCHES = [
    ("model", "claude-opus-5"), ("model", "claude-sonnet-4-6"), ("model", "claude-sonnet-4-5"),
    ("tools", 0), ("tools", 1), ("tools", 3), ("web", True), ("web", False),
    ("system", 0), ("system", 1), ("system", 2), ("system", 3),
    ("tool_choice", None), ("tool_choice", {"type": "auto"}), ("tool_choice", {"type": "none"}),
    ("tool_choice", {"type": "auto", "disable_parallel_tool_use": True}),
    ("speed", None), ("speed", "fast"), ("effort", None), ("effort", "high"), ("effort", "low"),
    ("thinks", None), ("thinks", "off"), ("thinks", "some"), ("thinks", "much"),
    ("image", True), ("image", False), ("cites", True), ("cites", False),
]  # fmt: skip


class Session:
    """The client's side: a history and settings from which bodies are made."""

    def __init__(self):
        self.messages = [{"role": "user", "content": [{"type": "text", "text": words(400, "0")}]}]
        self.set = {"model": "claude-opus-5", "tools": 1, "system": 2, "cites": False}
        self.uses = 0

    def step(self, kind, arguments):
        """Grow, edit or cut the history; it always ends with the user."""
        match kind:
            case "say":
                answer, question, thinks, salt = arguments
                thinking = {"type": "thinking", "thinking": words(60, salt), "signature": "x"}
                said = {"type": "text", "text": words(answer, salt)}
                self.add("assistant", [thinking, said] if thinks else [said])
                self.add("user", [{"type": "text", "text": words(question, salt)}])
            case "many":
                count, salt = arguments
                self.add("assistant", [{"type": "text", "text": "fine"}])
                self.add("user", [{"type": "text", "text": f"{salt} {i}"} for i in range(count)])
            case "loop":
                size, thinks = arguments
                self.uses += 1
                name = f"toolu_{self.uses}"
                thinking = {"type": "thinking", "thinking": words(50, "t"), "signature": "x"}
                use = {"type": "tool_use", "id": name, "name": "Read", "input": {"p": size}}
                self.add("assistant", [thinking, use] if thinks else [use])
                result = {"type": "tool_result", "tool_use_id": name, "content": words(size, "r")}
                self.add("user", [result])
            case "edit":
                chosen = self.messages[arguments % len(self.messages)]["content"][0]
                if chosen["type"] == "text":
                    chosen["text"] += " edited"
            case "cut":
                keep = 1 + 2 * (arguments % ((len(self.messages) + 1) // 2))
                self.messages = self.messages[:keep]

    def add(self, role, content):
        """Append a message."""
        self.messages.append({"role": role, "content": content})

    def body(self, marks, long_count, automatic):
        """Build the request with its markers, one-hour ones first."""
        body = {"model": self.set["model"], "max_tokens": 9000, "messages": self.content()}
        tools = copy.deepcopy(TOOLS[: self.set["tools"]])
        if self.set.get("web"):
            tools.insert(len(tools) // 2, dict(WEB))
        if tools:
            body["tools"] = tools
        if texts := SYSTEMS[self.set["system"]]:
            body["system"] = [{"type": "text", "text": words(n, "s")} for n in texts]
        self.parameters(body)
        slots = [t for t in tools if "type" not in t] + [t for t in tools if "type" in t]
        slots += body.get("system", [])
        slots += [b for m in body["messages"] for b in m["content"] if b["type"] != "thinking"]
        if automatic:
            slots, marks = slots[:-1], marks[:3]
        chosen = sorted({mark % len(slots) for mark in marks}) if slots else []
        if automatic == "1h":
            long_count = 4
        for number, index in enumerate(chosen):
            ttl = "1h" if number < long_count else "5m"
            slots[index]["cache_control"] = {"type": "ephemeral", "ttl": ttl}
        if automatic:
            body["cache_control"] = {"type": "ephemeral", "ttl": automatic}
        return body

    def content(self):
        """Copy the messages, with the image and the document if they are switched on."""
        messages = copy.deepcopy(self.messages)
        if self.set.get("image"):
            messages[0]["content"].append(copy.deepcopy(IMAGE))
        messages[0]["content"].append(document(self.set["cites"]))
        return messages

    def parameters(self, body):
        """Set what does not belong to the history."""
        for name in ("tool_choice", "speed"):
            if self.set.get(name) is not None:
                body[name] = self.set[name]
        if self.set.get("effort"):
            body["output_config"] = {"effort": self.set["effort"]}
        mode = self.set.get("thinks")
        if mode == "off":
            body["thinking"] = {"type": "disabled"}
        elif mode and body["model"] == "claude-opus-5":
            body["thinking"] = {"type": "adaptive"}
        elif mode:
            budget = 2000 if mode == "some" else 4000
            body["thinking"] = {"type": "enabled", "budget_tokens": budget}


@settings(max_examples=settings.default.max_examples * 5 // 2, deadline=None)
@given(session_steps())
def test_both_implementations_bill_alike(steps):
    cache, naive, session = PromptCache(), Naive(), Session()
    now, pending = 1_000_000.0, []
    for kind, arguments in steps:
        if kind == "wait":
            now += arguments
        elif kind != "send":
            session.step(kind, arguments)
        else:
            marks, long_count, automatic, is_answered_at_once, workspace, switches = arguments
            session.set.update(switches)
            body = session.body(marks, long_count, automatic)
            expected, make_readable = naive.ask(body, workspace, now)
            request = parse_request(json.dumps(body).encode())
            caller = Caller(workspace=workspace, version=CALLER_VERSION)
            prepared = prepare(request, caller, BENCH)
            minimum = prepared.able.cache_minimum_tokens
            plan = cache.look_up(prepared.prompt, workspace, minimum, now)
            assert _billed(plan) == expected
            pending.append((plan, make_readable))
            if is_answered_at_once:
                for begun, readable in pending:
                    cache.commit(begun, now)
                    readable()
                pending = []


def _billed(plan):
    return plan.read_tokens, plan.write_5m_tokens, plan.write_1h_tokens, plan.uncached_tokens


BENCH = Workbench(SETTINGS)  # counts are pure: sharing the memo only saves time
