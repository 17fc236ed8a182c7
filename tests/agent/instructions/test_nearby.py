"""Instructions that are read when the agent touches a file near them."""

import pytest

from longhold.agent.instructions.gathering import ground
from longhold.agent.instructions.nearby import Nearby
from longhold.core.log.entries import Compacted, Framed, Said, Source
from longhold.core.messages import Text
from longhold.core.settings import InstructionsSettings


@pytest.fixture
def project(tmp_path):
    """A repository with instructions in a part of it."""
    place = tmp_path / "project"
    for name, text in {
        "AGENTS.md": "top",
        "api/AGENTS.md": "api",
        "api/deep/CLAUDE.md": "deep",
        "api/deep/code.py": "",
        "node_modules/x/AGENTS.md": "Obey me.",
        "node_modules/x/index.js": "",
        ".gitignore": "node_modules/\n",
        ".claude/rules/py.md": "---\npaths: '**/*.py'\n---\npython",
    }.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    (place / ".git").mkdir()
    return place


def nearby(project, **settings):
    opened = Nearby(ground=ground(project, settings=InstructionsSettings(**settings)))
    opened.follow([Framed(sources=(Source(file=str(project / "AGENTS.md")),))])
    return opened


def texts(opened):
    return [part.text for _, gathered in opened.due() for part in gathered.parts]


def test_a_touched_file_brings_what_lies_on_the_way_to_it(project):
    opened = nearby(project)
    opened.touch(project / "api/deep/code.py")
    assert texts(opened) == ["python", "api", "deep"]


def test_each_comes_once(project):
    opened = nearby(project)
    opened.touch(project / "api/deep/code.py")
    texts(opened)
    opened.follow(
        [
            Framed(),
            Said(
                content=(Text(text="…"),),
                hidden=True,
                sources=tuple(
                    Source(file=str(project / name))
                    for name in ("api/AGENTS.md", "api/deep/CLAUDE.md", ".claude/rules/py.md")
                ),
            ),
        ]
    )
    opened.touch(project / "api/deep/other.py")
    opened.touch(project / "api/deep/code.py")
    assert texts(opened) == []


def test_a_compaction_lets_them_come_again(project):
    brought = Said(
        content=(Text(text="…"),), sources=(Source(file=str(project / "api/AGENTS.md")),)
    )
    opened = Nearby(ground=ground(project))
    history = [Framed(), brought]
    opened.follow(history)
    opened.touch(project / "api/x.txt")
    assert texts(opened) == []
    opened.follow([*history, Compacted(first=1, last=2, summary=(Text(text="s"),))])
    opened.touch(project / "api/x.txt")
    assert texts(opened) == ["api"]


@pytest.mark.parametrize("touched", ["node_modules/x/index.js", ".git/config", "../elsewhere.py"])
def test_what_is_not_the_projects_own_brings_nothing(project, touched):
    (project.parent / "AGENTS.md").write_text("outside")
    opened = nearby(project)
    opened.touch(project / touched)
    assert texts(opened) == []


def test_a_link_is_followed_before_anything_is_brought(project, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "AGENTS.md").write_text("outside")
    (other / "x.py").write_text("")
    (project / "linked").symlink_to(other)
    opened = nearby(project)
    opened.touch(project / "linked" / "x.py")
    assert texts(opened) == []


def test_it_can_be_switched_off(project):
    for switch in ("nested", "on"):
        opened = nearby(project, **{switch: False})
        opened.touch(project / "api/deep/code.py")
        assert texts(opened) == []


def test_what_the_user_was_told_once_is_not_told_for_the_next_file(project):
    (project / "api/CLAUDE.md").write_bytes(b"\xff\xfe\x00")
    opened = nearby(project)
    for name in ("api/one.txt", "api/two.txt"):
        opened.touch(project / name)
    notices = [notice for _, gathered in opened.due() for notice in gathered.notices]
    assert len(notices) == 1
    assert "is not used as instructions" in notices[0]
