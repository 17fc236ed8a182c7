"""Command lines that surely change nothing."""

import pytest

from holdfast.tools.commands import is_read_only_command


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "cat a.txt | head -5",
        "git status",
        "git log --oneline -5 && git diff HEAD~1",
        "grep -rn 'foo(bar)' src | wc -l",
        'grep "two words" a; ls',
        "find . -name '*.py' 2>/dev/null",
        "ls missing 2>&1 | tail -3",
        "sort a.txt | uniq -c",
        "rg 'a > b' src",
    ],
)
def test_looking_is_read_only(command):
    """They may run beside others."""
    assert is_read_only_command(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "rm -rf x",
        "ls > out.txt",
        "ls >> out.txt",
        "cat < in.txt",
        "echo $(rm x)",
        "echo `rm x`",
        'echo "$(rm x)"',
        "echo \"it's $(rm x)\" 'b'",
        "echo \\'$(rm x)\\'",
        "ls & rm x",
        "ls; rm x",
        "ls || rm x",
        "ls\nrm x",
        "X=1 ls",
        "cd src",
        "find . -delete",
        "find . -name x -exec rm {} +",
        "sort -o a a",
        "sort -uo a a",
        "uniq in out",
        "git checkout main",
        "git diff --output=x",
        "git -c core.pager=x log",
        "git grep -O'rm x' y",
        "git",
        "date -s tomorrow",
        "env rm x",
        "xargs rm",
        "sed -i s/a/b/ x",
        "sudo ls",
        "/bin/rm x",
        "{ rm x; }",
        "(rm x)",
        "ls |",
        "rg --pre ./evil x",
        "echo 'unclosed",
        "ls # rm",
    ],
)
def test_whatever_could_change_something_is_not(command):
    """In doubt the answer is no."""
    assert not is_read_only_command(command)
