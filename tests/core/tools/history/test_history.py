"""A session's history: found by words and files, opened by number, exactly as recorded."""

import os
import stat

import pytest
from msgspec.structs import replace

from longhold.core.log import Header, Log
from longhold.core.log.entries import (
    Cleared,
    Collapsed,
    Compacted,
    Ran,
    Replied,
    Said,
    Snipped,
    Swept,
    Switched,
    Undone,
)
from longhold.core.messages import Image, Opaque, Text, Thinking, ToolUse
from longhold.core.settings import LogSettings, Settings
from longhold.core.tools.history.history import HITS, History, is_shown
from longhold.core.tools.history.log_index import NAME
from longhold.core.turn.engine import Engine
from longhold.errors import NotInHistory
from longhold.insight.transcripts.formats import open_transcript

SMALL = Settings(log=LogSettings(body_limit_bytes=1_024))
IMAGE = Image(source={"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="})


@pytest.fixture
def engine(tmp_path):
    """An engine whose huge bodies are those over a kilobyte."""
    made = Engine(Log.create(tmp_path / "s.jsonl", Header(session="s")), SMALL)
    made.record(Switched(model="claude-opus-4-6"))
    yield made
    made.close()


@pytest.fixture
def history(engine):
    """Its past, with an index beside its log."""
    made = History(
        lambda: engine.view.history,
        directory=engine.log.path.with_suffix(""),
        session="s",
        shows=lambda n: is_shown(engine.view, n),
    )
    yield made
    made.close()


def ran(engine, id, content, name="Bash", **given):
    """Let a tool be called and give its result; say the result's number."""
    use = ToolUse(id=id, name=name, input=given or {"command": f"do {id}"})
    engine.record(Replied(response_id=f"r{id}", content=(use,)))
    return engine.take_result(id, content).n


def numbers(found):
    return [hit.n for hit in found.hits]


def test_words_are_found_wherever_they_were_said(engine, history):
    said = engine.say("Please mend the flux capacitor").n
    answer = engine.record(Replied(response_id="r", content=(Text(text="The FLUX is low"),))).n
    result = ran(engine, "a", "1.21 gigawatts of fluxes")
    assert set(numbers(history.search("flux"))) == {said, answer, result}
    assert numbers(history.search("gigawatt")) == [result]
    assert numbers(history.search('"flux capacitor"')) == [said]


def test_the_index_follows_a_session_that_runs(engine, history):
    first = engine.say("alpha").n
    assert numbers(history.search("alpha")) == [first]
    snipped = engine.record(Snipped(targets=(first,)))
    engine.record(Undone(target=snipped.n))
    second = engine.say("alpha again").n
    assert set(numbers(history.search("alpha"))) == {first, second}


def test_a_hit_says_what_it_is_and_where_the_words_stand(engine, history):
    body = "one\ntwo\nthe needle, password=hunter2hunter2 AKIAIOSFODNN7EXAMPLQ\nfour\n"
    n = ran(engine, "toolu_1", body, name="Read", file_path="/src/a.py")
    [hit] = history.search("needle").hits
    assert (hit.n, hit.kind, hit.tool, hit.tool_use_id) == (n, "result", "Read", "toolu_1")
    assert (hit.target, hit.line, hit.lines, hit.chars) == ("/src/a.py", 3, 4, len(body))
    assert hit.snippet.startswith("the needle")
    assert "AKIAIOSFODNN7EXAMPLQ" not in hit.snippet


def test_what_left_the_view_comes_before_what_the_model_still_sees(engine, history):
    old, new = ran(engine, "a", "needle one"), ran(engine, "b", "needle needle needle")
    engine.record(Cleared(ids=("a",), texts=("gone",)))
    found = history.search("needle")
    assert [(hit.n, hit.is_shown) for hit in found.hits] == [(old, False), (new, True)]


def test_text_without_spaces_is_found_as_it_stands(engine, history):
    n = engine.say("設定ファイルを直してください").n
    assert numbers(history.search("ファイル")) == [n]
    other = engine.say("xylophonequartet").n
    assert numbers(history.search("phonequart")) == [other]


def test_what_touched_a_file_is_found_by_its_path_or_its_end(engine, history):
    read = ran(engine, "a", "def f(): ...", name="Read", file_path="/w/src/app.py")
    edit = ran(engine, "b", "edited needle", name="Edit", file_path="src/app.py")
    ran(engine, "c", "needle", name="Read", file_path="/w/src/other_app.py")
    assert numbers(history.search(file="src/app.py")) == [edit, read]
    assert numbers(history.search(file="/w/src/app.py")) == [edit, read]
    assert numbers(history.search("needle", file="app.py")) == [edit]
    assert history.search(file="pp.py").total == 0


