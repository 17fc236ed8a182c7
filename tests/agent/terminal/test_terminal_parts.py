"""Parts of the terminal that need no terminal: blocks, pastes, status, completion, drawing."""

import re
import subprocess
import time
from dataclasses import replace

import pytest

pytest.importorskip("prompt_toolkit")
pytest.importorskip("rich")

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from longhold.agent.terminal.chat_input import InputCompleter, Pastes, ProjectFiles
from longhold.agent.terminal.paint import Paint, split_long, whole_blocks
from longhold.agent.terminal.screen import unknown_command
from longhold.agent.terminal.spacing import Spacing
from longhold.agent.terminal.turn_drawing import FinishedCall, TurnDrawing, draw_folded
from longhold.cli.slash_commands import read_part
from longhold.cli.slash_table import SLASH
from longhold.core.messages import ToolUse
from longhold.core.models.protocol import TextDelta
from longhold.core.tools.protocol import Outcome
from longhold.core.turn.status import Status, join_fitting

EVIL = "\x1b]0;owned\x07\x1b[2J"
PAINT = Paint(columns=lambda: 60, has_colours=False)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("one\n", ""),
        ("one\n\ntwo", "one\n\n"),
        ("```\na\n\nb\n", ""),
        ("```\na\n\nb\n```\n\nafter", "```\na\n\nb\n```\n\n"),
        ("````\n```\n\n```\n````\n\nafter", "````\n```\n\n```\n````\n\n"),
        ("- one\n\n- two\n\nafter", "- one\n\n- two\n\n"),
        ("- one\n\n  more\n", ""),
    ],
)
def test_only_whole_blocks_of_markdown_are_printed_for_good(text, whole):
    assert text[: whole_blocks(text)] == whole


def test_blocks_cut_anywhere_add_up_to_the_text():
    text = "# A\n\nb **c**\n\n```py\nx\n\ny\n```\n\n- d\n- e\n\nlast"
    printed, tail = "", ""
    for char in text:
        tail += char
        cut = whole_blocks(tail)
        printed, tail = printed + tail[:cut], tail[cut:]
    assert printed + tail == text


def test_a_long_paste_is_a_mark_that_stands_for_every_character():
    pastes = Pastes()
    long = "x" * 5_000
    mark = pastes.take(long)
    assert mark == "[paste 1: 1 line, 5.0 KB]"
    assert pastes.expand(f"before {mark} after") == f"before {long} after"
    assert pastes.take("short") == "short"
    assert pastes.take("a\r\nb") == "a\nb"
    assert pastes.expand("[paste 7: nothing]") == "[paste 7: nothing]"


STATUS = Status(
    session="s",
    model="claude-sonnet-5-5",
    mode="ask",
    used_tokens=84_200,
    line_tokens=155_000,
    warning_tokens=135_000,
    limit_tokens=200_000,
    percent_left=46,
    level="ok",
    cache_seconds=252.0,
    usd=1.37,
    own_usd=0.04,
    own_share=0.03,
    jobs=2,
)


def test_the_status_says_of_what_the_percentage_is_and_drops_the_least_important_first():
    assert STATUS.line(120) == (
        "▕██████▌     ▏84.2K of 155.0K, 46 % left · cache 4:12 · $1.37, own 3% · 2 jobs · sonnet-5-5 · ask"
    )
    assert STATUS.line(40) == "84.2K of 155.0K, 46 % left · cache 4:12"
    assert STATUS.line(30) == "84.2K of 155.0K, 46 % left"
    assert STATUS.short() == "[84.2K tokens, 46 % left, $1.37, overhead 3%]"
    assert join_fitting(["abcdef"], 3) == "abc"


def test_a_cache_that_has_long_expired_is_cold_since_a_date():
    cold, now = replace(STATUS, cache_seconds=0.0), time.time()
    assert re.fullmatch(r"cache cold since \d\d:\d\d:\d\d", cold.cache_parts(now - 60)[0])
    months_ago = time.mktime((2026, 1, 23, 23, 40, 19, 0, 0, -1))
    assert cold.cache_parts(months_ago) == ["cache cold since 2026-01-23"]


def test_no_status_shows_money_that_nobody_paid():
    status = replace(STATUS, is_simulated=True)
    assert "$" not in status.line(120)
    assert status.short() == "[84.2K tokens, 46 % left, simulated]"


def test_the_nearest_command_is_suggested():
    assert unknown_command("/contxt", SLASH) == "There is no /contxt; did you mean /context?"
    assert unknown_command("/zzzzzz", SLASH) == "There is no /zzzzzz; /help lists them."


@pytest.mark.parametrize(
    "entity", ["&#x202e;", "&rlm;", "&#x2066;", "&#13;", "&#27;", "&ZeroWidthSpace;"]
)
@pytest.mark.parametrize(
    "form", ["x{}y", "# x{}y", "[x{}y](http://a{}b)", "|a|\n|-|\n|x{}y|", "> {}"]
)
def test_markdown_brings_back_nothing_that_steers_or_reorders(entity, form):
    drawn = PAINT.draw_markdown(form.replace("{}", entity))
    assert all(char.isprintable() or char == "\n" for char in drawn)


def completions(completer, text):
    return [each.text for each in completer.get_completions(Document(text), CompleteEvent())]


def test_commands_and_files_are_completed_and_nothing_else(tmp_path):
    (tmp_path / "src").mkdir()
    for name in ("src/mast.py", "src/main mast.py", "README.md"):
        (tmp_path / name).write_text("")
    completer = InputCompleter({"/cost": "", "/context": ""}, ProjectFiles(tmp_path))
    assert completions(completer, "/co") == ["/cost", "/context"]
    assert completions(completer, "see @mast") == ["src/mast.py", '"src/main mast.py"']
    assert completions(completer, "see mast") == []
    assert completions(completer, "me@example") == []


