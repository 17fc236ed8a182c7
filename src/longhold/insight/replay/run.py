"""Replays many recordings under many policies on all cores."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from msgspec import structs

from longhold.core.log.spending import UniqueAnswer
from longhold.core.messages import JsonObject
from longhold.core.messages.usage import Tally
from longhold.core.models.capabilities import capabilities
from longhold.core.models.prices import price_call
from longhold.errors import LongholdError
from longhold.insight.replay.limit import least_cost
from longhold.insight.replay.policies import NO_LAYERS, POLICIES, Policy, no_stages
from longhold.insight.replay.recorded_session import RecordedSession, read_recording
from longhold.insight.replay.result import (
    USD_DIGITS,
    Figures,
    PolicyFigures,
    ReplayResult,
    standings,
    sum_dollars,
    total,
)
from longhold.insight.replay.session_replay import play_session
from longhold.insight.session_files import worker_processes
from longhold.insight.transcripts.formats import decode_path

AS_RECORDED = "as_recorded"
PROMPT_TOKENS = (
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    model: str = ""
    """The model for prices and tokens. "" means each recording's own model."""
    lifetime: str = ""
    """The cache lifetime, 5m or 1h. "" means the recorded lifetime."""
    window_tokens: int = 0
    """The window. 0 means the window that the recording shows, or else the model's window."""


@dataclass(frozen=True, kw_only=True)
class RecordedFigures(Figures):
    """The recorded usage, and the simulator's reproduction of it with moves and regret."""

    simulated_read: int
    simulated_usd: float

    @property
    def read_ratio(self) -> float | None:
        """Return the simulator's cache reads divided by the recorded cache reads."""
        return _read_ratio(self.simulated_read, self.tally.cache_read_tokens)

    def to_json(self) -> JsonObject:
        return super().to_json() | {"read_ratio": self.read_ratio}


def _read_ratio(simulated: int, recorded: int) -> float | None:
    return round(simulated / recorded, 4) if recorded else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReplay:
    path: Path
    problem: str = ""
    model: str = ""
    window_tokens: int = 0
    broken: int = 0
    skipped: int = 0
    prompts: Sequence[int] = ()
    recorded: Tally = field(default_factory=Tally)
    """Recorded tokens, priced in dollars for the model of the replay."""
    reproduced: ReplayResult | None = None
    results: Mapping[str, ReplayResult] = field(default_factory=dict)
    at_best: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    sessions: int
    calls: int
    broken_records: int
    skipped_records: int
    left_out: dict[str, str]
    models: tuple[str, ...]
    windows: tuple[int, ...]
    as_recorded: RecordedFigures
    policies: dict[str, PolicyFigures]
    at_best: dict[str, float] = field(default_factory=dict)
    """The least that any policy could have paid, in dollars by cause. See `limit`."""
    by_session: tuple[dict[str, object], ...] = ()

    def document(self) -> dict[str, object]:
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        return plain | {
            "as_recorded": self.as_recorded.to_json(),
            "policies": {name: one.to_json() for name, one in self.policies.items()},
            "standings": {name: asdict(one) for name, one in standings(self.policies).items()},
        }


def replay_file(path: Path, names: Sequence[str], options: ReplayOptions) -> FileReplay:
    """Replay one recording under each policy. An unreadable file sets `problem`."""
    try:
        recording = read_recording(path)
    except (LongholdError, OSError) as error:
        return FileReplay(path=path, problem=decode_path(str(error)))
    if not recording.answers:
        return FileReplay(path=path, problem="has no call with recorded usage")
    model = options.model or recording.model
    window = options.window_tokens or (
        capabilities(model).window_tokens if options.model else recording.window_tokens
    )
    lifetime = options.lifetime or recording.lifetime
    paid = (_price_recorded(answer, options.model or answer.model) for answer in recording.answers)
    return FileReplay(
        path=path,
        model=model,
        window_tokens=window,
        broken=recording.broken,
        skipped=recording.skipped,
        prompts=[answer.usage.prompt_tokens for answer in recording.answers],
        recorded=sum(paid, Tally()),
        reproduced=_reproduce(recording),
        at_best=least_cost(recording, model, lifetime),
        results={
            name: POLICIES[name].play(
                recording, model=model, lifetime=lifetime, window_tokens=window
            )
            for name in names
        },
    )


