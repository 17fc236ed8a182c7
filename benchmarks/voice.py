"""Count patterns that make the project's English hard to read, in sources and pages.

- `headless`: sentences that begin with a clause as subject ("What is cleared…", "Whoever resumes…").
- `is_no`: "X is no Y" instead of "X is not a Y".
- `beside`, `stands_lies`, `dear`: words for which the field has others.
- `participles`: functions named by a bare past participle, such as `fitted`.

Code in pages and strings for models are not counted.

    python benchmarks/voice.py [--json] [--root PATH] [--list PATTERN]
"""

import argparse
import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = {
    "headless": re.compile(
        r"(?:(?<=[.;:!?] )|^)(?:What|Who|Whoever|Whatever|That which|what|whoever|whatever) "
        r"(?:is|was|were|are|has|had|it|a|an|the|you|we|they|else|cannot|can|does|did|left|came|fails|lies)\b"
    ),
    "is_no": re.compile(
        r"(?<![Tt]here )\b(?:is|are|was|were) (?:no|none)\b(?! (?:longer|more|matter))"
    ),
    "beside": re.compile(r"\bbeside\b"),
    "stands_lies": re.compile(r"\b(?:stands|stood|lies|lay)\b(?! (?:for|in for|out|down))"),
    "dear": re.compile(r"\bdear(?:er|est)?\b"),
}
PARTICIPLE = re.compile(
    r"^_?[a-z]+(?:ed|own|ept|elt|old|ound|ung|ead|aid|een|one|iven|aken|ritten)$"
)
NOT_PARTICIPLES = frozenset(
    re.findall(
        r"\w+",
        "bed bound done down embed feed fold found head hold need none old one own phone read red"
        " round seed shed sound speed thread threshold unfold",
    )
)


def prose_of_page(path: Path) -> str:
    text = re.sub(r"^(```+).*?^\1", "", path.read_text("utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def prose_of_module(path: Path) -> str:
    """Return comments, docstrings and messages: every string with a space in it."""
    source = path.read_text("utf-8")
    comments = [
        one.string.lstrip("# ")
        for one in tokenize.generate_tokens(io.StringIO(source).readline)
        if one.type == tokenize.COMMENT
    ]
    tree = ast.parse(source)
    strings = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    ]
    return "\n".join((*comments, *strings))


def participles(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        is_property = any("property" in ast.unparse(one) for one in node.decorator_list)
        if (
            PARTICIPLE.match(node.name)
            and node.name.lstrip("_") not in NOT_PARTICIPLES
            and not is_property
        ):
            yield node.name


def texts(root: Path) -> Iterator[tuple[str, Path, str]]:
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    for path in sorted(pages):
        if path.name != "cli.md":
            yield "docs", path, prose_of_page(path)
    for path in sorted((root / "src").rglob("*.py")):
        yield "src", path, prose_of_module(path)


def count(root: Path) -> dict[str, dict[str, int]]:
    found = {"docs": dict.fromkeys((*PATTERNS, "words"), 0), "src": dict.fromkeys(PATTERNS, 0)}
    for place, _, text in texts(root):
        for name, pattern in PATTERNS.items():
            found[place][name] += len(pattern.findall(text))
        if place == "docs":
            found[place]["words"] += len(text.split())
    modules = (root / "src").rglob("*.py")
    found["src"]["participles"] = sum(len(list(participles(path))) for path in modules)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--list", choices=(*PATTERNS, "participles"))
    options = parser.parse_args()
    if options.list == "participles":
        for path in sorted((options.root / "src").rglob("*.py")):
            print(path.relative_to(options.root), *participles(path))
    elif options.list:
        for _, path, text in texts(options.root):
            for line in text.splitlines():
                if PATTERNS[options.list].search(line):
                    print(f"{path.relative_to(options.root)}: {line.strip()[:160]}")
    else:
        found = count(options.root)
        print(json.dumps(found) if options.json else json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
