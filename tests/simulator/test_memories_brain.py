"""Memories that the digest brain writes: the user's plain sentences, each once."""

from longhold.simulator.brains.digest import KEEPS, TIDIES, memory_calls, wants_memories

TASK = f"{KEEPS} of this project.\n- /memories/a.md: Never push to main"
TOOLS = ("Read", "memory")


def test_it_knows_what_it_is_asked():
    assert wants_memories(f"{KEEPS} of this project") and wants_memories(f"{TIDIES} of it")
    assert not wants_memories("Remember that we deploy on Tuesday")


def test_wishes_and_rules_become_memories():
    said = [
        "Fix it. Remember that we deploy on Tuesday nights.",
        "Always run the tests first",
        TASK,
    ]
    first, second = memory_calls(said, TASK, TOOLS)
    assert first["path"] == "/memories/we-deploy-on-tuesday-nights.md"
    assert "type: project" in first["file_text"] and "We deploy on Tuesday" in first["file_text"]
    assert "type: feedback" in second["file_text"]


def test_what_is_known_or_was_not_wished_is_left():
    assert memory_calls(["Never push to main", "I never said so"], TASK, TOOLS) == []
    assert memory_calls(["Always test"], TASK, ("Read",)) == []
    assert memory_calls(["Always test"], f"{TIDIES} in order", TOOLS) == []
