"""Bills prompts with the simulator's tokens and cache, without an API.

Prompts are not validated. A replay also counts and bills prompts that exceed the window. Messages
that the previous prompt already contained are not measured again.
"""

from collections import Counter
from dataclasses import dataclass, field

from longhold.core.messages import JsonObject, Usage
from longhold.core.models.capabilities import capabilities
from longhold.core.models.protocol import Request
from longhold.core.request.billing.api_request import ApiMessage, ApiRequest
from longhold.core.request.billing.cache import PromptCache, SimulatorClock
from longhold.core.request.billing.edits import EditContext, apply_edits, edits_of
from longhold.core.request.billing.pieces import PieceMeter, PromptPiece, take_apart
from longhold.core.request.billing.prompt import chain_prompt, salts_of
from longhold.core.request.billing.thinking import strip_earlier_thinking
from longhold.core.request.billing.tokens import TokenCounter

FIELDS = frozenset(ApiRequest.__struct_fields__) - {"messages"}
WORKSPACE = "replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBill:
    usage: Usage
    moved: bool
    """Whether the prompt does not start with the whole previous prompt of the same source."""
    read_by: Counter[str] = field(default_factory=Counter)
    """Tokens read from the cache: `frame` (system prompt and tools), `results`, `text`."""
    cleared: frozenset[str] = frozenset()
    """Tool uses whose results the provider cleared on request."""


class PromptBiller:
    def __init__(self, clock: SimulatorClock, counter: TokenCounter, density: float = 1.0) -> None:
        """`density` is the number of the provider's tokens per simulator token."""
        self._counter = counter
        self._clock = clock
        self._density = density
        self._cache = PromptCache()
        self._model = ""
        self._known: list[tuple[JsonObject, list[PromptPiece]]] = []
        self._ends: dict[str, tuple[int, bytes]] = {}
        """The number of pieces in each source's last prompt, and their hash."""

    def bill(self, request: Request, source: str = "main") -> PromptBill:
        """Bill a prompt and make its cache writes readable."""
        asked = ApiRequest(
            messages=[], **{name: value for name, value in request.kwargs.items() if name in FIELDS}
        )
        able = capabilities(asked.model)
        if able.model != self._model:
            self._known.clear()
            self._model = able.model
        measure = PieceMeter(self._counter, able.tokenizer_scale * self._density)
        sent = take_apart(asked, measure)
        for index, message in enumerate(request.kwargs["messages"]):
            known = self._known[index] if index < len(self._known) else None
            is_known = known is not None and known[0] is message
            sent += known[1] if known and is_known else self._pieces(index, message, measure)
        read = strip_earlier_thinking(sent, able)
        edits = edits_of(asked.context_management)
        edited, _ = apply_edits(read, edits, EditContext(able, measure))
        prompt = chain_prompt(edited, salts_of(asked, edited, able), frozenset())
        now = self._clock.now()
        plan = self._cache.look_up(prompt, WORKSPACE, able.cache_minimum_tokens, now)
        self._cache.commit(plan, now)
        count, end = self._ends.get(source, (0, b""))
        moved = bool(count) and (len(prompt.chain) < count or prompt.chain[count - 1] != end)
        self._ends[source] = len(prompt.chain), prompt.chain[-1]
        return PromptBill(
            usage=plan.usage(),
            moved=moved,
            read_by=_split_read(edited, plan.read_tokens),
            cleared=_find_cleared(read, edited),
        )

    def _pieces(self, index: int, message: JsonObject, measure: PieceMeter) -> list[PromptPiece]:
        blocks = ApiMessage(message["role"], message["content"]).blocks()
        role = str(message["role"])
        pieces = [
            measure.piece("messages", role, block, (index, place))
            for place, block in enumerate(blocks)
        ]
        self._known[index : index + 1] = [(message, pieces)]
        return pieces


def _split_read(pieces: list[PromptPiece], tokens: int) -> Counter[str]:
    found = Counter[str]()
    for piece in pieces:
        if tokens <= 0:
            break
        kind = "results" if piece.type == "tool_result" else "text"
        share = min(piece.tokens, tokens)
        found["frame" if piece.tier != "messages" else kind] += share
        tokens -= share
    return found


def _find_cleared(read: list[PromptPiece], edited: list[PromptPiece]) -> frozenset[str]:
    return frozenset(
        str(after.block["tool_use_id"])
        for before, after in zip(read, edited, strict=False)
        if after is not before and after.type == "tool_result"
    )
