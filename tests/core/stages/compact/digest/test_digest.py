"""The whole digest: its text for a model, and properties that hold for any session."""

import time
from inspect import cleandoc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages import (
    Document,
    Image,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolUse,
)
from longhold.core.messages.text import quote_rest
from longhold.core.stages.compact.digest import SECTIONS, FactPieces, budget_for
from longhold.core.stages.compact.digest.context import LIMITS
from longhold.core.stages.facts.tool_steps import extract
from longhold.core.view.items import Result, Round, Spoken
from longhold.core.view.tokens import estimate_tokens

PLENTY = 4_000
ROOT = "/home/ann/shop"


def session(talk):
    """Play a short session with a bit of everything."""
    talk.user("Add a --dry-run flag to the importer. Follow docs/spec.md, and do not touch db.py.")
    spec = (
        "# Importer\n" + "Rows are checked before they are written. " * 12 + "\n- never write twice"
    )
    talk.call("Read", spec, file_path=f"{ROOT}/docs/spec.md")
    talk.call("Read", "def run(): pass", file_path=f"{ROOT}/src/importer.py")
    talk.think("I look around. The root cause is that run() commits before the rows are checked.")
    talk.call(
        "Edit",
        "ok",
        file_path=f"{ROOT}/src/importer.py",
        old_string="def run():\n    pass",
        new_string='def run(dry_run=False):\n    log("dry run, nothing written")',
    )
    talk.call("Bash", "Exit code 1\nE   NameError: log", is_error=True, command="pytest -q")
    talk.call(
        "Edit", "ok", file_path=f"{ROOT}/src/importer.py", old_string="x", new_string="import log"
    )
    talk.call("Bash", "12 passed", command="pytest -q")
    talk.call("Bash", "[main 3f9c2ab] Add a dry run\n 1 file changed", command="git commit -am x")
    talk.answer("Done: --dry-run checks all rows and writes none. Shall I push it?")
    talk.user("yes, but only to my fork")
    refused = "not to origin, to the fork"
    talk.call("Bash", f"Not allowed: {refused}.", refused=refused, command="git push origin main")
    talk.call("TodoWrite", "ok", todos=[{"content": "push to the fork", "status": "in_progress"}])
    return talk.items


def test_a_short_session_reads_well(talk):
    told = FactPieces(facts=extract(session(talk))).digest(PLENTY)
    assert told == cleandoc(
        """
        Told from the log, without a model. T1, T2 … are the user's turns; [#n] is message n of the log, which has all of it.
        Paths are relative to /home/ann/shop/src/.

        ## 1. Request and intent
        The user pointed at ../docs/spec.md, read in T1 [#2]; it says:
        | Importer:
        | - never write twice

        ## 3. Files and code
        - importer.py: edited ×2 in T1 [#7]; touched run; put in "dry run, nothing written", dry_run
        - read: ../docs/: spec.md

        ## 4. Errors and fixes
        - T1 [#6] `pytest -q`: Exit code 1 E NameError: log Worked later [#8].
        - T2 [#12] `Bash git push origin main`: Not allowed: not to origin, to the fork.

        ## 5. Problem solving
        - T1 [#4] thought: The root cause is that run() commits before the rows are checked.
        - T1 [#9] commit 3f9c2ab on main: Add a dry run

        ## 6. All user messages, word for word, and what was done
        T1 [#1] User: Add a --dry-run flag to the importer. Follow docs/spec.md, and do not touch db.py.
        - read importer.py [#3]
        - edited importer.py [#5]: run
        | def run(dry_run=False):
        |     log("dry run, nothing written")
        - edited importer.py [#7]: `x` → `import log`
        - `pytest -q` → 12 passed [#8], run ×1 before, failed [#6]
        - `git commit -am x` → [main 3f9c2ab] Add a dry run 1 file changed [#9]
        - said [#10]: Done: --dry-run checks all rows and writes none. Shall I push it?
        T2 [#11] User, asked "Shall I push it?": yes, but only to my fork
        T2 [#12] User, refusing `Bash git push origin main`: not to origin, to the fork

        ## 7. Pending tasks
        - [in progress] push to the fork

        ## 8. Current work
        - on branch main
        - last command [#9]: `git commit -am x` → [main 3f9c2ab] Add a dry run 1 file changed
        - last thought [#4]: I look around. The root cause is that run() commits before the rows are checked.

        ## 9. Next step
        The agent last said [#10]: "Shall I push it?"
        In progress: push to the fork
        """
    )


def test_beside_a_models_summary_only_facts_are_told(talk):
    told = FactPieces(facts=extract(session(talk))).engine_part(PLENTY)
    assert sorted(told) == [1, 3, 4, 5, 6, 7, 8]
    assert "User:" not in told[6]


def test_what_a_model_covered_is_told_after_what_it_did_not(talk):
    for name in ("covered", "missing"):
        talk.call("Edit", "ok", file_path=f"/p/{name}.py", new_string=f"def {name}_{'x' * 90}(): 1")
    told = FactPieces(facts=extract(talk.items)).engine_part(
        75, "It is in covered.py, see covered_" + "x" * 90
    )
    assert "touched missing_x" in told[3]
    assert "touched covered_x" not in told[3]


def test_with_little_room_the_users_words_stay_longest(talk):
    told = FactPieces(facts=extract(session(talk))).digest(330)
    assert "yes, but only to my fork" in told
    assert "Add a --dry-run flag to the importer. Follow docs/spec.md" in told
    assert "Worked with" not in told