def test_a_result_is_opened_by_its_tool_use_or_its_number(engine, history):
    body = "line\r\n\ttwo \x00\u2028é🙂\n\n"
    n = ran(engine, "toolu_1", body)
    engine.record(Cleared(ids=("toolu_1",), texts=("gone",)))
    for id in ("toolu_1", str(n), f"#{n}", f" #{n} "):
        assert history.open(id).page.text == body


def test_a_body_on_disk_is_read_from_there(engine, history):
    body = "".join(f"line {i}\n" for i in range(5_000))
    ran(engine, "big", body)
    opened = history.open("big", lines="4000-4001")
    assert opened.page.text == "line 3999\nline 4000\n"
    assert history.open("big").page.text == body
    assert numbers(history.search("4321")) == [engine.view.history[-1].n]


def test_what_stands_for_others_opens_to_what_it_stands_for(engine, history):
    first = engine.say("the question").n
    result = ran(engine, "a", "the result")
    line = engine.record(Collapsed(first=first, last=result, text="[a line]")).n
    summary = engine.record(Compacted(first=first, last=line, summary=(Text(text="a summary"),))).n
    snip = engine.record(Snipped(targets=(first,))).n
    cleared = engine.record(Cleared(ids=("a",), texts=("",))).n
    for n in (line, summary):
        text = history.open(f"#{n}").page.text
        assert f"[#{first} user]\nthe question\n" in text
        assert f"[#{result} result]\nthe result\n" in text
    assert "[a line]" in history.open(f"#{line}").page.text
    assert history.open(str(snip)).page.text == "the question"
    assert history.open(str(cleared)).page.text == "the result"


def test_a_span_of_messages_is_opened_together(engine, history):
    one, two = engine.say("one").n, engine.say("two", hidden=True).n
    opened = history.open(f"#{one}-#{two}")
    assert opened.page.text == f"[#{one} user]\none\n[#{two} aside]\ntwo\n"
    assert opened.title == f"#{one} to #{two}"


def test_a_span_ends_with_the_whole_of_its_last_step(engine, history):
    said = engine.say("go").n
    uses = tuple(ToolUse(id=id, name="Bash", input={"command": f"make {id}"}) for id in ("a", "b"))
    answer = engine.record(Replied(response_id="r", content=uses)).n
    engine.take_result("a", "first"), engine.take_result("b", "second")
    engine.say("and later")
    text = history.open(f"#{said}-#{answer}").page.text
    assert text.endswith("first\n[#4 result]\nsecond\n".replace("#4", f"#{answer + 2}"))
    assert "and later" not in text


def test_everything_in_an_answer_is_told(engine, history):
    content = (
        Thinking(thinking="hm", signature="x"),
        Text(text="so"),
        ToolUse(id="a", name="Read", input={"file_path": "x"}),
        Opaque(raw={"type": "tomorrow"}),
    )
    n = engine.record(Replied(response_id="r", content=content)).n
    told = history.open(str(n)).page.text
    assert told.split("\n") == [
        "[thinking]",
        "hm",
        "so",
        "[calls Read, id a]",
        "file_path: x",
        '{"type":"tomorrow"}',
    ]
    engine.take_result("a", (Text(text="seen"), IMAGE))
    opened = history.open("a")
    assert opened.page.text == "seen\n[an image was here: image/png]"
    assert opened.media == (IMAGE,)
    assert history.open("a", chars="3-").media == ()


def test_a_number_of_an_answer_leads_to_its_results(engine, history):
    pieces = [
        Thinking(thinking="let me see", signature="x"),
        Text(text="I run it."),
        ToolUse(id="a", name="Bash", input={"command": "make"}),
    ]
    numbers = [engine.record(Replied(response_id="r", content=(each,))).n for each in pieces]
    result = engine.take_result("a", "all green").n
    opened = {history.open(f"#{n}").page.text for n in numbers}
    assert opened == {
        f"[#{numbers[0]} answer]\n[thinking]\nlet me see\n"
        f"[#{numbers[1]} answer]\nI run it.\n"
        f"[#{numbers[2]} answer]\n[calls Bash, id a]\n$ make\n"
        f"[#{result} result]\nall green\n"
    }
    assert history.open(f"#{result}").page.text == "all green"
    assert history.open(f"#{numbers[1]}-#{numbers[1]}").page.text == "I run it."


