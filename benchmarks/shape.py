"""The shape of the source tree in numbers. `tests/test_shape.py` checks them against limits.

- `top_level`: folders and files directly under `src/longhold`, except `__init__.py`, `__main__.py`
  and `py.typed`.
- `levels`: of the import contracts in `pyproject.toml`.
- `src_lines`, `modules`: of Python, everything included.
- `settings`: declared with `setting(default, why)`.
- `commands`: listed by `longhold --help`.
- `public_names`: in `longhold.__all__`.
- `doc_pages`: Markdown files in `docs`, without the numbered decisions.
- `single_importer_modules`: modules that exactly one other module imports. Packages
  (`__init__.py`) are not counted.
- `session_modules`, `session_lines`: modules of Longhold, and their lines, that
  `from longhold import Session` loads in a new process.
- `outside_assignments`: attributes of another object assigned after it was built. Counted are
  assignments (also augmented, annotated, by `for` and by `with`) and calls of `setattr` whose
  target is `x.attr`, unless x is `self` or `cls`, x is a record of the module itself, or `ALLOWED`
  gives a reason. A record of the module is an x whose class, named by an annotation or by the call
  that built it, is defined in the same module. Where neither names a class, a class of the module
  that declares `attr` will do. A chain such as `self.x.attr` never qualifies. These are counted as
  `own_records`.
- `retired_names`: modules, classes, functions and methods whose whole name, without leading
  underscores and whatever its case, was given up (`RETIRED`).
- `double_names`: public classes and type aliases that share a name.
- `cycles`: packages that import each other, the core's among themselves included.

    python benchmarks/shape.py [--json] [--list]
"""

import argparse
import ast
import functools
import graphlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "longhold"
SETTERS = {"setattr", "object.__setattr__"}
NOT_COUNTED = {"__pycache__", "py.typed", "__init__.py", "__main__.py"}

ALLOWED = {
    (
        "core/models/translate.py",
        "broken",
    ): "an exception's cause, where `raise from` is not possible",
    ("core/http.py", "server"): "the web server is stopped by attribute only",
}
"""File and object of the assignments that another library's interface asks for, and why."""

RETIRED = frozenset(
    [
        "opening",
        "beginning",
        "housing",
        "hiring",
        "hired",
        "household",
        "estate",
        "settle",
        "register",
        "past",
        "neighbours",
        "door",
        "post",
        "front",
        "wording",
        "remembering",
        "held",
        "judging",
        "compacting",
        "purse",
        "allowance",
        "workplace",
        "hears",
        "lose_sight",
        "fate",
        "sides",
        "row",
        "anchor",
        "telling",
        "done",
        "shaped",
        "kept",
        "settled",
        "answered",
        "trial",
        "message_lists",
        "surroundings",
        "wish",
        "ladder",
        "ahead",
        "recording",
        "noting",
        "timing",
        "arrivals",
        "complaints",
        "endings",
        "clearable",
        "stock",
        "ways",
        "moment",
        "stand_in",
        "served",
        "watch",
        "left",
        "warmth",
        "course",
        "outlook",
        "vanguard",
        "unbroken",
        "clues",
        "scene",
        "trouble",
        "speech",
        "earlier",
        "alike",
        "consented",
        "outside",
        "sealing",
        "unread",
        "opened",
        "gates",
    ]
)
"""Names given up for words that people of this field use; see the table of names."""
STILL_IN_USE = {("session/session.py", "settle"), ("core/messages/usage.py", "Tally")}
"""Public names that stay although other code gave the word up; a tally counts calls and money."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was found."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}  {self.text}"


@dataclass(frozen=True)
class Module:
    """One parsed source file."""

    path: Path

    @property
    def file(self) -> str:
        return self.path.relative_to(SOURCE).as_posix()

    @property
    def name(self) -> str:
        """As it is imported: `longhold.core.view.view`; a package without `__init__`."""
        parts = self.file.removesuffix(".py").split("/")
        return ".".join(("longhold", *(part for part in parts if part != "__init__")))

    @property
    def lines(self) -> int:
        return len(self.path.read_bytes().splitlines())

    @functools.cached_property
    def imports(self) -> frozenset[str]:
        """The modules and packages of Longhold that it imports."""
        return frozenset(name for node in ast.walk(self.tree) for name in _imported(node))

    @functools.cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"))

    @functools.cached_property
    def fields(self) -> dict[str, set[str]]:
        """The classes of the module, each with the attributes it declares."""
        classes = [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]
        return {node.name: set(_declared(node)) for node in classes}


@functools.cache
def modules() -> tuple[Module, ...]:
    return tuple(Module(path) for path in sorted(SOURCE.rglob("*.py")))


def top_level() -> list[str]:
    return sorted(path.name for path in SOURCE.iterdir() if path.name not in NOT_COUNTED)


def contracts() -> list[dict[str, Any]]:
    """Return the import contracts."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed: list[dict[str, Any]] = found["tool"]["importlinter"]["contracts"]
    return listed


