"""Trust covers the files that a command may run: a change of any of them asks again."""

import json
import sys
import time

import pytest

from longhold.agent.hooks import HookContext, Hooks, load_hooks
from longhold.agent.mcp import McpTools, load_servers
from longhold.agent.permissions import read_sections, sources, trust


@pytest.fixture
def project(tmp_path):
    """A project with a script in every place a command may find one."""
    place = tmp_path / "project"
    for name in (
        "hooks/x.sh",
        "x.sh",
        "hooks/deep/x.sh",
        "bin/lib.sh",
        "pkg/mod.py",
        "helper.py",
        ".git/x.sh",
    ):
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("echo ok\n" if name.endswith("sh") else "print('ok')\n")
    (place / "Makefile").write_text("lint:\n\tsh bin/lib.sh\n")
    (place / "package.json").write_text('{"scripts": {"lint": "sh bin/lib.sh"}}')
    (place / "hooks" / "main.sh").write_text('. "$(dirname "$0")/../bin/lib.sh"\n')
    (place / "hooks" / "main.py").write_text("import helper\n")
    (place / "hooks" / "helper.py").write_text("print('ok')\n")
    (place / "tool").write_text("#!/bin/sh\nsh bin/lib.sh\n")
    (place / "tool").chmod(0o755)
    (place / "src").mkdir()
    (place / "src" / "app.py").write_text("print('app')\n")
    (place / ".longhold").mkdir()
    return place


