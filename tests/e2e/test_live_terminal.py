"""The chat on its live screen, in a real pseudo-terminal, against the simulator over HTTP."""

import threading
import time

import pytest

from casting import until
from lazy import needs
from longhold.cli.slash_table import SLASH
from longhold.core.log.entries import Said
from longhold.core.log.stores import default_store
from longhold.core.messages import Image, text_of
from longhold.simulator import BrainAnswer, BrainRequest, SimulatorSettings, run_simulator
from longhold.simulator.brains import text, tool_use
from terminal import Terminal

needs("anthropic", "prompt_toolkit", "pyte")

pytestmark = pytest.mark.slow

MODEL = "simulated/claude-sonnet-5-5"
WORKER = {
    "description": "count the masts",
    "prompt": "Count the masts.",
    "name": "ada",
    "run_in_background": True,
}
MARKDOWN = "# Masts\n\nThere are **three** masts:\n\n- fore\n- main\n- mizzen\n\nThat is all."
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15"
    b"\xc4\x89\x00\x00\x00\rIDATx\x9cc\x00\x01\x00\x00\x05\x00\x01\r\n-\xb4\x00\x00\x00\x00IEND\xaeB`\x82"
)


ANSWERS = {
    "send someone": tool_use("Agent", WORKER),
    "print": tool_use("Bash", {"command": "seq 1 50"}),
    "sleep": tool_use("Bash", {"command": "echo begun; sleep 60"}),
    "make": tool_use("Bash", {"command": "touch made"}),
    "stream": text("word " * 200),
    "long": text("The harbour has many masts. " * 1_500 + "The end."),
    "markdown": text(MARKDOWN),
}


class Harbour:
    """Answers by what it was told last; `hold` keeps it silent until it is set."""

    def __init__(self):
        self.hold = threading.Event()

    async def answer(self, request: BrainRequest) -> BrainAnswer:
        last = request.messages[-1]["content"][-1]
        words = last.get("text", "")
        if words == "Count the masts." or "hang" in words[-20:]:
            await until(self.hold.is_set)
            return BrainAnswer(blocks=(text("There are three masts."),))
        is_result = last["type"] == "tool_result"
        said = text("The tool has run.") if is_result else ANSWERS.get(words) or heard(words)
        return BrainAnswer(blocks=(said,))


def heard(words):
    if words.startswith("[File "):
        return text(f"Read {words.split()[8]!r}.")
    if "A side question from the user" in words:
        return text(f"Beside: {words.splitlines()[-1]}")
    if "<agent id" in words:
        return text("So: three masts.")
    if "about to say something" in words:
        return text("Count the anchors")
    return text(f"Heard {words[-30:]!r}.")


@pytest.fixture
def brain():
    return Harbour()


@pytest.fixture
def pace():
    """Seconds between the events of an answer."""
    return 0.0


@pytest.fixture
def simulator(brain, pace):
    with run_simulator(brain, SimulatorSettings(between_events_seconds=pace)) as server:
        yield server
        brain.hold.set()


@pytest.fixture
def chat(tmp_path, simulator):
    with started(tmp_path, simulator) as terminal:
        yield terminal


class started(Terminal):
    """A chat that is ready to be typed into."""

    def __init__(self, directory, simulator, *words, env=None, **size):
        options = ["chat", "--base-url", simulator.url, "--model", MODEL, *words]
        super().__init__(options, directory, env=env, **size)

    def __enter__(self):
        self.see("% left")
        return self

    def see_input(self, text):
        """Wait until this stands in the input, and nothing else."""
        self.see(f"───\n> {text}".rstrip() + "\n")

    def __exit__(self, *_):
        self.close()


def said(session=0):
    store = default_store()
    entries = store.load(store.sessions()[session].id).entries
    return [e for e in entries if isinstance(e, Said) and not e.hidden]


def words_said(session=0):
    return [text_of(entry.content) for entry in said(session)]


