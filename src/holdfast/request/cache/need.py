"""The price of information: what it costs, on average, that something is not in the view. Pure.

What is missing and needed takes a call to get again: it reads the whole prompt and writes what it
brings to the cache. Its weight says how many such calls a need is worth.
"""

from holdfast.models.prices import TOKENS_PER_PRICE
from holdfast.request.cache.cost_model import CostModel, step_at
from holdfast.settings import CostSettings
from holdfast.tools.protocol import ToolKind

GET_AGAIN_TOKENS = 150
"""Of an answer that calls a tool with a path or a command."""


def needed_rate(settings: CostSettings, kind: ToolKind, age_calls: int) -> float:
    """Estimate how often a result of this kind and age is needed again."""
    rates = {
        "read": settings.needed_read,
        "fetch": settings.needed_fetch,
        "shell": settings.needed_shell,
        "search": settings.needed_search,
    }
    return float(rates.get(kind, 0.0) * 0.5 ** (age_calls / settings.halving_calls))


def need_usd(
    costs: CostModel, prompt_tokens: float, tokens: float, settings: CostSettings
) -> float:
    """Price one need of so many tokens that the prompt lacks."""
    asking = GET_AGAIN_TOKENS * step_at(costs.listed, prompt_tokens).prices.output
    again = costs.call_usd(prompt_tokens + tokens, prompt_tokens) + asking / TOKENS_PER_PRICE
    return settings.need_weight * again
