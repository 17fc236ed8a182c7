"""What information is worth: how often what left the view is needed again, and what that costs.

The rates are counted in the recorded sessions by `benchmarks/policy.py --rates`.
"""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSettings:
    needed_read: float = setting(
        0.25,
        "how often a file that was read is needed again, by the same reading or an edit: 171 of 760"
        " were, ten calls later or more",
        low=0.0,
        high=1.0,
    )
    needed_reread: float = setting(
        0.08,
        "the same for a file of which something was read again since: 89 of 1,110, at any age",
        low=0.0,
        high=1.0,
    )
    needed_fetch: float = setting(
        0.25,
        "the same for a page: 10 of 43, in few sessions, so taken as a file",
        low=0.0,
        high=1.0,
    )
    needed_shell: float = setting(
        0.05,
        "the same for a command, by the same output: 68 of 1,270; with another output the first is"
        " of no use",
        low=0.0,
        high=1.0,
    )
    needed_search: float = setting(0.01, "the same for a search: 3 of 474", low=0.0, high=1.0)
    halving_calls: int = setting(
        50,
        "calls in which a rate halves: files by .225, .182, .130, .078 after 10, 20, 40, 80",
        low=1,
    )
    need_weight: float = setting(
        12.0,
        "what a missing result costs, in calls that get it again: a model does not always notice"
        " that it lacks something, and what it then builds on a guess is done twice",
        low=0.0,
    )
    compaction_needs: float = setting(
        0.6, "results of before that are needed after a compaction and were not restored", low=0.0
    )
    compaction_need_tokens: int = setting(3_500, "of all of them together", low=0)
    work_tokens: int = setting(
        30_000,
        "room for the work at hand above what a compaction leaves: 95 % of 417 turns needed less",
        low=0,
    )