def test_input_is_edited_recalled_completed_and_of_any_size(chat, tmp_path):
    (tmp_path / "masts.txt").write_text("three")
    chat.type("helo\x1b[Dl\r")
    chat.see("Heard 'hello'.")
    chat.type("one\\\rtwo\r")
    chat.see("> one")
    chat.type("\x1b[A\x1b[A\x1b[A")
    chat.see("> hello", gone=("^[[",))
    chat.type("\x15see @mas")
    chat.see("masts.txt")
    chat.type("\t\r\r")
    chat.see("masts.txt is attached", "Read 'three'.")
    chat.type("/contxt\r")
    chat.see("did you mean /context?")
    long = "\n".join(f"line {n} of a long paste" for n in range(40_000))
    chat.paste(long)
    chat.see("[paste 1: 40,000 lines, ")
    chat.type(" hang\r")
    chat.see("Esc interrupts")
    chat.type("\x1b")
    chat.see("Interrupted.")
    chat.type("\x04")
    assert chat.end() == 0
    assert words_said()[:3] == ["hello", "one\ntwo", "see @masts.txt"]
    assert words_said()[3] == f"{long} hang"
    assert len(words_said()) == 4


def test_answers_are_markdown_and_tools_are_folded(chat, tmp_path):
    chat.type("markdown\r")
    shown = chat.see("That is all.")
    assert "**" not in shown
    assert "• fore" in shown
    chat.type("print\r")
    shown = chat.see("The tool has run.")
    assert "● Bash seq 1 50" in shown
    assert "… 47 more lines (Ctrl-O opens)" in shown
    assert "\n    44\n" not in shown
    chat.type("\x0f")
    chat.see("\n  44\n", "\n  50\n")
    (tmp_path / "mast.png").write_bytes(PNG)
    chat.paste(str(tmp_path / "mast.png"))
    chat.type("what is it\r")
    chat.see("mast.png what is it", "Heard ''.")  # the image is the last block
    assert [type(block) for block in said()[-1].content][1:] == [Image]


@pytest.mark.parametrize("pace", [0.05])
def test_words_typed_while_it_works_are_kept_shown_and_editable(chat):
    chat.type("stream\r")
    chat.see("word word")
    chat.type("first\r")
    chat.see("queued: first")
    chat.type("secnd\r")
    chat.see("queued: secnd")
    chat.type("\x1b[A")
    chat.see("> secnd", gone=("queued: secnd",))
    chat.type("\x1b[D\x1b[Do\r")
    chat.see("queued: second")
    chat.type("half")
    chat.see("Heard 'first'.", "Heard 'second'.", "> half", gone=("queued",))
    assert words_said() == ["stream", "first", "second"]


def test_commands_that_look_do_not_wait_and_those_that_change_say_that_they_do(chat, brain):
    chat.type("hang\r")
    chat.see("Esc interrupts")
    for words, shown in (
        ("/context", "free until space is freed"),
        ("/cost", "no call has recorded usage"),
        ("/jobs", "No job is running."),
        ("/pin", "Nothing is pinned."),
        ("/history hang", "hang"),
        ("/history", "/history needs words"),
        ("/ask how many", "Beside: how many"),
    ):
        chat.type(f"{words}\r")
        chat.see(f"> {words}\n", shown, "Esc interrupts")
    chat.type("/undo\r/memory off\r")
    chat.see("waits for the answer: /undo", "waits for the answer: /memory off")
    brain.hold.set()
    chat.see("There are three masts.", "memory.on = False", gone=("waits for the answer",))
    assert words_said() == ["hang"]


def test_what_is_typed_right_behind_an_answer_belongs_to_the_input(chat, brain):
    chat.type("sleep\r")
    chat.see("Allow?")
    chat.type("n\rafter\r")
    chat.see("Stopped because you refused the call", "Heard 'after'.")
    chat.type("/mode\r")
    chat.see("Mode")
    chat.type("\rhalf")
    chat.see("mode: ask")
    chat.see_input("half")


def test_one_key_answers_a_question_and_another_word_is_asked_about_again(chat, tmp_path):
    chat.type("make\r")
    chat.see("Allow?", "r = no, with a reason")
    chat.type("/help\r")
    chat.see("'/help' is not an answer")
    time.sleep(0.5)
    chat.type("y")
    chat.see("The tool has run.")
    assert (tmp_path / "made").exists()
    chat.type("sleep\r")
    chat.see("Allow? y = yes", gone=("Esc interrupts",))
    time.sleep(0.5)
    chat.type("r")
    chat.see("Why not?")
    chat.type("it takes a minute\r")
    chat.see("Stopped because you refused the call")
    chat.see_input("")


