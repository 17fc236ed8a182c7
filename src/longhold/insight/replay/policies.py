"""The policies that a replay can compare, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from longhold.core.messages import JsonObject
from longhold.core.request.server_side import CLEAR_RESULTS, OPTION
from longhold.core.settings import CacheSettings, Settings, WindowSettings
from longhold.core.turn.engine import Stage
from longhold.core.turn.fork.asking import AskFork
from longhold.errors import InvalidArgument
from longhold.insight.replay import other_stages
from longhold.insight.replay.recorded_session import RecordedSession
from longhold.insight.replay.result import ReplayResult
from longhold.insight.replay.session_replay import (
    BuildStages,
    ReplayStages,
    play_session,
    standard_stages,
)

SettingChanges = Mapping[str, Mapping[str, object]]

NO_LAYERS: SettingChanges = {
    "spill": {"on": False},
    "clear": {"on": False},
    "compact": {"on": False},
    "notes": {"on": False},
    "memory": {"on": False, "extract": "off"},
}
RULES: Mapping[str, SettingChanges] = {
    "line_by_cost": {"window": {"auto_line": ""}},
    "price_of_information": {"cost": {"need_weight": 0.0}, "window": {"auto_line": "150000"}},
    "warm_share": {"clear": {"warm_share": 0.0}},
    "line_room": {"clear": {"line_room": 0.1}},
    "notes_when_they_pay": {"notes": {"model_when": "always"}},
    "own_share": {"budget": {"own_share": 0.0}},
    "clearing": {"clear": {"on": False}},
    "spilling": {"spill": {"on": False}},
    "memory": {"memory": {"on": False, "extract": "off"}},
}
"""Longhold's rules, each with the settings that switch it off."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    name: str
    label: str
    changes: SettingChanges = field(default_factory=dict)
    build: BuildStages = standard_stages
    options: JsonObject = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        return self.name.startswith("ours")

    def settings(self, lifetime: str, window_tokens: int) -> Settings:
        # Only Longhold chooses lifetimes by itself, beginning with the recorded one.
        chosen, long = (
            ("auto", "chat" if lifetime == "1h" else "") if self.is_ours else (lifetime, "")
        )
        plain = Settings(
            window=WindowSettings(limit_tokens=window_tokens),
            cache=CacheSettings(lifetime=chosen, long_sources=long, diagnose=False),
        )
        return apply_changes(plain, self.changes)

    def play(
        self, recording: RecordedSession, *, model: str, lifetime: str, window_tokens: int
    ) -> ReplayResult:
        return play_session(
            recording,
            self.settings(lifetime, window_tokens),
            model,
            build=self.build,
            options=self.options,
        )


def apply_changes(settings: Settings, changes: SettingChanges) -> Settings:
    groups = {name: replace(getattr(settings, name), **some) for name, some in changes.items()}
    return replace(settings, **groups)


def _use_stage(make: Callable[[], Stage]) -> BuildStages:
    return lambda engine, spill, ask, hooks, background: ReplayStages(stages=(make(),))


def _use_asking(make: Callable[[AskFork], Stage]) -> BuildStages:
    return lambda engine, spill, ask, hooks, background: ReplayStages(stages=(make(ask),))


def no_stages(*parts: object) -> ReplayStages:
    return ReplayStages()


def _other(
    name: str, label: str, build: BuildStages = no_stages, options: JsonObject | None = None
) -> Policy:
    return Policy(name=name, label=label, changes=NO_LAYERS, build=build, options=options or {})


OTHERS = (
    _other("send_everything", "nothing is removed"),
    _other("sliding_window", "the newest 40 messages", _use_stage(other_stages.sliding_window)),
    _other(
        "summarise_keep_20",
        "a summary at 80 % of the window that keeps the newest 20 messages",
        _use_asking(other_stages.summarise_at_line),
    ),
    _other(
        "mask_results",
        "only results of the newest 10 answers remain",
        _use_stage(other_stages.mask_results),
    ),
    _other(
        "provider_clearing",
        "the provider clears past 100K and keeps three results",
        options={OPTION: {"edits": [{"type": CLEAR_RESULTS}]}},
    ),
    _other(
        "provider_compaction",
        "the provider summarises past 150K",
        _use_asking(other_stages.provider_compaction),
    ),
)
OURS = (
    Policy(name="ours", label="Longhold with its defaults"),
    Policy(
        name="ours_careful",
        label="Longhold with more weight on content that may be needed again",
        changes={"cost": {"need_weight": 80.0}},
    ),
)
WITHOUT = tuple(
    Policy(
        name=f"ours_without_{rule}", label=f"ours without {rule.replace('_', ' ')}", changes=changes
    )
    for rule, changes in RULES.items()
)
BY_WEIGHT = tuple(
    Policy(
        name=f"ours_need_{weight}",
        label=f"ours, a missing result counts as {weight} calls",
        changes={"cost": {"need_weight": float(weight)}},
    )
    for weight in (2, 6, 8, 12)
)
POLICIES = {policy.name: policy for policy in (*OTHERS, *OURS, *WITHOUT, *BY_WEIGHT)}
DEFAULT = (*(policy.name for policy in OTHERS), "ours", "ours_careful")
"""The policies that are compared by default, in addition to the recording."""


def select_policies(names: tuple[str, ...]) -> list[Policy]:
    wanted = tuple(POLICIES) if "all" in names else (names or DEFAULT)
    unknown = [name for name in wanted if name not in POLICIES]
    if unknown:
        raise InvalidArgument("policy", f"{unknown[0]!r} is not one of {', '.join(POLICIES)}, all")
    return [POLICIES[name] for name in dict.fromkeys(wanted)]
