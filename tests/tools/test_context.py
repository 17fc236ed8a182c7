"""What the tools of a session share."""

from pathlib import Path

from holdfast.tools.context import Todo, Workplace


def test_paths_are_meant_from_the_working_directory(workplace):
    """Absolute ones and the user's home as they are."""
    assert workplace.resolve("a/../b.py") == workplace.root / "b.py"
    assert workplace.resolve("/x/./y") == Path("/x/y")
    assert workplace.resolve("~/z") == Path.home() / "z"


def test_the_home_of_nobody_is_a_name_like_any_other(workplace):
    """A path that the model made up is looked for and not found; it ends nothing."""
    assert workplace.resolve("~no-such-user/x") == workplace.root / "~no-such-user/x"


def test_paths_are_shown_as_short_as_they_can_be_used(workplace):
    """Outside the working directory they are absolute."""
    workplace.directory = workplace.root / "src"
    assert workplace.shown(workplace.root / "src" / "a.py") == "a.py"
    assert workplace.shown(workplace.root / "b.py") == str(workplace.root / "b.py")


def test_within_means_after_following_links(workplace, tmp_path):
    """A link out of the project leads out of it; scratch and further roots are ours."""
    (workplace.root / "out").symlink_to("/etc")
    (tmp_path / "more").mkdir()
    workplace.more_roots = (tmp_path / "more",)
    assert workplace.is_within(workplace.root / "new" / "file")
    assert workplace.is_within(workplace.scratch / "x")
    assert workplace.is_within(tmp_path / "more" / "x")
    assert not workplace.is_within(workplace.root / "out" / "passwd")
    assert not workplace.is_within(workplace.root / ".." / "x")


def test_a_fork_goes_its_own_way(workplace):
    """It begins with what is known and owns no commands."""
    fork = workplace.fork()
    fork.directory = fork.root / "elsewhere"
    fork.todos = (Todo(content="x", status="pending"),)
    assert workplace.directory == workplace.root
    assert workplace.todos == ()
    assert fork.is_fork
    assert fork.shells is not workplace.shells
    assert fork.files is not workplace.files


def test_a_workplace_begins_in_its_root(tmp_path):
    """With links followed, as a shell would say it."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    place = Workplace(root=tmp_path / "link", home=tmp_path, scratch=tmp_path)
    assert place.directory == place.root == (tmp_path / "real").resolve()