def vouched(project, command, home):
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}
    (project / ".longhold" / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    trust(read_sections("hooks", project, at=home)[0], at=home)
    assert load_hooks(project, at=home).hooks
    return Hooks(hooks=load_hooks(project, at=home).hooks)


REACHED = [
    ("sh ./x.sh", "x.sh"),
    ("sh .git/x.sh", ".git/x.sh"),
    ("cd hooks && ./x.sh", "hooks/x.sh"),
    ("(cd hooks; sh x.sh)", "hooks/x.sh"),
    ("bash < x.sh", "x.sh"),
    ("cat x.sh | sh", "x.sh"),
    ("bash -c 'sh x.sh'", "x.sh"),
    ("bash -c \"bash -c 'cd hooks && . ./x.sh'\"", "hooks/x.sh"),
    ("S=x; sh $S.sh", "x.sh"),
    ("D=hooks; for f in $D/*; do sh $f; done", "hooks/deep/x.sh"),
    ("sh hooks/*/x.sh", "hooks/deep/x.sh"),
    ("sh h*/*.s?", "hooks/x.sh"),
    ("find . -name '*.sh' -exec sh {} +", "bin/lib.sh"),
    ("python3 -m pkg.mod", "pkg/mod.py"),
    ("PYTHONPATH=. python3 -c 'import helper'", "helper.py"),
    ("python3 hooks/main.py", "hooks/helper.py"),
    ("make lint", "Makefile"),
    ("make lint", "bin/lib.sh"),
    ("make -C . lint", "bin/lib.sh"),
    ("npm run lint", "package.json"),
    ("sh hooks/main.sh", "bin/lib.sh"),
    ('"$CLAUDE_PROJECT_DIR"/tool', "tool"),
    ("${LONGHOLD_PROJECT_DIR}/tool --all", "bin/lib.sh"),
    ("env -C hooks sh x.sh", "hooks/x.sh"),
    ("eval $(cat x.sh)", "x.sh"),
    ("xargs -n1 sh < list.txt", "bin/lib.sh"),
    ("sh $(echo eC5zaAo= | base64 -d)", "x.sh"),
]


@pytest.mark.parametrize(("command", "file"), REACHED)
async def test_a_hook_does_not_run_once_a_file_it_may_run_has_changed(
    tmp_path, project, command, file
):
    hooks = vouched(project, command, tmp_path / "home")
    mark = tmp_path / "mark"
    text = f"touch {mark}\n" if file.endswith("sh") else f"import os; os.mknod({str(mark)!r})\n"
    (project / file).write_text(text if "." in file else f"#!/bin/sh\ntouch {mark}\n")
    context = HookContext(
        session="s", transcript=tmp_path / "s", cwd=project, mode="ask", scratch=tmp_path / "t"
    )
    verdict = await hooks.fire("Stop", {}, context)
    assert "files it may run have changed" in verdict.errors[0]
    assert not mark.exists()
    assert load_hooks(project, at=tmp_path / "home").hooks == ()


LOADED = [
    ("node hooks/x.js", {"hooks/x.js": "require('../scripts/util')", "scripts/util.js": ""}),
    ("node hooks/x.js", {"hooks/x.js": "require('./lib')", "hooks/lib/index.js": ""}),
    ("ruby hooks/x.rb", {"hooks/x.rb": "require_relative '../lib/a'", "lib/a.rb": ""}),
    ("npx tsx hooks/x.ts", {"hooks/x.ts": "import {a} from '../lib/a'", "lib/a.ts": ""}),
    ("python3 hooks/y.py", {"hooks/y.py": "from lib import helper", "lib/helper.py": ""}),
    ("python3 hooks/y.py", {"hooks/y.py": "import lib", "hooks/lib/__init__.py": ""}),
    ("python3 hooks/y.py", {"hooks/y.py": "from lib import (\n    one,\n)", "lib/one.py": ""}),
    ("python3 -m tools", {"tools/__main__.py": "from other.part import x", "other/part.py": ""}),
    ("bash hooks/y.sh", {"hooks/y.sh": "python3 -m tools.check", "tools/check.py": ""}),
    ("bash hooks/y.sh", {"hooks/y.sh": '. "$(dirname "$0")/lib/common"', "hooks/lib/common": ""}),
    ("make check", {"Makefile": "include mk/rules", "mk/rules": ""}),
    ("make check", {"Makefile": "check:\n\tpython3 -m tools.check", "tools/check.py": ""}),
    (
        "npm run x",
        {"package.json": '{"scripts": {"x": "node scripts/lint"}}', "scripts/lint.js": ""},
    ),
    ("cmake -P x.cmake", {"x.cmake": "include(sub/y)", "sub/y.cmake": ""}),
    ("perl hooks/x.pl", {"hooks/x.pl": "use lib 'lib'; use My::A;", "lib/My/A.pm": ""}),
    ("npx eslint .", {".eslintrc.js": "module.exports={plugins:['./rules/x']}", "rules/x.js": ""}),
    ("go run ./cmd", {"cmd/main.go": 'import "x/internal/y"', "internal/y/y.go": ""}),
    ("uv run check", {"pyproject.toml": 'check = "pkg.cli:main"', "src/pkg/cli.py": ""}),
    ("./gradlew check", {"gradlew": "", "build.gradle.kts": ""}),
    ("cat h*/xy? | bash", {"hooks/xyz": ""}),
    ("find . -name '*.check' -exec bash {} +", {"a/b.check": ""}),
    *(
        (command, {file: ""})
        for command, file in {
            "task check": "Taskfile.yaml",
            "just check": ".justfile",
            "bazel run //x": "BUILD.bazel",
            "pre-commit run": ".pre-commit-config.yaml",
            "npx jest": "jest.setup.js",
            "mvn verify": ".mvn/jvm.config",
            "docker compose run x": "compose.yml",
        }.items()
    ),
]


@pytest.mark.parametrize(("command", "files"), LOADED)
async def test_a_file_that_another_one_loads_is_covered(tmp_path, project, command, files):
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    hooks = vouched(project, command, tmp_path / "home")
    (project / list(files)[-1]).write_text("changed\n")
    context = HookContext(
        session="s", transcript=tmp_path / "s", cwd=project, mode="ask", scratch=tmp_path / "t"
    )
    verdict = await hooks.fire("Stop", {}, context)
    assert "files it may run have changed" in verdict.errors[0]
    assert load_hooks(project, at=tmp_path / "home").hooks == ()


@pytest.mark.parametrize("command", ["sh ./x.sh", "make lint", "cat", "npx prettier --write ."])
async def test_ordinary_edits_do_not_end_trust(tmp_path, project, command):
    hooks = vouched(project, command, tmp_path / "home")
    (project / "src" / "app.py").write_text("print('edited')\n")
    (project / "src" / "new.py").write_text("print('new')\n")
    context = HookContext(
        session="s", transcript=tmp_path / "s", cwd=project, mode="ask", scratch=tmp_path / "t"
    )
    verdict = await hooks.fire("Stop", {}, context)
    assert "changed" not in " ".join(verdict.errors)
    assert load_hooks(project, at=tmp_path / "home").hooks


async def test_a_server_is_not_started_once_its_program_has_changed(tmp_path, project):
    server = {"command": sys.executable, "args": ["helper.py"], "cwd": str(project / "hooks")}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"s": server}}))
    trust(read_sections("mcpServers", project, at=tmp_path / "home")[0], at=tmp_path / "home")
    servers = load_servers(project, at=tmp_path / "home").servers
    mark = tmp_path / "mark"
    (project / "hooks" / "helper.py").write_text(f"import os; os.mknod({str(mark)!r})\n")
    tools = McpTools(servers)
    lines = await tools.connect()
    await tools.close()
    assert "files it may run have changed" in str(lines)
    assert not mark.exists()
    assert not load_servers(project, at=tmp_path / "home").servers


@pytest.mark.parametrize(
    ("script", "changed"),
    [
        ("make -s lint", "Makefile"),
        ("python3 -m pytest -q", "conftest.py"),
        ("for f in pkg/*; do python3 $f; done", "pkg/new.py"),
        ("python3 bin/$NAME.py", "bin/new.py"),
        ("#" * 300_000 + "\nsh src/zz.sh", "src/zz.sh"),
        ("#" * 5_000_000 + "\nsh src/zz.sh", "src/zz.sh"),
    ],
)
def test_what_a_trusted_script_runs_is_covered(tmp_path, project, script, changed):
    (project / "hooks" / "check.sh").write_text(script)
    (project / "src" / "zz.sh").write_text("echo ok\n")
    vouched(project, "bash hooks/check.sh", tmp_path)
    (project / changed).write_text("changed\n")
    assert not load_hooks(project, at=tmp_path).hooks


