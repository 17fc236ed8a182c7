"""What commands print in the invented project: tests, version control, listings, JSON, checksums.

Output is built from the project's files and recent edits, so it agrees with what was read
before. Lengths are scaled by a size factor.
"""

from collections.abc import Callable
from dataclasses import dataclass

from generated_sessions.corpus import fill, prose
from generated_sessions.project import Project

FAILING_SHARE = 0.45
"""Of test runs in the middle of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    command: str
    purpose: str
    output: str
    has_failed: bool = False


def _pytest_run(project: Project, size: float) -> Run:
    chance = project.chance
    words = project.words()
    entity = words["entity"]
    passed, seconds = chance.between(14, 420), chance.random() * 9
    suites = [path for path in project.files if path.startswith("tests/")][: 2 + int(4 * size)]
    dots = "\n".join(
        f"{path} {'.' * chance.between(3, 60)} [{100 * number // len(suites):3}%]"
        for number, path in enumerate(suites, start=1)
    )
    if not chance.odds(FAILING_SHARE):
        output = f"{dots}\n\n{passed} passed in {seconds:.2f}s"
        return Run(
            command=f"pytest tests/test_{entity}.py -q",
            purpose=f"Run the {entity} tests",
            output=output,
        )
    failures = [_failure(project) for _ in range(chance.length(1.2 * size, 0.5, 8))]
    tail = "\n".join(f"FAILED {name} - AssertionError" for name, _ in failures)
    blocks = "\n".join(block for _, block in failures)
    output = (
        f"{dots}\n=== FAILURES ===\n{blocks}\n=== short test summary info ===\n{tail}\n"
        f"{len(failures)} failed, {passed} passed in {seconds:.2f}s"
    )
    return Run(
        command="pytest -q -x",
        purpose="Run the suite until it fails",
        output=output,
        has_failed=chance.odds(0.5),
    )


def _failure(project: Project) -> tuple[str, str]:
    chance = project.chance
    words = project.words()
    name = fill("test_@verb@_@entity@_@noun@_@adjective@", words)
    body = fill(
        "    def @verb@_test(store, @entity@_factory):\n"
        '        @entity@ = @entity@_factory(@field@="@num@.10", @field2@="@word@")\n'
        "        rows = @verb@_@entity@_@noun@(store, @entity@.id, limit=@small@)\n"
        ">       assert [row['@field@'] for row in rows] == [@num@, @num2@]\n"
        "E       AssertionError: assert [@num@] == [@num@, @num2@]\n"
        "E         Right contains one more item: @num2@\n",
        words,
    )
    where = f"tests/test_{words['entity']}.py:{chance.between(12, 380)}: AssertionError"
    return f"tests/test_{words['entity']}.py::{name}", f"___ {name} ___\n\n{body}\n{where}"


def _git_diff(project: Project, size: float) -> Run:
    chance = project.chance
    shown = list(project.recent)[-chance.length(2 * size, 0.5, 9) :]
    parts = [
        f"diff --git a/{edit.path} b/{edit.path}\nindex {chance.hex(8)}..{chance.hex(8)} 100644\n"
        f"--- a/{edit.path}\n+++ b/{edit.path}\n"
        f"@@ -{edit.start},{len(edit.old)} +{edit.start},{len(edit.new)} @@\n"
        + "\n".join(edit.hunk_lines())
        for edit in shown
    ]
    return Run(command="git diff", purpose="Show what changed", output="\n".join(parts))


def _git_log(project: Project, size: float) -> Run:
    chance = project.chance
    lines = [
        f"{chance.hex(8)} {fill(chance.pick(('Fix', 'Test', 'Move', 'Keep')) + ' @name@ of @adjective@ @entity@ @noun@', project.words())}"
        for _ in range(chance.length(10 * size, 0.6, 60))
    ]
    return Run(
        command=f"git log --oneline -{len(lines)}",
        purpose="Recent commits",
        output="\n".join(lines),
    )


def _git_status(project: Project, size: float) -> Run:
    paths = sorted({edit.path for edit in project.recent})
    lines = [f" M {path}" for path in paths] or ["nothing to commit, working tree clean"]
    return Run(
        command="git status --short",
        purpose="Changed files",
        output="\n".join(lines[: 3 + int(9 * size)]),
    )


def _json_dump(project: Project, size: float) -> Run:
    chance = project.chance
    words = project.words()
    rows = []
    for _ in range(chance.length(7 * size, 0.9, 90)):
        drawn = project.words()
        rows.append(
            f'    {{"id": {chance.between(1, 99_999)}, "{words["field"]}": {chance.between(0, 900_000) / 100}, '
            f'"{words["field2"]}": "{drawn["word"]}", "hash": "{chance.hex(16)}", "tags": ["{drawn["adjective"]}"], '
            f'"{words["field3"]}": "2026-0{chance.between(1, 9)}-1{drawn["digit"]}T0{drawn["digit"]}:30:00Z"}}'
        )
    output = '{\n  "items": [\n' + ",\n".join(rows) + f'\n  ],\n  "total": {len(rows)}\n}}'
    command = f"curl -s localhost:8000/api/{words['entity']}/{words['noun']}"
    return Run(command=command, purpose="Ask the local server", output=output)


def checksums(project: Project, size: float) -> Run:
    chance = project.chance
    lines = [
        f"{chance.hex(64)}  exports/{project.words()['noun']}-{n:03}.csv"
        for n in range(chance.length(6 * size, 0.6, 60))
    ]
    return Run(
        command="sha256sum exports/*.csv", purpose="Compare the exports", output="\n".join(lines)
    )


def locales(project: Project, size: float) -> Run:
    chance = project.chance
    texts = (
        "係留",
        "潮位",
        "請求書",
        "泊位",
        "账单",
        "取消",
        "检疫",
        "引航员",
        "予約が重複しています",
        "费率已过期",
    )
    lines = [
        f'  "{fill("@entity@.@noun@.@field@", project.words())}": "{"・".join(chance.sample(texts, 3))}",'
        for _ in range(chance.length(14 * size, 0.7, 120))
    ]
    return Run(
        command="cat web/locales/ja.json",
        purpose="Texts on the board",
        output="{\n" + "\n".join(lines) + "\n}",
    )


def listing(project: Project, size: float) -> Run:
    chance = project.chance
    lines = [
        f"-rw-r--r-- 1 dev dev {chance.between(120, 48_000):>6} Jan {chance.between(1, 28):>2} 1{chance.between(0, 9)}:{chance.between(10, 59)} {path}"
        for path in list(project.files)[: 4 + int(16 * size)]
    ]
    return Run(command="ls -l $(git ls-files)", purpose="List the files", output="\n".join(lines))


def _server_log(project: Project, size: float) -> Run:
    return Run(
        command="tail -n 200 var/quayside.log",
        purpose="Read the log",
        output=log_lines(project, project.chance.length(12 * size, 0.9, 160)),
    )


def quiet(project: Project, _size: float) -> Run:
    chance = project.chance
    command, output = chance.pick(
        (
            ("git add -A && git commit -q -m 'Fix the order'", ""),
            ("npx tsc --noEmit", ""),
            ("git push --dry-run", "Everything up-to-date"),
            ("wc -l src/quayside/*.py | tail -1", f"  {chance.between(900, 9000)} total"),
            ("git rev-parse HEAD", chance.hex(40)),
        )
    )
    return Run(command=command, purpose="Check", output=output)


def log_lines(project: Project, count: int) -> str:
    chance = project.chance
    lines = []
    for _ in range(count):
        level = chance.pick(("INFO", "INFO", "DEBUG", "WARN", "ERROR"))
        thought = fill(
            "@entity@ %s: @verb@ @noun@ (@adjective@, @field@=@num@.@num2@)", project.words()
        )
        stamp = f"2026-01-{chance.between(1, 28):02} 0{chance.between(0, 9)}:{chance.between(10, 59)}:{chance.between(10, 59)},{chance.between(100, 999)}"
        lines.append(
            f"{stamp} {level:<5} quayside.{chance.pick(prose().verbs)} {thought % chance.between(1, 9999)}"
        )
    return "\n".join(lines)


COMMANDS: tuple[tuple[Callable[[Project, float], Run], int], ...] = (
    (_pytest_run, 28),
    (_git_diff, 12),
    (_git_log, 8),
    (_git_status, 8),
    (_json_dump, 8),
    (checksums, 3),
    (locales, 4),
    (listing, 6),
    (_server_log, 6),
    (quiet, 17),
)
"""Commands with their weights; tests and version control lead, as in recorded sessions."""


def run(project: Project, size: float) -> Run:
    functions, weights = zip(*COMMANDS, strict=True)
    chosen: Callable[[Project, float], Run] = project.chance.choices(functions, weights)[0]
    return chosen(project, size)