def _price_recorded(answer: UniqueAnswer, model: str) -> Tally:
    """Price a recorded call for a model, even if the model's tokenizer counts differently."""
    scale = capabilities(model).tokenizer_scale / capabilities(answer.model).tokenizer_scale
    counted = {name: round(getattr(answer.usage, name) * scale) for name in PROMPT_TOKENS}
    paid = price_call(model, structs.replace(answer.usage, **counted))
    return structs.replace(price_call(model, answer.usage), usd=paid.usd)


def _reproduce(recording: RecordedSession) -> ReplayResult:
    plain = Policy(name=AS_RECORDED, label="as recorded", changes=NO_LAYERS)
    settings = plain.settings(recording.lifetime, recording.window_tokens)
    return play_session(recording, settings, recording.model, build=no_stages, as_recorded=True)


def replay(
    paths: Iterable[Path],
    policies: Sequence[Policy],
    options: ReplayOptions,
    *,
    advance: Callable[[int], None] = lambda count: None,
) -> ReplayReport:
    """Replay recordings under each policy. `advance` receives the number of bytes done."""
    files = sorted(paths, key=lambda path: path.stat().st_size, reverse=True)
    names = [policy.name for policy in policies]
    if len(files) == 1:
        return _summarise_files([replay_file(files[0], names, options)], names)
    with worker_processes() as pool:
        running = {
            pool.submit(replay_file, path, names, options): path.stat().st_size for path in files
        }
        try:
            for job in as_completed(running):
                job.result()
                advance(running[job])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return _summarise_files([job.result() for job in running], names)


def _summarise_files(found: Sequence[FileReplay], names: Sequence[str]) -> ReplayReport:
    played = [one for one in found if not one.problem]
    return ReplayReport(
        sessions=len(played),
        calls=sum(len(one.prompts) for one in played),
        broken_records=sum(one.broken for one in played),
        skipped_records=sum(one.skipped for one in played),
        left_out={one.path.name: one.problem for one in found if one.problem},
        models=tuple(sorted({one.model for one in played})),
        windows=tuple(sorted({one.window_tokens for one in played})),
        as_recorded=_sum_recorded(played),
        policies={name: total(one.results[name] for one in played) for name in names},
        at_best=sum_dollars(one.at_best for one in played),
        by_session=tuple(_session(one) for one in sorted(played, key=lambda one: one.path.name)),
    )


def _session(one: FileReplay) -> dict[str, object]:
    simulated = one.reproduced.total.cache_read_tokens if one.reproduced else 0
    return {
        "file": one.path.name,
        "calls": len(one.prompts),
        "recorded_usd": round(one.recorded.usd, USD_DIGITS),
        "read_ratio": _read_ratio(simulated, one.recorded.cache_read_tokens),
        "at_best_usd": round(sum(one.at_best.values()), USD_DIGITS),
        "usd": {name: round(r.total.usd, USD_DIGITS) for name, r in one.results.items()},
        "regret_usd": {name: round(r.needed_usd, USD_DIGITS) for name, r in one.results.items()},
        "stopped": {name: r.stopped for name, r in one.results.items() if r.stopped},
    }


def _sum_recorded(played: Sequence[FileReplay]) -> RecordedFigures:
    prompts = [tokens for one in played for tokens in one.prompts]
    again = total(one.reproduced for one in played if one.reproduced is not None)
    return RecordedFigures(
        calls=len(prompts),
        tally=sum((one.recorded for one in played), Tally()),
        compactions=again.compactions,
        prefix_moves=again.prefix_moves,
        over_window_calls=sum(
            tokens > one.window_tokens for one in played for tokens in one.prompts
        ),
        peak_context=max(prompts, default=0),
        mean_context=round(sum(prompts) / len(prompts)) if prompts else 0,
        regret=again.regret,
        regret_usd=again.regret_usd,
        simulated_read=again.tally.cache_read_tokens,
        simulated_usd=again.usd,
    )