def test_installed_packages_do_not_push_the_projects_own_files_out(tmp_path, project, monkeypatch):
    monkeypatch.setattr(sources, "INSTALLED_FILES", 3)
    for number in range(5):
        file = project / "a" / "node_modules" / f"{number}.js"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1")
    vouched(project, "python3 hooks/main.py", tmp_path)
    (project / "hooks" / "helper.py").write_text("changed\n")
    assert not load_hooks(project, at=tmp_path).hooks


async def test_a_projects_hook_runs_in_the_project(tmp_path, project):
    (project / "hooks" / "x.sh").write_text("touch ran-here\n")
    elsewhere = tmp_path / "notes"
    (elsewhere / "hooks").mkdir(parents=True)
    (elsewhere / "hooks" / "x.sh").write_text("touch ran-elsewhere\n")
    found = vouched(project, "sh hooks/x.sh", tmp_path)
    await found.fire(
        "Stop",
        {},
        HookContext(
            session="s",
            transcript=tmp_path / "s.jsonl",
            cwd=elsewhere,
            mode="ask",
            scratch=tmp_path / "scratch",
            project=project,
        ),
    )
    assert (project / "ran-here").exists() and not (elsewhere / "ran-elsewhere").exists()


@pytest.mark.parametrize(
    ("command", "script", "changed"),
    [
        ("python3 hooks/lib", "", "src/tool/__main__.py"),
        ("sh hooks/check.sh", ". hooks/lib/run", "src/tool/run"),
        ("python3 hooks/check.py", "import lib.part", "src/tool/part.py"),
        ("sh hooks/check.sh", ". ./.svn/lib.sh", ".svn/lib.sh"),
        ("sh hooks/check.sh", ". ./.hg/lib", ".hg/lib"),
        ("python3 hooks/check.py", "run_path('my helper.py')", "my helper.py"),
        ("sh hooks/check.sh", ". ./my\\ helper.txt", "my helper.txt"),
        ("sh hooks/check.sh", ". './lib/a,b.txt'", "lib/a,b.txt"),
        ("sh 'hooks/(x).txt'", "", "hooks/(x).txt"),
        ("python3 -mserver", "", "server.py"),
        ("python3 -Bmserver", "", "server.py"),
        ("perl -I. -MHelper -e1", "", "Helper.pm"),
        ("sh hooks/check.sh", "python3 -mserver", "server.py"),
        ("sh hooks/check.sh", "python3 -m server", "server.py"),
        ("sh hooks/check.sh", "python3 tools", "tools/__main__.py"),
    ],
)
def test_links_and_odd_names_are_covered(tmp_path, project, command, script, changed):
    for name in ("src/tool/__main__.py", changed):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("")
    (project / "hooks" / "lib").symlink_to("../src/tool")
    for name in ("check.sh", "check.py"):
        (project / "hooks" / name).write_text(script)
    vouched(project, command, tmp_path)
    (project / changed).write_text("changed")
    assert not load_hooks(project, at=tmp_path).hooks


def test_a_link_that_leads_elsewhere_ends_trust(tmp_path, project):
    for name in ("good", "evil"):
        (project / name).mkdir()
        (project / name / "run.sh").write_text(f"echo {name}")
    (project / "lib").symlink_to("good")
    (project / "hooks" / "main.sh").write_text(". ./lib/run.sh")
    vouched(project, "sh hooks/main.sh", tmp_path)
    (project / "lib").unlink()
    (project / "lib").symlink_to("evil")
    assert not load_hooks(project, at=tmp_path).hooks


def test_links_to_each_other_end(tmp_path, project):
    for one, other in (("one", "other"), ("other", "one")):
        (project / one).mkdir()
        (project / one / "to").symlink_to(f"../{other}")
    (project / "up").symlink_to(".")
    assert vouched(project, "sh ./x.sh", tmp_path)


def test_too_many_files_behind_links_are_never_trusted(tmp_path, project, monkeypatch):
    monkeypatch.setattr(sources, "LINKED_FILES", 3)
    (project / "lib").symlink_to("hooks")
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": "sh ./x.sh"}]}]}
    (project / ".longhold" / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    trust(read_sections("hooks", project, at=tmp_path)[0], at=tmp_path)
    assert not load_hooks(project, at=tmp_path).hooks


def test_a_word_that_is_too_long_for_a_name_is_no_file(tmp_path, project):
    assert vouched(project, f"echo {'a' * 5_000}", tmp_path)
    assert vouched(project, f"{'a/' * 3_000}b", tmp_path)


def test_many_files_of_one_name_take_linear_time(tmp_path, project):
    for number in range(400):
        (project / f"d{number}").mkdir()
        (project / f"d{number}" / "x.py").touch()
    (project / "run.sh").write_text(" ".join(f"{number}/x" for number in range(30_000)))
    before = time.process_time()
    vouched(project, "sh run.sh", tmp_path)
    assert time.process_time() - before < 20  # a scan for each path takes minutes