def test_a_call_is_found_with_its_result(engine, history):
    n = ran(
        *(engine, "a", "The file was updated."),
        name="Edit",
        file_path="/src/limits.py",
        old_string="RETRIES = 3",
        new_string="RETRIES = 5",
    )
    [hit] = history.search("how many retries").hits
    assert (hit.n, hit.kind) == (n, "result")
    assert "old_string: RETRIES = 3\nnew_string: RETRIES = 5\nThe file was updated." in hit.passage


def test_a_question_in_plain_words_finds_the_place(engine, history):
    for i in range(30):
        ran(engine, f"x{i}", f"a log of the user's files, branch {i}: nothing of note")
    asked = engine.say("Which of the branches counts as the trunk?").n
    answer = engine.record(
        Replied(response_id="r", content=(Text(text="getDefaultBranch() asks origin/HEAD."),))
    ).n
    for question in ("how is the default branch determined", "what tells the trunk"):
        first = history.search(question).hits[0]
        assert first.n in (asked, answer) and "origin/HEAD" in first.passage


def test_phrases_files_and_kinds_narrow_a_search(engine, history):
    said = engine.say("mend the parser, the build fails").n
    failed = engine.take_result(*_called(engine, "a", "Bash", command="make"), is_error=True).n
    edited = ran(engine, "b", "updated", name="Edit", file_path="/src/parser.py")
    read = ran(engine, "c", "the parser, the build", name="Read", file_path="/src/parser.py")
    assert numbers(history.search("kind:user")) == [said]
    assert numbers(history.search("kind:error")) == [failed]
    assert numbers(history.search("file:parser.py")) == [read, edited]
    assert numbers(history.search("kind:edit file:parser.py")) == [edited]
    assert history.search('"the parser, the build"').total == 2
    assert numbers(history.search('"the parser, the build" kind:read')) == [read]


def test_text_without_spaces_is_searched_by_its_characters(engine, history):
    wanted = engine.say("我们修复了缓存失效的问题").n
    engine.say("测试全部通过")
    engine.say("缓存很大")
    assert numbers(history.search("缓存 失效"))[0] == wanted
    assert numbers(history.search("失效缓存"))[0] == wanted
    assert history.search("缓存 失效").hits[0].line == 1
    assert history.search("缓存").total == 2
    assert history.search("日志").total == 0


def _called(engine, id, name, **given):
    engine.record(Replied(response_id=id, content=(ToolUse(id=id, name=name, input=given),)))
    return id, "the parser fails"


def test_a_short_record_is_shown_with_what_follows(engine, history):
    asked = engine.say("does the old zebra have it?").n
    engine.record(Replied(response_id="r", content=(Text(text="Yes, the zebra has stripes."),)))
    found = history.search("old zebra")
    assert numbers(found) == [asked] and (found.total, found.reached) == (2, 2)
    assert found.hits[0].passage.endswith("[#3 answer] Yes, the zebra has stripes.")


def test_the_same_lines_read_again_are_listed_once(engine, history):
    body = "".join(f"{i}\n" for i in range(500)) + "the zebra\n"
    ran(engine, "a", body, name="Read", file_path="/z")
    again = ran(engine, "b", body, name="Read", file_path="/z")
    found = history.search("zebra")
    assert (numbers(found), found.total) == ([again], 2)


@pytest.mark.parametrize("id", ["nobody", "#999", "../../etc/passwd", "", "#3-#1"])
def test_what_is_not_there_is_an_error_that_says_so(engine, history, id):
    engine.say("hello")
    with pytest.raises(NotInHistory):
        history.open(id)


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("#99999", "there is no #99999; the history reaches from #1 to #"),
        ("#99990-#99999", "there is no #99990 to #99999; the history reaches from #1"),
        ("#5-#2", "#5-#2 ends before it begins; ask for #2-#5"),
        ("9" * 5_000, "9…' is not a message or tool use here"),
    ],
)
def test_numbers_that_cannot_be_are_told_apart(engine, history, id, said):
    engine.say("hello")
    with pytest.raises(NotInHistory) as caught:
        history.open(id)
    assert said in str(caught.value) and len(str(caught.value)) < 200


def test_a_line_that_is_not_there_is_an_error_with_the_number_of_lines(engine, history):
    n = engine.say("a\nb").n
    with pytest.raises(NotInHistory, match="there are 2 lines; there is no line 3"):
        history.open(str(n), lines="3")


def test_answers_of_the_history_do_not_find_themselves(engine, history):
    original = ran(engine, "a", "needle")
    again = ran(engine, "h", "#3 result: needle", name="History", query="needle")
    assert numbers(history.search("needle")) == [original]
    assert history.open("h").page.text == "#3 result: needle"
    assert again != original


