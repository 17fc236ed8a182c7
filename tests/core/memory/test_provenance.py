"""The sources of a memory are recorded when it is written."""

from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory, parse
from longhold.core.memory.provenance import SOURCES, Provenance, changed_sources, source_hash


def sealed(tmp_path, body, evidence=(), message=7):
    memory = Memory(file="a.md", name="a", description="about", evidence=evidence, body=body)
    change = MemoryChange(file="a.md", text=memory.text, expected="")
    done = Provenance(session="01J", message=message, repository=tmp_path).on(change)
    return parse("a.md", done.text)


def test_evidence_names_the_session_and_the_message_once(tmp_path):
    memory = sealed(tmp_path, "x\n", evidence=("01H#3", "01J#7"))
    assert memory.evidence == ("01H#3", "01J#7")
    assert sealed(tmp_path, "x\n").evidence == ("01J#7",)


def test_files_of_the_repository_are_noted_as_they_are_now(tmp_path):
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "billing.yaml").write_text("a")
    (tmp_path.parent / "secret.txt").write_text("b")
    body = "See deploy/billing.yaml, gone.py, ../secret.txt, /etc/hosts.conf and version 3.14.\n"
    memory = sealed(tmp_path, body)
    assert dict(memory.sources) == {
        "deploy/billing.yaml": source_hash(tmp_path, "deploy/billing.yaml")
    }
    (tmp_path / "deploy" / "billing.yaml").write_text("changed")
    assert changed_sources(memory, tmp_path) == ("deploy/billing.yaml",)


def test_a_memory_about_everything_names_a_few(tmp_path):
    names = [f"f{i}.py" for i in range(SOURCES + 4)]
    for name in names:
        (tmp_path / name).write_text(name)
    assert len(sealed(tmp_path, " ".join(names)).sources) == SOURCES


def test_a_removal_is_left_as_it_is(tmp_path):
    change = MemoryChange(file="a.md", text=None, expected="x", reason="wrong")
    assert Provenance(session="s", message=1, repository=tmp_path).on(change) is change
