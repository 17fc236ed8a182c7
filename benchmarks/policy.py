"""Money and regret of one cost policy: the old defaults, the new ones, and the new ones with a rule off.

Recorded sessions come in (`FILES`; by default those beside the project, else generated ones). Each
is played again under every policy, call by call at its own pace (`holdfast.simulator.session_replay`);
the simulated provider bills the conversation's calls and those that the engine makes for itself.
`regret_tokens` are results that were not in the view any more when a later call of the recording
needed them (`holdfast.simulator.needs`), each counted once. `recorded_usd` is what the recorded
usage costs at the same prices, with the cache and the compactions it had. Left out are sessions of
under ten calls, and those taken up half way: whose first call has more than 70K tokens.

`--rates` counts how often results are needed again, by kind and age: the settings under `cost`.

    python benchmarks/policy.py [FILES…] [--model NAME] [--lifetime 5m|1h] [--sessions N] [--rates] [--json]
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.log.answers import answers_of
from holdfast.log.entries import AnyEntry
from holdfast.log.spending import spent_on
from holdfast.settings import CacheSettings, GaugeSettings, Settings
from holdfast.simulator.needs import rates
from holdfast.simulator.session_replay import ReplayResult, SessionReplay
from holdfast.simulator.sessions import write
from holdfast.transcripts.formats import open_transcript

RECORDED = Path(__file__).parents[2] / "shared" / "data" / "transcripts"
MODEL = "claude-opus-5"
"""Priced as the models that were recorded, and its tokens counted about as theirs were."""
FIRST_CALL_TOKENS = 70_000
LEAST_CALLS = 10
GENERATED = 4
Changes = Mapping[str, Mapping[str, object]]

OLD: Changes = {
    "window": {"auto_line": ""},
    "clear": {"warm_share": 0.0, "line_room": 0.1},
    "cost": {"need_weight": 0.0},
    "notes": {"model_when": "always", "growth_tokens": 5_000},
    "budget": {"own_share": 0.0},
}
RULES: Mapping[str, Changes] = {
    "line_by_cost": {"window": {"auto_line": ""}},
    "price_of_information": {"cost": {"need_weight": 0.0}, "window": {"auto_line": "150000"}},
    "warm_share": {"clear": {"warm_share": 0.0}},
    "line_room": {"clear": {"line_room": 0.1}},
    "notes_when_they_pay": {"notes": {"model_when": "always"}},
    "own_share": {"budget": {"own_share": 0.0}},
}
NOTHING: Changes = {
    "clear": {"on": False},
    "compact": {"on": False},
    "notes": {"on": False},
    "memory": {"on": False, "extract": "off"},
}
"""Everything stays in, as far as the window goes."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What one policy came to over all sessions."""

    usd: float
    own_usd: dict[str, float]
    regret_tokens: int
    regrets: int
    clearings: int
    compactions: int
    own_calls: int
    calls: int

    @property
    def total_usd(self) -> float:
        return self.usd + sum(self.own_usd.values())

    def shown(self) -> dict[str, object]:
        layers = {name: round(usd, 4) for name, usd in sorted(self.own_usd.items())}
        return {
            "total_usd": round(self.total_usd, 4),
            "own_usd": layers,
            "regret_tokens": self.regret_tokens,
            "regrets": self.regrets,
            "clearings": self.clearings,
            "compactions": self.compactions,
        }


def changed(settings: Settings, changes: Changes) -> Settings:
    groups = {name: replace(getattr(settings, name), **some) for name, some in changes.items()}
    return replace(settings, **groups)


def base_settings(lifetime: str) -> Settings:
    return Settings(
        cache=CacheSettings(lifetime=lifetime, diagnose=False),
        gauge=GaugeSettings(calibrate=False),
    )


def read(path: Path) -> list[AnyEntry]:
    with open_transcript(path) as transcript:
        return list(transcript.entries)


def counts(entries: Sequence[AnyEntry]) -> bool:
    """True for a session that was recorded from its beginning and is long enough to matter."""
    prompts = [answer.usage.prompt_tokens for answer in answers_of(entries).values()]
    sent = [tokens for tokens in prompts if tokens]
    return len(sent) >= LEAST_CALLS and sent[0] < FIRST_CALL_TOKENS