def test_the_index_is_private(engine, history):
    engine.say("alpha")
    history.search("alpha")
    file = engine.log.path.with_suffix("") / NAME
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_second_look_indexes_only_what_is_new(engine, history):
    engine.say("alpha")
    history.search("alpha")
    history.close()
    read = []
    directory = engine.log.path.with_suffix("")
    later = History(lambda: engine.view.history, directory=directory, session="s")
    record = later._words._read
    later._words._read = lambda entry: read.append(entry.n) or record(entry)
    n = engine.say("alpha too").n
    assert len(later.search("alpha").hits) == 2
    assert read == [n]
    later.close()


def test_an_index_that_is_damaged_missing_or_anothers_is_rebuilt(engine, history):
    n = engine.say("alpha").n
    assert numbers(history.search("alpha")) == [n]
    history.close()
    directory = engine.log.path.with_suffix("")
    file = directory / NAME
    whole = file.read_bytes()
    spoilt = [b"no database at all" * 100, b"", whole[:5_000], whole[:100] + b"x" * 9_000]
    for body in [*spoilt, whole]:
        file.write_bytes(body)
        again = History(lambda: engine.view.history, directory=directory, session="s")
        assert numbers(again.search("alpha")) == [n]
        again.close()
    file.unlink()
    for session in ("another", "s"):
        again = History(lambda: engine.view.history, directory=directory, session=session)
        assert numbers(again.search("alpha")) == [n]
        again.close()


def test_damage_in_a_running_session_is_mended(engine, history):
    engine.say("alpha " * 100)
    history.search("alpha")
    (engine.log.path.with_suffix("") / NAME).write_bytes(b"\x00" * 20_000)
    n = engine.say("beta").n
    assert numbers(history.search("beta")) == [n]


def test_where_no_index_can_be_kept_the_words_are_found_all_the_same(engine, tmp_path):
    n = engine.say("alpha").n
    place = tmp_path / "locked"
    place.mkdir(mode=0o500)
    for directory in (place, None):
        history = History(lambda: engine.view.history, directory=directory)
        assert numbers(history.search("alpha")) == [n]
        history.close()
    if os.geteuid():
        assert not list(place.iterdir())


def test_what_retention_removed_is_no_longer_found_and_said_to_be_gone(engine, history):
    n = ran(engine, "big", "head\n" + "x\n" * 3_000 + "tailword\n")
    assert numbers(history.search("tailword")) == [n]
    file = engine.log.path.with_suffix("") / "tool-results" / "big.txt"
    file.unlink()
    engine.record(Swept(files=("tool-results/big.txt",), why="older than 30 days"))
    assert history.search("tailword").total == 0
    opened = history.open("big")
    assert "No such file or directory (older than 30 days)" in opened.trouble
    assert opened.page.text.startswith("head\n")


def test_hits_are_bounded_and_can_be_skipped(engine):
    for i in range(HITS + 3):
        engine.say(f"alpha {i}")
    history = History(lambda: engine.view.history)
    first, second = history.search("alpha"), history.search("alpha", skip=HITS)
    assert (len(first.hits), len(second.hits), first.total) == (HITS, 3, HITS + 3)
    assert not set(numbers(first)) & set(numbers(second))


def test_two_processes_may_look_at_once(engine, history):
    n = engine.say("alpha").n
    directory = engine.log.path.with_suffix("")
    other = History(lambda: engine.view.history, directory=directory, session="s")
    assert numbers(history.search("alpha")) == numbers(other.search("alpha")) == [n]
    later = engine.say("alpha again").n
    assert set(numbers(history.search("alpha"))) == {n, later}
    assert set(numbers(other.search("alpha"))) == {n, later}
    other.close()


def test_what_an_index_knows_and_the_log_does_not_is_left_out(engine, history):
    old = [*engine.view.history, replace(Said(content=(Text(text="alpha"),)), n=2)]
    engine.say("alpha")
    engine.say("alpha and more")
    assert history.search("alpha").total == 2
    reader = History(lambda: old, directory=engine.log.path.with_suffix(""), session="s")
    assert numbers(reader.search("alpha")) == [2]
    reader.close()


def test_every_result_of_a_recorded_session_is_opened_exactly(recorded):
    with open_transcript(recorded) as transcript:
        entries = list(transcript.entries)
    history = History(lambda: entries)
    for entry in entries:
        if isinstance(entry, Ran) and isinstance(entry.content, str):
            assert history.open(f"#{entry.n}").page.text == entry.content