def levels() -> dict[str, list[str]]:
    """Return the levels inside each package that has any, low ones last."""
    layered = (one for one in contracts() if one["type"] == "layers")
    return {container: one["layers"] for one in layered for container in one["containers"]}


def src_lines() -> int:
    return sum(module.lines for module in modules())


def settings() -> int:
    from longhold.core.settings import Settings  # the rest works on any tree, installed or not

    groups = get_type_hints(Settings).values()
    return sum("spec" in one.metadata for group in groups for one in fields(group))


def commands() -> int:
    printed = _in_a_new_process("from longhold.cli import cli; cli.main(['--help'])")
    return len(re.findall(r"^  [a-z][a-z-]+  ", printed, re.M))


def public_names() -> int:
    """Count the names in `longhold.__all__`."""
    (package,) = (module for module in modules() if module.file == "__init__.py")
    for node in package.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return len(ast.literal_eval(node.value))
    return 0


def doc_pages() -> int:
    return len(list((ROOT / "docs").glob("*.md")))


def single_importers() -> list[str]:
    """List the modules that exactly one other module imports."""
    importers = Counter(name for module in modules() for name in module.imports - {module.name})
    counted = (module for module in modules() if module.path.stem != "__init__")
    return [module.file for module in counted if importers[module.name] == 1]


@functools.cache
def session_modules() -> list[Module]:
    """List the modules that a program loads with `Session`."""
    code = "from longhold import Session; import sys; print(*sys.modules)"
    loaded = set(_in_a_new_process(code).split())
    return [module for module in modules() if module.name in loaded]


def _in_a_new_process(code: str) -> str:
    """Return what a program prints that imports this tree and nothing else of ours."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE.parent)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def assignments() -> tuple[list[Place], list[Place]]:
    """List the assignments from outside, and those to records of the module itself."""
    outside: list[Place] = []
    own: list[Place] = []
    for module in modules():
        for scope in _scopes(module.tree):
            for target in _targets(scope):
                owner, attribute = _parts(target)
                named = ast.unparse(owner)
                if named in ("self", "cls") or (module.file, named.partition(".")[0]) in ALLOWED:
                    continue
                text = f"{named}.{attribute}"
                is_own = named.isidentifier() and _is_own(module, scope, named, attribute)
                (own if is_own else outside).append(Place(module.file, target.lineno, text))
    return outside, own


def retired_names() -> list[Place]:
    found = []
    for module in modules():
        stem = module.path.parent.name if module.path.stem == "__init__" else module.path.stem
        named = [(stem, 1)]
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                named.append((node.name, node.lineno))
        for name, line in named:
            if name.lstrip("_").lower() in RETIRED and (module.file, name) not in STILL_IN_USE:
                found.append(Place(module.file, line, name))
    return found


def double_names() -> dict[str, list[str]]:
    """Return the public classes and type aliases that share a name, with their files."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules():
        for name in map(_public_type, module.tree.body):
            if name:
                files[name].append(module.file)
    return {name: found for name, found in sorted(files.items()) if len(found) > 1}


def cycles() -> list[str]:
    """Return one circle of packages that import each other, if there is any."""
    imports: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules():
        package = _package(module.name)
        imports[package] |= {_package(name) for name in module.imports} - {package, "longhold"}
    del imports["longhold"]  # it names what the others define
    try:
        tuple(graphlib.TopologicalSorter(imports).static_order())
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def _package(name: str) -> str:
    """Return the package of a module: `longhold.agent`, or `longhold.core.view` in the core."""
    parts = name.split(".")
    return ".".join(parts[: 3 if parts[1:2] == ["core"] else 2])