def sessions(files: Sequence[Path], most: int) -> list[list[AnyEntry]]:
    """Read the sessions that count; without files, generate some."""
    if not files:
        with tempfile.TemporaryDirectory() as name:
            made = [Path(name) / f"{seed}.jsonl" for seed in range(GENERATED)]
            for seed, path in enumerate(made):
                write(path, seed)
            return sessions(made, most)
    found: list[list[AnyEntry]] = []
    for path in files:
        try:
            entries = read(path)
        except HoldfastError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            continue
        if counts(entries) and len(found) < most:
            found.append(entries)
    return found


async def play(entries: Sequence[AnyEntry], settings: Settings, model: str) -> ReplayResult:
    with tempfile.TemporaryDirectory() as name:
        return await SessionReplay(entries, settings, model, Path(name) / "log.jsonl").play()


def played(entries: Sequence[AnyEntry], settings: Settings, model: str) -> ReplayResult:
    return asyncio.run(play(entries, settings, model))


def figures(results: Sequence[ReplayResult]) -> Figures:
    own: Counter[str] = Counter()
    for result in results:
        own.update(result.own_usd)
    return Figures(
        usd=sum(result.usd for result in results),
        own_usd=dict(own),
        regret_tokens=sum(sum(result.needed_tokens.values()) for result in results),
        regrets=sum(sum(result.needed.values()) for result in results),
        clearings=sum(len(result.cleared) for result in results),
        compactions=sum(result.compactions for result in results),
        own_calls=sum(sum(result.own_calls.values()) for result in results),
        calls=sum(len(result.prompts) for result in results),
    )


def recorded_usd(entries: Sequence[AnyEntry], model: str) -> float:
    return sum(spent_on(model, answer.usage).usd for answer in answers_of(entries).values())


def each(
    policies: Mapping[str, Changes], found: Sequence[Sequence[AnyEntry]], model: str, lifetime: str
) -> Iterator[tuple[str, Figures]]:
    """Play all sessions under each policy, on all cores."""
    with ProcessPoolExecutor() as pool:
        for name, changes in policies.items():
            settings = changed(base_settings(lifetime), changes)
            results = pool.map(partial(played, settings=settings, model=model), found)
            yield name, figures(list(results))


def summary(found: Mapping[str, Figures], recorded: float) -> dict[str, object]:
    old, new = found["old"], found["new"]
    return {
        "cost_ratio": round(new.total_usd / old.total_usd, 4),
        "regret_ratio": round(new.regret_tokens / old.regret_tokens, 4)
        if old.regret_tokens
        else None,
        "recorded_usd": round(recorded, 4),
        "policies": {name: one.shown() for name, one in found.items()},
    }


def counted_rates(found: Sequence[Sequence[AnyEntry]]) -> dict[str, object]:
    return {
        kind: {
            age: {"needed": needed, "of": whole, "rate": round(needed / whole, 3)}
            for age, (needed, whole) in by_age.items()
            if whole
        }
        for kind, by_age in rates(found).items()
    }


def parsed(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--lifetime", default="1h", choices=("5m", "1h"))
    parser.add_argument("--sessions", type=int, default=1_000, help="so many at most")
    parser.add_argument("--json", action="store_true", help="print nothing but the result")
    return parser


def main() -> None:
    parser = parsed(__doc__.splitlines()[0])
    parser.add_argument("--rates", action="store_true", help="count the rates only")
    given = parser.parse_args()
    files = given.files or sorted(RECORDED.rglob("*.jsonl.gz"))
    chosen = sessions(files, given.sessions)
    fixed = {"sessions": len(chosen), "model": given.model, "lifetime": given.lifetime}
    if given.rates:
        print(json.dumps(counted_rates(chosen) | fixed))
        return
    without = {f"new without {name}": changes for name, changes in RULES.items()}
    policies: dict[str, Changes] = {"nothing": NOTHING, "old": OLD, "new": {}, **without}
    found = {}
    for name, one in each(policies, chosen, given.model, given.lifetime):
        found[name] = one
        if not given.json:
            print(f"{name:<34} ${one.total_usd:>8.2f}  regret {one.regret_tokens:>8,}")
    recorded = sum(recorded_usd(entries, given.model) for entries in chosen)
    print(json.dumps(summary(found, recorded) | fixed))


if __name__ == "__main__":
    main()
