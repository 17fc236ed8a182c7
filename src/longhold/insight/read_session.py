"""Reads the calls of one session from its file. Texts are dropped to save memory."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import structs

from longhold.core.log import load
from longhold.core.log.entries import (
    AnyEntry,
    Compacted,
    Configured,
    Forked,
    Imported,
    Ran,
    Replied,
    Said,
    Switched,
    Titled,
)
from longhold.core.log.spending import MAIN, UniqueAnswer, day_of, paid_calls
from longhold.core.messages import Text, is_thought, text_of
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import clean_line
from longhold.core.messages.usage import MOST_TOKENS, Tally, Tokens
from longhold.core.models.capabilities import is_simulated
from longhold.core.models.prices import TOKENS_PER_PRICE, prices
from longhold.core.view.window import infer_window
from longhold.errors import LongholdError, TranscriptError
from longhold.insight.calls import CallReport, explain_calls
from longhold.insight.cost import (
    COMPACT,
    UNKNOWN,
    SessionCall,
    SessionCalls,
    begins_turn,
    encode,
    price_answer,
    price_unrecorded,
    unrecorded_summaries,
    words_of,
)
from longhold.insight.remedies import only_avoidable
from longhold.insight.session_files import OURS, SessionFile
from longhold.insight.transcripts.formats import CLIENTS, decode_path, is_log, open_transcript

KEPT_CHARS = 600  # kept characters per message, enough for a title and a restart command
TITLE_CHARS = 72
PROVIDER_ID_CHARS = 16
"""Ids of this length are provider ids, which are unique. Shorter ids are unique in one file."""


def read_session(path: Path) -> SessionCalls:
    """Read a session's calls. An unreadable file sets `problem`."""
    try:
        found = _read_log(path) if is_log(path) else _read_transcript(path)
    except (LongholdError, OSError) as error:
        return SessionCalls(problem=decode_path(str(error)))
    counts = (getattr(c.tally, kind) for c in found.calls for kind in Tokens.__struct_fields__)
    if any(abs(count) > MOST_TOKENS for count in counts):
        return SessionCalls(problem="contains an impossible token count")
    return found


def read_entries(path: Path) -> list[AnyEntry]:
    if is_log(path):
        return load(path).entries
    with open_transcript(path) as transcript:
        return list(transcript.entries)


def _read_log(path: Path) -> SessionCalls:
    loaded = load(path)
    imported = [entry for entry in loaded.entries if isinstance(entry, Imported)]
    found = session_calls(
        map(_slim, loaded.entries),
        agent=imported[-1].format if imported else _find_client(loaded.entries) or OURS,
        session=path.stem,
        directory=loaded.header.directory,
    )
    return structs.replace(found, is_import=bool(imported))


def _read_transcript(path: Path) -> SessionCalls:
    with open_transcript(path) as transcript:
        if transcript.format not in CLIENTS:
            raise TranscriptError(path, "is a list of messages without usage")
        return session_calls(
            map(_slim, transcript.entries),
            agent=transcript.format,
            session=transcript.session or path.stem,
            directory=transcript.directory,
        )


def session_calls(
    entries: Iterable[AnyEntry], *, agent: str, session: str, directory: str
) -> SessionCalls:
    history = list(entries)
    return SessionCalls(
        agent=agent,
        session=session,
        directory=directory,
        title=title_of_history(history),
        window_tokens=infer_window(history),
        turns=sum(map(begins_turn, history)),
        compactions=sum(isinstance(entry, Compacted) for entry in history),
        calls=tuple(list_calls(history, explain_calls(history))),
    )


def _slim(entry: AnyEntry) -> AnyEntry:
    """Drop texts that no figure needs, and keep their measures."""
    match entry:
        case Ran():
            return structs.replace(entry, content="", extra=None)
        case Replied():
            thoughts = tuple(block for block in entry.content if is_thought(block))
            return structs.replace(entry, content=thoughts[:1])
        case Said():
            return structs.replace(entry, content=(Text(text=text_of(entry.content)[:KEPT_CHARS]),))
        case Compacted():
            return structs.replace(entry, summary=())
    return entry