def _declared(node: ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id
    stored = (n for n in ast.walk(node) if isinstance(n, ast.Attribute))
    for inner in stored:
        if isinstance(inner.ctx, ast.Store) and ast.unparse(inner.value) == "self":
            yield inner.attr


Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


def _scopes(tree: ast.Module) -> Iterator[Scope]:
    return (node for node in ast.walk(tree) if isinstance(node, Scope))


def _inside(scope: Scope) -> Iterator[ast.AST]:
    """Walk a scope without the scopes inside it."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Scope):
            waiting += ast.iter_child_nodes(node)


def _targets(scope: Scope) -> Iterator[ast.Attribute | ast.Call]:
    for node in _inside(scope):
        if (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)) or (
            isinstance(node, ast.Call) and ast.unparse(node.func) in SETTERS
        ):
            yield node


def _parts(target: ast.Attribute | ast.Call) -> tuple[ast.expr, str]:
    if isinstance(target, ast.Attribute):
        return target.value, target.attr
    name = target.args[1]
    return target.args[0], name.value if isinstance(name, ast.Constant) else ast.unparse(name)


def _is_own(module: Module, scope: Scope, name: str, attribute: str) -> bool:
    known = _class_of(scope, name)
    if known:
        return known in module.fields
    return any(attribute in fields for fields in module.fields.values())


def _class_of(scope: Scope, name: str) -> str:
    """Return the class that an annotation or a call in this scope names, or nothing."""
    for node in (*ast.walk(getattr(scope, "args", ast.arguments())), *_inside(scope)):
        if isinstance(node, ast.arg) and node.arg == name and node.annotation:
            return ast.unparse(node.annotation).strip("'\"").removesuffix(" | None")
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            return ast.unparse(node.annotation)
        if isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets):
            called = node.value.func if isinstance(node.value, ast.Call) else None
            if isinstance(called, ast.Name) and called.id[:1].isupper():
                return called.id
    return ""


def _public_type(node: ast.stmt) -> str:
    if isinstance(node, ast.ClassDef):
        return "" if node.name.startswith("_") else node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
        is_alias = isinstance(node.value, ast.BinOp | ast.Subscript | ast.Name | ast.Attribute)
        return name if is_alias and name[:1].isupper() and not name.isupper() else ""
    return ""


@functools.cache
def _names() -> frozenset[str]:
    return frozenset(module.name for module in modules())


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
            inside = f"{node.module}.{alias.name}"
            yield from _names() & {inside} or _names() & {node.module}
    elif isinstance(node, ast.Import):
        yield from _names() & {alias.name for alias in node.names}


COUNTS: dict[str, Callable[[], int]] = {
    "top_level": lambda: len(top_level()),
    "levels": lambda: sum(map(len, levels().values())),
    "src_lines": src_lines,
    "modules": lambda: len(modules()),
    "settings": settings,
    "commands": commands,
    "public_names": public_names,
    "doc_pages": doc_pages,
    "single_importer_modules": lambda: len(single_importers()),
    "session_modules": lambda: len(session_modules()),
    "session_lines": lambda: sum(module.lines for module in session_modules()),
}
"""What has a limit or a target."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list", action="store_true", help="list what was counted")
    options = parser.parse_args()
    outside, own = assignments()
    retired, doubles = retired_names(), double_names()
    if options.list:
        for title, places in (("outside", outside), ("own", own), ("retired", retired)):
            print(f"{title}:", *places, sep="\n  ")
        print("double:", *(f"{name}: {', '.join(at)}" for name, at in doubles.items()), sep="\n  ")
        print("top level:", *top_level())
        print("single importer:", *single_importers(), sep="\n  ")
    found = {
        **{name: count() for name, count in COUNTS.items()},
        "outside_assignments": len(outside),
        "own_records": len(own),
        "retired_names": len(retired),
        "double_names": len(doubles),
        "cycles": cycles(),
    }
    if not options.json:
        by_file = Counter(place.file for place in outside).most_common(10)
        print("outside assignments by file:", *(f"{n:>4}  {file}" for file, n in by_file), sep="\n")
        for key, value in found.items():
            print(f"{key:>24}  {value}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
