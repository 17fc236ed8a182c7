"""What a provider cleared on its side, read back from its answer.

It gives counts and tokens for each prompt, so which results it meant is inferred: the oldest, as
its rule says. Out comes a plan for what is new in it, with the line for the user.
"""

from collections.abc import Iterator

from holdfast.log.entries import Framed, Replied
from holdfast.messages import ToolUse
from holdfast.request.server_side import cleared_count, edits_in
from holdfast.stages.clear.candidates import Batch, Candidate, sent_measure, weight
from holdfast.stages.clear.policy import ClearPlan, counted_results, usd
from holdfast.stages.clear.snapshot import Snapshot
from holdfast.tools.describe import Describe
from holdfast.view import View
from holdfast.view.items import Result, Round


def server_clears(view: View, frame: Framed, answer: Replied, describe: Describe) -> Batch:
    """Infer which results the provider newly cleared from the prompt of an answer."""
    excluded = {
        name for edit in edits_in(frame.options) for name in edit.get("exclude_tools") or ()
    }
    left, found = cleared_count(answer.applied), Batch()
    for item, use, result in _called_before(view, answer):
        if left <= 0:
            break
        if use.name in excluded:
            continue
        left -= 1
        if result is not None and result.cleared is None:
            tool = describe(use.name)
            found.add(
                Candidate(
                    result=result,
                    use=use,
                    tool=tool,
                    order=item.order,
                    weight=weight(sent_measure(result)),
                    before=0.0,
                    paths=tool.paths_in(use.input),
                )
            )
    return found


def _called_before(view: View, answer: Replied) -> Iterator[tuple[Round, ToolUse, Result | None]]:
    """Yield the calls in the prompt of an answer, oldest first, with their results."""
    last = view.item_of(answer.n)
    for item in view.items:
        if last is None or item.order >= last.order:
            return
        if isinstance(item, Round):
            for use in item.tool_uses():
                yield item, use, item.result_of(use.id)


def plan_served(found: Batch, tokens: int, now: Snapshot) -> ClearPlan:
    """Describe what is new, with the provider's own token count where it reports one."""
    told = f"{tokens:,}" if tokens else f"about {max(0, now.freed_tokens(found)):,}"
    saved = now.read_usd(tokens or now.freed_tokens(found))
    money = f"; each call costs {usd(saved)} less" if saved > 0 else ""
    why = (
        f"the provider cleared {counted_results(len(found))} on its side, {told} tokens, "
        f"taken to be the oldest{money}"
    )
    return ClearPlan(way="server", batch=found, why=why, how="server")