@pytest.mark.parametrize("pace", [0.02])
def test_a_key_meant_for_the_input_allows_nothing(chat, tmp_path):
    chat.type("make\rwh")
    chat.see("Allow?")
    time.sleep(0.5)
    chat.type("y")
    chat.see("> y")
    assert not (tmp_path / "made").exists()
    chat.type("\x15n\r")
    chat.see("Stopped because you refused the call")
    chat.see_input("wh")


def test_tab_completes_however_fast_it_comes_and_twice_changes_nothing(chat, tmp_path):
    (tmp_path / "caravel.txt").write_text("three")
    chat.type("/hel\t")
    chat.see_input("/help")
    chat.type("\t")
    chat.type("\x15")
    chat.see_input("")
    chat.type("see @cara\t\t\t end")
    chat.see_input("see @caravel.txt end")


def test_shift_tab_goes_through_the_modes_and_never_to_bypass(chat):
    for mode in ("accept_edits", "plan", "ask", "accept_edits"):
        chat.type("\x1b[Z")
        chat.see(f"sonnet-5-5 · {mode}")
    assert "mode: bypass" not in chat.text()
    assert "> /mode next" not in chat.text()


def test_a_list_is_searched_by_typing_and_leaves_what_was_typed_before(chat):
    chat.type("/model\r")
    chat.see("type to search", "claude-opus-5")
    chat.type("haiku 4")
    chat.see("Model (now simulated/claude-sonnet-5-5)  haiku 4", gone=("claude-opus-5",))
    chat.type("zzz")
    chat.see("no match: Ctrl-U clears the search")
    chat.type("\r\x1b")
    chat.see(gone=("no match",))
    chat.see_input("")


def test_every_moment_can_be_interrupted_and_the_last_says_how_to_resume(chat, brain):
    chat.type("hang\r")
    chat.see("Esc interrupts")
    chat.type("\x03")
    chat.see("Interrupted.", gone=("Esc interrupts",))
    chat.type("/mode bypass\rsleep\r")
    chat.see("begun")
    chat.type("\x1b")
    chat.see("✗ Bash echo begun; sleep 60  stopped after", "Interrupted while a tool ran")
    chat.type("/mode ask\rsleep\r")
    chat.see("Allow?")
    chat.type("\x03")
    chat.see("Stopped because you refused the call")
    chat.type("half a thought")
    chat.see("> half a thought")
    chat.type("\x03")
    chat.see(gone=("> half a thought",))
    chat.type("\x03")
    chat.see("Ctrl-C again leaves.")
    chat.see(gone=("Ctrl-C again leaves.",))
    chat.type("\x03\x03")
    chat.see("` resumes this session.", "Stopped.")
    assert chat.end() == 130
    session = default_store().sessions()[0].id
    assert f"longhold chat --resume {session}" in chat.text()


def test_ctrl_c_ends_an_answer_and_keeps_what_was_said_of_it(chat):
    chat.type("long\r")
    chat.see("many masts")
    chat.type("\x03")
    chat.see("Interrupted. The answer so far is kept.", gone=("Esc interrupts",))
    assert "The end." not in chat.text()
    chat.type("and now\r")
    chat.see("Heard 'and now'.")


def test_ctrl_c_closes_a_list_and_leaves_before_there_is_a_session(chat, tmp_path, simulator):
    chat.type("/mode\r")
    chat.see("type to search")
    chat.type("\x03")
    chat.see(gone=("type to search",))
    chat.see_input("")
    chat.type("\x03\x03")
    assert chat.end() == 130
    options = ["chat", "--base-url", simulator.url, "--model", MODEL]
    early = Terminal(options, tmp_path)
    try:
        early.see("opening the session")
        early.type("\x03")
        assert early.end() == 130
        assert "Traceback" not in early.text()
        assert "resumes this session" not in early.text()  # nothing was said
    finally:
        early.close()


def test_a_closed_terminal_leaves_a_session_that_goes_on(tmp_path, simulator):
    with started(tmp_path, simulator) as chat:
        chat.type("remember the harbour\r")
        chat.see("Heard 'remember the harbour'.")
        chat.hang_up()
        chat.child.wait(20)
    with started(tmp_path, simulator, "--resume", "newest") as again:
        again.see(
            "> remember the harbour",
            "Heard 'remember the harbour'.",
            "Where you were:",
            "the user last said [#",
            "remember the harbour",
        )
        again.type("and the masts\r")
        again.see("Heard 'and the masts'.")
    assert words_said() == ["remember the harbour", "and the masts"]


