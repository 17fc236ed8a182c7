"""ARCHITECTURE.md shows real source. `make golden` copies it again."""

import ast
from pathlib import Path

from pages import ROOT, SOURCE, Page
from regions import fenced, keep_up, regions

PAGE = ROOT / "ARCHITECTURE.md"


def source(where: str) -> str:
    """Find a function, class, method or value: `path name`, or `path name|another` for the first there is."""
    path, names = where.split()
    text = (ROOT / path).read_text(encoding="utf-8")
    defined = dict(_defined(ast.parse(text)))
    node = next((defined[name] for name in names.split("|") if name in defined), None)
    assert node is not None, f"{path} defines none of {names}, but {', '.join(defined)}"
    first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
    body = "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    return fenced(f"# {path}\n{_dedented(body)}", "python no-run")


def _defined(tree: ast.AST, prefix: str = ""):
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield f"{prefix}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from _defined(node, f"{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (
                (f"{prefix}{target.id}", node) for target in targets if hasattr(target, "id")
            )


def _dedented(body: str) -> str:
    indent = len(body) - len(body.lstrip())
    return "\n".join(line[indent:] if line.strip() else "" for line in body.splitlines())


def test_the_source_on_the_page_is_the_source():
    shown = regions(keep_up(PAGE, "source", source), "source")
    assert len(shown) == 3
    assert shown == {where: source(where) for where in shown}


def test_the_tree_on_the_page_is_the_tree():
    above, listed = [Path()], set()
    (tree,) = (block.body for block in Page(path=PAGE).of("tree"))
    for line in tree.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        path = above[depth] / line.split()[0]
        above[depth + 1 :] = [path]
        listed.add(path)
        assert (SOURCE / path).exists(), line
    folders = {
        path.relative_to(SOURCE)
        for parent in (SOURCE, SOURCE / "core")
        for path in parent.iterdir()
        if path.is_dir() and path.name[0] != "_"
    }
    assert folders - listed == set()