def title_of_history(history: Iterable[AnyEntry]) -> str:
    first = title = ""
    for entry in history:
        if isinstance(entry, Titled):
            title = entry.title
        elif not first and begins_turn(entry):
            first = words_of(entry)
    return clean_line(mask_secrets(title or first), TITLE_CHARS)


def sum_session(history: Sequence[AnyEntry], reports: Iterable[CallReport]) -> Tally:
    calls = list_calls(history, reports)
    kept = (only_avoidable(one.tally, one.cause, is_expected=one.is_expected) for one in calls)
    return sum(kept, Tally())


def list_calls(history: Sequence[AnyEntry], reports: Iterable[CallReport]) -> Iterator[SessionCall]:
    explained = {call.n: call for call in reports}
    paid = paid_calls(history)
    simulated = set(_find_simulated(history))
    for call in paid:
        found = _call(call, explained[call.n])
        yield _without_money(found) if call.n in simulated else found
    unpaid = unrecorded_summaries(history)
    models, model = {call.n: call.model for call in paid if isinstance(call, UniqueAnswer)}, ""
    for entry in history:
        model = models.get(entry.n, model)
        if isinstance(entry, Compacted) and entry.n in unpaid:
            yield SessionCall(
                key=f"summary|{entry.origin}|{entry.at}",
                at=entry.at,
                model=model or UNKNOWN,
                source=COMPACT,
                tally=price_unrecorded(entry, model),
            )


def _find_client(history: Iterable[AnyEntry]) -> str:
    found = (entry.client for entry in history if isinstance(entry, Configured))
    return clean_line(next(filter(None, found), ""), TITLE_CHARS)


def _find_simulated(history: Sequence[AnyEntry]) -> Iterator[int]:
    if any(isinstance(entry, Configured) and entry.simulated for entry in history):
        yield from (entry.n for entry in history)
    model = ""
    for entry in history:
        if isinstance(entry, Switched):
            model = entry.model
        if model and is_simulated(model):
            yield entry.n


def _without_money(call: SessionCall) -> SessionCall:
    free = structs.replace(
        call.tally, usd=0.0, bare_usd=0.0, unrecorded_usd=0.0, lost_usd=0.0, unpriced_calls=0
    )
    return structs.replace(call, model=f"simulated/{call.model}", tally=free, hour_usd=0.0)


def _call(call: UniqueAnswer | Forked, report: CallReport) -> SessionCall:
    lost = report.tally
    tally = structs.replace(
        price_answer(call), lost_tokens=lost.lost_tokens, lost_usd=max(0.0, lost.lost_usd)
    )
    written = tally.written_5m_tokens
    listed = prices(call.model, day_of(call.at)) if written else None
    hour = (listed.write_1h - listed.write_5m) / TOKENS_PER_PRICE if listed else 0.0
    return SessionCall(
        key=_key(call, tally),
        at=call.at,
        model=call.model or UNKNOWN,
        source=call.source if isinstance(call, Forked) else MAIN,
        tally=tally,
        cause=report.cause,
        is_expected=report.is_expected,
        idle_seconds=report.seconds_since or 0.0 if report.cause else 0.0,
        hour_usd=max(0.0, hour * written),
    )


def _key(call: UniqueAnswer | Forked, tally: Tally) -> str:
    id = call.response_id
    place = "" if len(id) >= PROVIDER_ID_CHARS else f"|{call.at}"
    counts = f"{tally.input_tokens}|{tally.cache_read_tokens}|{tally.prompt_tokens}"
    return f"{id}|{call.model}|{counts}{place}"


def read_encoded(file: SessionFile) -> bytes:
    return encode(read_session(file.path))
