"""The house rules that a machine can check: sizes, names, the front door, the import time."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "holdfast").rglob("*.py"))

FILE_LINES = 400
"""A file longer than this lacks an idea."""
FUNCTION_LINES = 50
"""So does a function."""

FORBIDDEN = ("Manager", "Service", "Helper", "Handler", "Util", "Impl", "Common", "Misc")


def _functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_every_source_file_keeps_the_house_shape(path):
    """Files and functions are short, modules say what they are for, names say what they do."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a module says what it is for"
    assert len(text.splitlines()) <= FILE_LINES
    long = [
        f"{f.name}: {f.end_lineno - f.lineno + 1} lines"
        for f in _functions(tree)
        if (f.end_lineno or 0) - f.lineno + 1 > FUNCTION_LINES
    ]
    assert not long
    classes = [n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    assert not [name for name in classes for word in FORBIDDEN if word in name]


def test_the_front_door_is_small_and_honest():
    """What `__all__` names is there, and it is few."""
    assert len(holdfast.__all__) <= 36
    assert all(hasattr(holdfast, name) for name in holdfast.__all__)


def test_importing_the_package_is_quick_and_pulls_in_no_sdk():
    """`import holdfast` loads no provider, no web server and no command line."""
    code = (
        "import sys, holdfast; "
        "heavy = {'anthropic', 'openai', 'pydantic', 'starlette', 'uvicorn', 'click', 'numpy'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_file_names_a_registry():
    """Addresses of package registries stay out of every tracked file."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    needles = ("py" + "pi.org", "registry.npm" + "js", "files.python" + "hosted")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="ignore")
            assert not [needle for needle in needles if needle in text], name
