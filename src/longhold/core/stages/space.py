"""Carry out the plans of `decide` before a call. No step is repeated, so this always ends.

Some models bind thinking to its exact prefix. Changing the prefix drops all later thinking, which a
running tool loop still needs. The change therefore waits, but only up to a certain size.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, ClassVar

from longhold.core.log.entries import Failed
from longhold.core.messages import is_thought
from longhold.core.models.capabilities import capabilities
from longhold.core.policy.decide import (
    ENDS,
    Lost,
    Situation,
    SpaceDecision,
    Step,
    decide,
    steps_after,
)
from longhold.core.turn.engine import STOPS, Engine
from longhold.core.view import View
from longhold.core.view.items import Round


class Part:
    """A layer. As a stage it runs alone, and in `Layers` it runs with the others."""

    steps: ClassVar[tuple[Step, ...]] = ()

    async def __call__(self, engine: Engine) -> None:
        await free_space(engine, (self,))

    def observe(self, engine: Engine) -> None:
        """Read new log entries before a preparation."""

    def facts(self, engine: Engine) -> dict[str, Any]:
        """Return this layer's fields of the situation, without visible side effects."""
        return {}

    async def carry_out(self, engine: Engine, decision: SpaceDecision) -> None:
        raise NotImplementedError

    def finish(self, engine: Engine) -> None:
        """End a preparation, with or without changes."""


def look(engine: Engine, parts: Iterable[Part], taken: Iterable[Step] = ()) -> Situation:
    facts = {name: fact for part in parts for name, fact in part.facts(engine).items()}
    return Situation(
        full=engine.fullness(),
        settings=engine.settings,
        taken=frozenset(taken),
        is_thinking=partial(is_bound, engine),
        **facts,
    )


def foresee(engine: Engine, parts: Sequence[Part]) -> SpaceDecision:
    """Return the decision for the current state without carrying it out."""
    return decide(look(engine, parts), [step for part in parts for step in part.steps])


async def free_space(engine: Engine, parts: Sequence[Part]) -> None:
    """Carry out the decisions before a call. If a step fails, record that and try the next."""
    for part in parts:
        part.observe(engine)
    owners = {step: part for part in parts for step in part.steps}
    steps, taken, lost = tuple(owners), list[Step](), list[Lost]()
    while steps:
        decision = _decide(engine, look(engine, parts, taken), steps)
        if decision is None:
            steps = steps[1:]
            continue
        lost += [one for one in decision.lost if one not in lost]
        if decision.step is None:
            break
        act = partial(owners[decision.step].carry_out, decision=decision._replace(lost=tuple(lost)))
        await engine.run_stage(act)
        if isinstance(decision.plan, ENDS):
            break
        taken.append(decision.step)
        steps = steps_after(decision.step, steps)
    for part in parts:
        part.finish(engine)


def _decide(engine: Engine, situation: Situation, steps: Sequence[Step]) -> SpaceDecision | None:
    try:
        return decide(situation, steps)
    except STOPS:
        raise
    except Exception as error:  # noqa: BLE001 - a bug in one layer must not end a session
        said = f"{type(error).__name__}: {error}"
        engine.record(Failed(what=f"deciding on {steps[0]}", error=said))
        return None


THOUGHTFUL_ROUNDS = 64  # number of rounds searched for thinking


def drops_thinking(engine: Engine) -> bool:
    """Return whether changing an earlier message would drop the thinking after it."""
    return capabilities(engine.model).binds_thinking


def is_bound(engine: Engine) -> bool:
    """Return whether a running tool loop has thinking that a change would drop."""
    return drops_thinking(engine) and _is_thinking_in_loop(engine.view)


def may_move(engine: Engine) -> bool:
    if not is_bound(engine):
        return True
    full = engine.fullness()
    return full.used_tokens >= full.wait_tokens or full.is_blocked


def _is_thinking_in_loop(view: View) -> bool:
    for item in islice(reversed(view.items), THOUGHTFUL_ROUNDS):
        if isinstance(item, Round):
            if not item.tool_uses():
                return False
            if not item.drops_thinking and any(map(is_thought, item.content)):
                return True
        elif item.is_asked():
            return False
    return False
