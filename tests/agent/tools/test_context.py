"""The state that the tools of a session share."""

from pathlib import Path

from longhold.core.tools.context import Todo, ToolContext


def test_paths_are_meant_from_the_working_directory(tool_context):
    assert tool_context.resolve("a/../b.py") == tool_context.root / "b.py"
    assert tool_context.resolve("/x/./y") == Path("/x/y")
    assert tool_context.resolve("~/z") == Path.home() / "z"


def test_the_home_of_nobody_is_a_name_like_any_other(tool_context):
    assert tool_context.resolve("~no-such-user/x") == tool_context.root / "~no-such-user/x"


def test_paths_are_shown_as_short_as_they_can_be_used(tool_context):
    tool_context.directory = tool_context.root / "src"
    assert tool_context.show_path(tool_context.root / "src" / "a.py") == "a.py"
    assert tool_context.show_path(tool_context.root / "b.py") == str(tool_context.root / "b.py")


def test_within_means_after_following_links(tool_context, tmp_path):
    (tool_context.root / "out").symlink_to("/etc")
    (tmp_path / "more").mkdir()
    tool_context.more_roots = (tmp_path / "more",)
    assert tool_context.is_within(tool_context.root / "new" / "file")
    assert tool_context.is_within(tool_context.scratch / "x")
    assert tool_context.is_within(tmp_path / "more" / "x")
    assert not tool_context.is_within(tool_context.root / "out" / "passwd")
    assert not tool_context.is_within(tool_context.root / ".." / "x")


def test_a_fork_goes_its_own_way(tool_context):
    fork = tool_context.fork()
    fork.directory = fork.root / "elsewhere"
    fork.todos = (Todo(content="x", status="pending"),)
    assert tool_context.directory == tool_context.root
    assert tool_context.todos == ()
    assert fork.is_fork
    assert fork.shells is not tool_context.shells
    assert fork.files is not tool_context.files


def test_a_workplace_begins_in_its_root(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    place = ToolContext(root=tmp_path / "link", home=tmp_path, scratch=tmp_path)
    assert place.directory == place.root == (tmp_path / "real").resolve()
