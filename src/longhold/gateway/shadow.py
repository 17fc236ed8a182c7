"""Compares the cost of calls with the cost of the client's unmodified requests.

For each session, the simulator's cache processes both versions. The cost difference, scaled to the
billed tokens, is the saving. A miss caused by the provider affects both versions and cancels out.
Tokens are estimated, because only proportions matter and loading an encoding takes time.
"""

from array import array
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import msgspec
from msgspec import structs

from longhold.core.messages import JsonObject, Usage
from longhold.core.messages.usage import Tally, add_fields
from longhold.core.models.capabilities import capabilities
from longhold.core.models.prices import price_call
from longhold.core.request.billing.api_request import Caller, parse_request
from longhold.core.request.billing.cache import CachePlan, PrefixCache, PromptCache
from longhold.core.request.billing.preparation import PreparedPrompt, Workbench, prepare
from longhold.core.request.billing.tokens import BillingSettings
from longhold.core.view.tokens import estimate_tokens
from longhold.gateway.decisions import PricedDecision
from longhold.gateway.endpoints import ApiEndpoint

MEMO_BLOCKS, MEMO_CHARS = 50_000, 10_000_000
"""Enough for about twenty active sessions, with a fifth of the simulator's memory."""


MOST_SESSIONS = 1_000
"""The limit for sessions with separate figures. The figures of all other sessions are summed."""
EARLIER = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledCall:
    session: str
    model: str
    endpoint: ApiEndpoint
    given: bytes
    sent: bytes
    usage: Usage
    betas: tuple[str, ...] = ()
    decisions: tuple[PricedDecision, ...] = ()
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBill:
    tally: Tally = field(default_factory=Tally)
    """`unpriced_calls` counts calls without a known price or a shadow."""
    changed_calls: int = 0
    shadow_usd: float = 0.0

    @property
    def saved_usd(self) -> float:
        """Return the saving, which is negative if the gateway made the session more expensive."""
        return self.shadow_usd - self.tally.usd

    def __add__(self, other: "SessionBill") -> "SessionBill":
        return add_fields(self, other)

    def to_json(self) -> JsonObject:
        return {
            "calls": self.tally.calls,
            "changed_calls": self.changed_calls,
            "unpriced_calls": self.tally.unpriced_calls,
            "billed_usd": self.tally.usd,
            "shadow_usd": self.shadow_usd,
            "saved_usd": self.saved_usd,
            "cache_read_ratio": self.tally.hit_share,
        }


@dataclass(slots=True, kw_only=True)
class DecisionPeriod:
    """The calls between two decisions, with predicted and actual savings."""

    entries: tuple[int, ...]
    """Log entries that begin the period, or () if an undo began it."""
    in_force: tuple[PricedDecision, ...]
    calls: int = 0
    predicted_usd: float = 0.0
    saved_usd: float = 0.0

    def add(self, saved_usd: float) -> None:
        """Count a call. The first call bears the cost of the new decisions."""
        new = self.entries if self.calls == 0 else ()
        self.calls += 1
        self.saved_usd += saved_usd
        for one in self.in_force:
            self.predicted_usd += -one.cost_usd if one.n in new else one.saves_usd

    def to_json(self) -> JsonObject:
        kinds = {one.n: one.kind for one in self.in_force}
        return {
            "entries": list(self.entries),
            "kinds": sorted({kinds[n] for n in self.entries}),
            "calls": self.calls,
            "predicted_usd": self.predicted_usd,
            "saved_usd": self.saved_usd,
        }


