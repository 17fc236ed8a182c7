"""The system prompt of an agent: its definition, and what it must know about where it works.

It is frozen with the first request. It contains no time and nothing random, so agents of one kind
in one place share it.
"""

from collections.abc import Sequence
from pathlib import Path

from holdfast.agent.subagents.names import LEAD
from holdfast.agent.subagents.order import Order
from holdfast.tools.skills import Skill


def briefing(
    order: Order,
    root: Path,
    *,
    pad: Path,
    skills: Sequence[Skill] = (),
    memory: str = "",
    is_planning: bool = False,
) -> str:
    parts = (
        order.definition.prompt,
        _place(order, root, pad),
        _team(order),
        _plan() if order.is_teammate and is_planning else "",
        *(f"# {skill.name}\n\n{skill.body}" for skill in skills),
        memory,
    )
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _place(order: Order, root: Path, pad: Path) -> str:
    lines = [
        "# Where you work",
        "",
        f"Your directory is {root}. Notes and other files that do not belong to the project, also "
        f"those that other agents should find, go to {pad}.",
    ]
    if order.tree is not None:
        lines.append(
            f"It is a git worktree of your own, on the branch {order.tree.record.branch}. Paths you are "
            f"given in {order.tree.record.repository} mean the same files here. Change nothing there. "
            "Commit here what is to be kept."
        )
    return "\n".join(lines)


def _team(order: Order) -> str:
    if not order.is_teammate:
        return ""
    return (
        f"# Your team\n\nYou are {order.called}, in a team that {LEAD!r} leads. Your answer goes "
        "nowhere by itself: tell the others what they need with SendMessage. When you have "
        "answered you wait for mail; shared tasks are found with TaskList. Asked to shut down, "
        "agree with SendMessage as soon as nothing is left half done."
    )


def _plan() -> str:
    return (
        f"# Your plan\n\nYou are in plan mode: you can read and search, and change nothing. Work out "
        f"a plan, send it to {LEAD!r} with SendMessage and a message of type plan_request, and end "
        "your answer. Begin once it is approved; if it is not, change it and send it again."
    )
