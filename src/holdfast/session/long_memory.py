"""Long-term memory in a program's session: what is recalled before a call, and learnt after it.

The jobs are the agent's. Their forks use the program's client and, of the tools, only `memory`: a
program runs its own tools itself.
"""

from collections.abc import Callable
from pathlib import Path

from holdfast.log.entries import Section
from holdfast.memory.jobs import MemoryJobs
from holdfast.settings import home
from holdfast.turn.background import Background
from holdfast.turn.engine import Engine
from holdfast.turn.fork import AskFork

SECTION = "long-term memory"
"""The section of the system prompt that says how to use it, and what there is."""


def memory_over(
    engine: Engine,
    ask: AskFork | None,
    background: Background,
    notify: Callable[[str], None],
    clock: Callable[[], float],
) -> MemoryJobs:
    """Give a session the memories of its directory; without `ask` they are recalled by words."""
    return MemoryJobs(
        engine=engine,
        root=Path(engine.log.header.directory or "."),
        home=home(),
        ask=ask,
        unasked=None,
        background=background,
        notify=notify,
        caller="chat",  # somebody wants it: what a chat does by default is done
        clock=clock,
    )


def with_memory(
    sections: tuple[Section, ...], before: tuple[Section, ...], memory: MemoryJobs | None
) -> tuple[Section, ...]:
    """Add what the prompt says about memory, as it was said `before`, so that the prompt is stable."""
    if memory is None:
        return sections
    said = [section for section in before if section.name == SECTION]
    return (*sections, *(said or [Section(name=SECTION, text=memory.section())]))
