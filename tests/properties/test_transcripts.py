"""Transcripts of any kind, even broken, import to a valid view, and skipped records are counted."""

import codecs

import msgspec
from hypothesis import example, given

from longhold.core.log.entries import Ran, Replied, Said
from longhold.core.messages.rules import violations
from longhold.core.view import fold
from longhold.core.view.items import NO_RESULT
from longhold.insight.transcripts import claude_code
from longhold.session.importing.transcript_writer import TranscriptWriter
from properties.records import odd_lines, transcripts
from properties.strategies import sequences


def lines_of(records):
    return [msgspec.json.encode(record) + b"\n" for record in records]


def entries_of(lines):
    return list(claude_code.read(lines, TranscriptWriter()))


@given(odd_lines)
def test_any_file_imports_to_a_legal_view(lines):
    view = fold(entries_of(lines))
    assert violations(view.messages()) == []
    assert violations(view.render_seen()) == []


@given(odd_lines)
@example([b"\xef\xbb\xbf"])
@example([b"\xef\xbb\xbf{}", b"\xef\xbb\xbf"])
def test_every_line_is_accounted_for(lines):
    scribe = TranscriptWriter()
    entries = list(claude_code.read(lines, scribe))
    account = scribe.account
    first = [line.removeprefix(codecs.BOM_UTF8) for line in lines[:1]]  # a mark is no record
    assert account.records == sum(bool(line.strip()) for line in [*first, *lines[1:]])
    assert [entry.n for entry in entries] == list(range(1, len(entries) + 1))
    told = len(entries) + sum(account.skipped.values()) + sum(account.repaired.values())
    if account.records and not told:
        assert account.malformed or silent(lines)


def silent(lines):
    """Records that are well formed and say nothing: empty messages, boundaries, titles."""
    kinds = {"user", "assistant", "attachment", "system", "summary", "custom-title", "ai-title"}
    return any(
        isinstance(record, dict) and record.get("type") in kinds
        for record in map(msgspec.json.decode, filter(_is_json, lines))
    )


def _is_json(line):
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


@given(transcripts)
def test_imported_entries_are_all_that_was_said(records):
    scribe = TranscriptWriter()
    entries = list(claude_code.read(lines_of(records), scribe))
    ran = [entry for entry in entries if isinstance(entry, Ran) and entry.content != NO_RESULT]
    said = [entry for entry in entries if isinstance(entry, Said | Replied)]
    spoken = sum(len(entry.content) for entry in said) + len(ran)
    recorded = sum(
        1 if isinstance(content, str) else len(content)
        for record in records
        if record["type"] in ("user", "assistant")
        for content in [record["message"]["content"]]
    )
    attached = sum(record["type"] == "attachment" for record in records)
    assert spoken <= recorded + attached
    if not scribe.account.skipped and not scribe.account.repaired:
        told_otherwise = sum(
            bool(record.get("isCompactSummary") or record.get("isApiErrorMessage"))
            for record in records
        )
        assert spoken >= recorded + attached - told_otherwise


@given(transcripts)
def test_an_export_imports_to_the_same_view(records):
    view = fold(entries_of(lines_of(records)))
    again = fold(entries_of(list(claude_code.write(view))))
    assert again.messages() == view.messages()


@given(transcripts)
def test_an_export_is_the_same_every_time(records):
    view = fold(entries_of(lines_of(records)))
    assert list(claude_code.write(view)) == list(claude_code.write(view))


@given(sequences)
def test_any_view_can_be_exported_and_imported(entries):
    view = fold(entries)
    again = fold(entries_of(list(claude_code.write(view))))
    assert again.messages() == view.messages()