def test_completing_a_file_runs_nothing_of_the_repository(tmp_path):
    for words in (["init", "-q"], ["config", "core.fsmonitor", f"touch {tmp_path}/trace;"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "mast.py").write_text("")
    completer = InputCompleter({}, ProjectFiles(tmp_path))
    assert completions(completer, "@mast") == ["mast.py"]
    assert not (tmp_path / "trace").exists()
    subprocess.run(["git", "ls-files", "--others"], cwd=tmp_path)
    assert (tmp_path / "trace").exists()  # without our care


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("", ("", None, None)),
        ("the tests", ("the tests", None, None)),
        ("from 12", ("", 12, None)),
        ("the tests up to #40", ("the tests", None, 40)),
        ("what came from Mars", ("what came from Mars", None, None)),
    ],
)
def test_what_compact_is_told(typed, read):
    assert read_part(typed) == read


def test_nothing_from_outside_steers_the_terminal():
    use = ToolUse(
        id="t",
        name=f"Edit{EVIL}",
        input={"file_path": f"a{EVIL}", "old_string": EVIL, "new_string": "b"},
    )
    call = FinishedCall(use=use, outcome=Outcome(content=f"done{EVIL}"), seconds=2)
    drawn = (
        PAINT.draw_markdown(f"# a{EVIL}\n\n`{EVIL}`\n\n[x](http://a{EVIL})"),
        PAINT.draw_text(EVIL),
        draw_folded(call, PAINT, key="Ctrl-O"),
    )
    assert not [text for text in drawn if "\x1b" in text or "\x07" in text]


def test_an_edit_is_drawn_as_what_goes_and_what_comes():
    before = "\n".join(f"line {n}" for n in range(20))
    drawn = PAINT.diff(before, before.replace("line 9", "line nine"), most=40, indent=0)
    assert drawn.splitlines() == [
        "  line 7", "  line 8", "- line 9", "+ line nine", "  line 10", "  line 11",
    ]  # fmt: skip
    assert PAINT.diff("", before, most=3, indent=0).splitlines()[-1] == "… 17 more lines"


def test_a_long_block_is_printed_in_parts_that_add_up_and_stays_code():
    printed = []
    drawing = TurnDrawing(emit=printed.append, paint=PAINT)
    drawing.take(TextDelta(index=0, text="```py\n"))
    for number in range(2_000):
        drawing.take(TextDelta(index=0, text=f"mast({number})\n\n"))
        if number % 500 == 0:
            assert len(drawing.live(8).splitlines()) <= 8
    assert max(map(len, printed)) < 5_000
    found = re.findall(r"mast\((\d+)\)", "".join(printed))
    assert found == [str(number) for number in range(len(found))]
    assert len(found) > 1_800
    head, rest = split_long("```py\na = 1\nb = 2")
    assert (head, rest) == ("```py\na = 1\n```\n", "```py\nb = 2")
    assert split_long("one two") == ("one ", "two")


def test_one_endless_line_keeps_to_its_rows():
    drawing = TurnDrawing(emit=lambda text: None, paint=PAINT)
    drawing.take(TextDelta(index=0, text="x" * 15_000))
    assert 1 < len(drawing.live(8).splitlines()) <= 8


def test_lines_break_where_they_were_written_to_and_fold_below_their_text():
    assert PAINT.draw_markdown("one\ntwo\n\n```\na\n\n\nb\n```\n").splitlines() == [
        "one", "two", "", " a", "", "", " b",
    ]  # fmt: skip
    narrow = Paint(columns=lambda: 30, has_colours=False)
    assert narrow.draw_text("/cost     show what was spent on what").splitlines() == [
        "/cost     show what was spent",
        "          on what",
    ]
    assert narrow.cut("日本語のテキスト", 7) == "日本語…"


def test_blocks_stand_one_blank_line_apart():
    printed = []
    write = Spacing(printed.append)
    for text in ("\nfirst\n\n", "\nsecond\n", "third\n", "\nfourth\n"):
        write(text)
    assert "".join(printed) == "first\n\nsecond\nthird\n\nfourth\n"


def _ask(tool, given, *, whole=False):
    printed = []
    drawing = TurnDrawing(emit=printed.append, paint=PAINT)
    is_cut = drawing.ask(tool, "because", given, whole=whole)
    return is_cut, "".join(printed)


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("mcp__fs__write_file", {"path": "./x", "new_string": "", "content": "HIDDEN"}),
        ("mcp__fs__write_file", {"file_path": "x", "content": "a", "edits": "HIDDEN"}),
        ("Edit", {"file_path": "x", "old_string": "a", "new_string": "b", "content": "HIDDEN"}),
        ("Write", {"file_path": "x", "content": "a", "new_string": "HIDDEN"}),
        ("Edit", {"file_path": "x", "new_string": "HIDDEN"}),
        ("Write", {"file_path": "x", "content": ["HIDDEN"]}),
    ],
)
def test_a_question_hides_no_input(tool, given):
    assert "HIDDEN" in _ask(tool, given)[1]


def test_a_question_shows_the_whole_change_on_request():
    given = {"file_path": "x", "content": "".join(f"line {number}\n" for number in range(99))}
    is_cut, shown = _ask("Write", given)
    assert is_cut
    assert "line 98" not in shown
    is_cut, shown = _ask("Write", given, whole=True)
    assert not is_cut
    assert "line 98" in shown
    assert not _ask("Write", {"file_path": "x", "content": "short"})[0]