class Shadow:
    """Runs the caches in one thread, in the order of the answers."""

    def __init__(self) -> None:
        settings = BillingSettings(
            accepts_foreign_thinking=True,
            enforces_binding=False,
            token_memo_blocks=MEMO_BLOCKS,
            text_memo_chars=MEMO_CHARS,
        )
        self._bench = Workbench(settings, estimate_tokens)
        self._cache = PromptCache()
        self._prefixes = PrefixCache()
        self._bills: dict[str, SessionBill] = {}
        self._periods: dict[str, list[DecisionPeriod]] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="longhold-shadow")

    def account(self, call: BilledCall) -> None:
        self._thread.submit(self._account, call)

    def bills(self) -> dict[str, SessionBill]:
        """Return the bill of each session. Wait for all calls submitted so far."""
        return self._thread.submit(lambda: dict(self._bills)).result()

    def periods(self) -> dict[str, list[DecisionPeriod]]:
        return self._thread.submit(
            lambda: {id: [replace(one) for one in many] for id, many in self._periods.items()}
        ).result()

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _account(self, call: BilledCall) -> None:
        tally = price_call(call.model, call.usage)
        shadow = tally.usd
        try:
            shadow += self._difference_usd(call)
        except Exception:  # noqa: BLE001 - a request the simulator cannot read saved nothing
            tally = structs.replace(tally, unpriced_calls=1)
        bill = SessionBill(
            tally=tally, changed_calls=int(call.sent is not call.given), shadow_usd=shadow
        )
        self._bills[call.session] = self._bills.pop(call.session, SessionBill()) + bill
        if len(self._bills) > MOST_SESSIONS:
            oldest = next(id for id in self._bills if id != EARLIER)
            gone = self._bills.pop(oldest)
            self._bills[EARLIER] = self._bills.get(EARLIER, SessionBill()) + gone
            self._periods.pop(oldest, None)
        self._count_decisions(call, bill.saved_usd)

    def _count_decisions(self, call: BilledCall, saved_usd: float) -> None:
        periods = self._periods.setdefault(call.session, [])
        before = periods[-1].in_force if periods else ()
        if call.decisions != before:
            known = {one.n for one in before}
            entries = tuple(one.n for one in call.decisions if one.n not in known)
            periods.append(DecisionPeriod(entries=entries, in_force=call.decisions))
        if periods:
            periods[-1].add(saved_usd)

    def _difference_usd(self, call: BilledCall) -> float:
        if call.endpoint.dialect == "anthropic":
            given = self._prompt(call, call.given)
            sent = given if call.sent is call.given else self._prompt(call, call.sent)
            theirs = self._look_up(call, given, "given")
            ours = self._look_up(call, sent, "sent")
        else:
            theirs = self._match_prefix(call, call.given, "given")
            ours = self._match_prefix(call, call.sent, "sent")
        scale = call.usage.prompt_tokens / ours.prompt_tokens if ours.prompt_tokens else 1.0
        if theirs.prompt_tokens * scale > capabilities(call.model).window_tokens:
            return 0.0  # the provider would have refused it, so nothing was saved
        return _prompt_usd(call.model, theirs, scale) - _prompt_usd(call.model, ours, scale)

    def _prompt(self, call: BilledCall, body: bytes) -> PreparedPrompt:
        caller = Caller(workspace="", version="", betas=frozenset(call.betas))
        return prepare(parse_request(body), caller, self._bench)

    def _match_prefix(self, call: BilledCall, body: bytes, side: str) -> CachePlan:
        """Look up a prompt in an automatic prefix cache, counting four bytes as a token."""
        raw = msgspec.json.decode(body)
        fields = ("tools", call.endpoint.system_field, call.endpoint.list_field)
        prompt = msgspec.json.encode([raw.get(field) for field in fields])
        tokens = array("I", prompt[: len(prompt) // 4 * 4])
        lives = capabilities(call.model).cache_seconds
        match = self._prefixes.look_up(f"{call.session} {side}", tokens, call.at, lives)
        self._prefixes.commit(match, call.at)
        fresh = match.prompt_tokens - match.cached_tokens
        is_written = call.usage.cache_write_tokens > 0
        return CachePlan(
            read_tokens=match.cached_tokens,
            write_5m_tokens=fresh if is_written else 0,
            uncached_tokens=0 if is_written else fresh,
        )

    def _look_up(self, call: BilledCall, prepared: PreparedPrompt, side: str) -> CachePlan:
        workspace = f"{call.session} {side}"
        minimum = prepared.able.cache_minimum_tokens
        plan = self._cache.look_up(prepared.prompt, workspace, minimum, call.at)
        self._cache.commit(plan, call.at)
        return plan


def _prompt_usd(model: str, plan: CachePlan, scale: float) -> float:
    return price_call(model, plan.usage(scale=scale)).usd
