"""Count over recorded sessions what was needed again, for the benchmarks and their tests."""

from collections import defaultdict
from collections.abc import Iterable

from longhold.core.log.entries import AnyEntry, Ran
from longhold.core.messages.measure import measure_text
from longhold.core.policy.candidates import weight
from longhold.core.view import View
from longhold.insight.replay.regret import Needs

AGES = (5, 10, 20, 40, 80)
"""Ages, in calls, at which the rates are counted."""


def regret(entries: Iterable[AnyEntry]) -> tuple[int, int]:
    """Count hidden results that a later call needed, once each, and their tokens."""
    view, needs, shown = View(), Needs(), set[str]()
    count = tokens = 0
    for entry in entries:
        view.apply(entry)
        if isinstance(entry, Ran):
            shown.add(entry.tool_use_id)
        if (need := needs.follow(entry)) is None or need.result.tool_use_id not in shown:
            continue
        id = need.result.tool_use_id
        owner = view.round_of(id)
        result = owner.result_of(id) if owner and view.item_of(owner.id) else None
        if result is None or result.cleared is not None:
            shown.remove(id)
            count += 1
            tokens += round(weight(measure_text(need.result.text)))
    return count, tokens


def rates(sessions: Iterable[Iterable[AnyEntry]]) -> dict[str, dict[int, tuple[int, int]]]:
    """Count by kind and age: results needed later than that age, and all that reached it."""
    counted: dict[str, dict[int, tuple[int, int]]] = defaultdict(
        lambda: dict.fromkeys((0, *AGES), (0, 0))
    )
    for entries in sessions:
        needs, oldest = Needs(), dict[str, int]()
        for entry in entries:
            if (need := needs.follow(entry)) is not None:
                oldest[need.result.tool_use_id] = need.age
        for one in needs.results():
            by_age = counted[one.kind]
            for age, (needed, all_) in by_age.items():
                if needs.calls - one.call > age:
                    by_age[age] = needed + (oldest.get(one.tool_use_id, -1) > age), all_ + 1
    return dict(counted)