def test_an_agent_that_ends_wakes_the_model_and_disturbs_nobody_who_types(chat, brain):
    chat.type("send someone\r")
    chat.see("The tool has run.", "1 job")
    chat.type("hello wor")
    chat.see("> hello wor")
    brain.hold.set()
    chat.see("ada [general] completed", "> hello wor", gone=("So: three masts.",))
    chat.type("\x15")
    chat.see("So: three masts.", gone=("1 job",))
    assert words_said() == ["send someone"]


def test_ctrl_z_is_no_character_of_a_message(chat):
    chat.type("half")
    chat.see_input("half")
    chat.type("\x1a")
    chat.type(" way\r")
    chat.see("Heard 'half way'.")


def test_the_screen_follows_the_terminals_size(chat):
    chat.type("markdown\r")
    chat.see("That is all.")
    chat.type("some words")
    chat.resize(20, 34)
    chat.see("───\n> some words\n9.")  # no bar
    chat.resize(5, 20)
    chat.see("> some words")
    chat.resize(30, 120)
    chat.see("sonnet-5-5 · ask", "> some words")


def test_a_suggestion_is_offered_and_taken_with_tab(tmp_path, simulator):
    with started(tmp_path, simulator, env={"LONGHOLD_BUDGET_OWN_SHARE": "0"}) as chat:
        chat.type("hello\r")
        chat.see("> Count the anchors")
        chat.type("\t\r")
        chat.see("Heard 'Count the anchors'.")
    assert words_said() == ["hello", "Count the anchors"]


def test_going_back_offers_to_restore_or_to_compact(chat):
    for words in ("one", "two"):
        chat.type(f"{words}\r")
        chat.see(f"Heard '{words}'.")
    chat.type("\x1b\x1b")
    chat.see("Go back to before which message?", "two", "one")
    chat.type("\r")
    chat.see("go back there, and edit it", "compact up to")
    chat.type("\r")
    chat.see("Files in the project stay as they are.")
    chat.see_input("two")
    chat.type("!\r")
    chat.see("Heard 'two!'.")
    assert sorted(words_said(n) for n in range(2)) == [["one", "two"], ["one", "two!"]]


COMMANDS = {
    "/help": "press twice to go back",
    "/context": "free until space is freed",
    "/compact": "` restores the history.",
    "/undo": "was undone: compacted",
    "/redo": "is re-applied: compacted",
    "/drop 999": "#999 is not in the view",
    "/pin": "Nothing is pinned.",
    "/ask what is it": "Beside: ",
    "/history masts": "masts",
    "/explain": "forked: compact asked",
    "/cost": "by source",
    "/cache": "read from the cache",
    "/notes": "## Title",
    "/memory": "No memories for this project.",
    "/remember the mizzen is new": "the user said so",
    "/dream try": "Nothing to tidy.",
    "/jobs kill 9": "no job '9' is running",
    "/model": "Model (now ",
    "/login": "Which key?",
    "/mode plan": "mode: plan",
    "/permissions": "mode   plan: read and plan only",
    "/mcp": "No MCP server is connected.",
    "/hooks": "No hook is configured.",
    "/export out.json": "out.json: ",
    "/branch": "session ",
    "/rewind": "Go back to before which message?",
    "/clear": "session ",
    "/resume": "Resume which session?",
    "/exit": "",
}
"""Every command, and what shows that it did its work."""


def test_every_command_works(chat, tmp_path):
    assert {words.split()[0] for words in COMMANDS} == set(SLASH)
    chat.type("long\r")
    chat.see("The end.")
    for words, shown in COMMANDS.items():
        chat.type(f"{words}\r")
        if words == "/exit":
            break
        chat.see(shown, seconds=20)
        if "?" in shown or "(now" in shown:
            chat.type("\x1b")
            chat.see(gone=("Enter, Esc)",))
        chat.see_input("")
    assert chat.end() == 0
    assert (tmp_path / "out.json").exists()
    assert "Traceback" not in chat.text()
