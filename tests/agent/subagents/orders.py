"""Orders for tests, and a mailer's way to agents that must not be used."""

from pathlib import Path

from longhold.agent.subagents.definition import Definition
from longhold.agent.subagents.order import Order
from longhold.core.log.log import agent_log


def order(name, id="general-1", task=""):
    """An order of a teammate."""
    definition = Definition(name="general", description="d", prompt="p")
    return Order(
        id=id,
        definition=definition,
        prompt="p",
        log=agent_log(Path("x.jsonl")),
        name=name,
        task=task,
        is_teammate=True,
    )


async def not_resumed(agent):
    raise AssertionError(f"{agent} was resumed")