def test_a_state_stands_beside_its_message(talk):
    talk.user("Build it")
    talk.user("Never mind.")
    told = FactPieces(facts=extract(talk.items), marks={1: "cancelled by #2"}).digest(PLENTY)
    assert "T1 [#1] User (cancelled by #2): Build it" in told


def test_secrets_are_masked_wherever_they_stand(talk):
    talk.user("my key is hunter2")
    talk.call("Bash", "hunter2", command="echo hunter2")
    facts = extract(talk.items).mask_secrets(lambda text: text.replace("hunter2", "[masked]"))
    told = FactPieces(facts=facts).digest(PLENTY)
    assert "hunter2" not in told
    assert "my key is [masked]" in told


def test_a_secret_is_masked_before_it_is_cut_in_half(talk):
    key = "BEGIN" + "k" * 20_000 + "END"
    talk.user(f"Use this:\n{key}")
    talk.call("Write", "ok", file_path="/a/key.txt", content=key)
    facts = extract(talk.items).mask_secrets(lambda text: text.replace(key, "[masked]"))
    told = FactPieces(facts=facts).digest(PLENTY)
    assert "kkk" not in told


def test_a_huge_paste_keeps_its_ends_and_a_pointer(talk):
    talk.user("Why does this fail?\n" + "noise 123\n" * 50_000 + "It worked yesterday.")
    told = FactPieces(facts=extract(talk.items)).digest(PLENTY)
    assert "T1 [#1] User: Why does this fail?\n| noise 123" in told
    assert "all in [#1] …]" in told
    assert "It worked yesterday." in told
    assert estimate_tokens(told) <= PLENTY


@pytest.mark.parametrize(
    "items",
    [
        [],
        [Spoken(id=1, order=1, content=())],
        [Round(id=1, order=1, response_id="r", content=())],
        [Spoken(id=1, order=1, content=(Image(source={}), Opaque(raw={"type": "x"})))],
        [
            Round(
                id=1, order=1, response_id="r", content=(Opaque(raw={}), RedactedThinking(data=""))
            )
        ],
    ],
    ids=["nothing", "no content", "empty round", "only an image", "only what is unknown"],
)
def test_there_is_always_something_to_read(items):
    told = FactPieces(facts=extract(items)).digest(PLENTY)
    assert told.startswith("Told from the log")
    headings = [line for line in told.splitlines() if line.startswith("## ")]
    assert set(headings) <= {f"## {n}. {title}" for n, title in SECTIONS.items()}
    assert not any(part.strip() in headings for part in told.split("\n\n"))  # each has a text


def test_a_budget_leaves_room_for_the_users_words(talk):
    few = budget_for(5_000, extract(talk.items))
    for _ in range(40):
        talk.user("Please see to it that every last one of these is kept as it stands here.")
    assert few == LIMITS.least_tokens
    assert budget_for(5_000, extract(talk.items)) > few + 40 * 15
    assert budget_for(10_000_000, extract(talk.items), 0) == LIMITS.most_tokens


def test_a_large_segment_is_told_in_a_blink(talk):
    for i in range(150):
        talk.user(f"Look at part_{i} please.")
        talk.call("Read", "def x_y(): return 12\n" * 150, file_path=f"/a/b/part_{i}.py")
        talk.call("Bash", "ok done\n" * 60, command=f"pytest part_{i}")
    began = time.process_time()
    FactPieces(facts=extract(talk.items)).digest(9_000)
    assert time.process_time() - began < 1


TEXTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "",
            "```",
            "日本語のテキスト。",
            "a/b.py --x 12",
            "<command-name>/x</command-name>",
            "\x00\ud800",
        ]
    ),
)
USES = st.builds(
    lambda name, key, value: (name, {key: value}),
    st.sampled_from(["Edit", "Bash", "Read", "Grep", "TodoWrite", "AskUserQuestion", "Task", "x"]),
    st.sampled_from(["file_path", "command", "pattern", "todos", "questions", "prompt", "plan"]),
    st.one_of(TEXTS, st.integers(), st.none(), st.lists(TEXTS, max_size=2)),
)


@st.composite
def views(draw):
    """Draw a row of items, sane and insane."""
    items = []
    for n in range(1, draw(st.integers(0, 12)) + 1):
        kind = draw(st.sampled_from(["user", "hidden", "summary", "round"]))
        text = draw(TEXTS)
        if kind != "round":
            content = (Text(text=text), *draw(st.sampled_from([(), (Document(source={}),)])))
            is_summary = kind == "summary"
            items.append(
                Spoken(
                    id=n,
                    order=n,
                    content=content,
                    kind="summary" if is_summary else "said",
                    hidden=kind == "hidden",
                )
            )
            continue
        name, given_input = draw(USES)
        use = ToolUse(id=f"t{n}", name=name, input=given_input)
        result = Result(
            id=n, tool_use_id=f"t{n}", content=draw(TEXTS), is_error=draw(st.booleans())
        )
        items.append(
            Round(
                id=n,
                order=n,
                response_id=f"r{n}",
                content=(Thinking(thinking=text), Text(text=text), use),
                results=draw(st.sampled_from([(), (result,)])),
            )
        )
    return items


@given(views(), st.integers(300, 3_000))
def test_any_view_is_told_within_its_budget_and_the_same_each_time(items, budget):
    told = FactPieces(facts=extract(items)).digest(budget)
    assert estimate_tokens(told) <= budget
    assert told == FactPieces(facts=extract(items)).digest(budget)


@given(views())
def test_every_message_of_the_user_is_there_word_for_word(items):
    facts = extract(items)
    told = FactPieces(facts=facts).digest(50_000)
    assert all(quote_rest(words.text.strip("\n")) in told for _, words in facts.words())
