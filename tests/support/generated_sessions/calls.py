"""Tool calls of a generated session, with their inputs and results.

A call is decided as a whole: it may change the project, and carries the result's text and the
structured detail that a transcript stores with it. `SessionWriter` writes the records.
"""

from collections.abc import Callable
from dataclasses import dataclass

from generated_sessions import phrases, shell
from generated_sessions.corpus import Picture, fill, pictures, prose
from generated_sessions.project import ROOT, Project, ProjectEdit

Json = dict[str, object]

READ_LINES = (130.0, 1.2, 2_000)
"""Median, spread and most lines of a read; gives results from 1 to 16 thousand characters."""
MISSED_SHARE = 0.03
"""Of calls that name a file which is not there; failing commands bring errors to the recorded 5 %."""
SNIPPET_SHARE = 0.25
"""Of edit results that show the changed lines."""
SLOW_SHARE = 0.3
"""Of commands that run long enough to report progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedCall:
    name: str
    input: Json
    output: str
    detail: object
    is_error: bool = False
    edited: str | None = None
    picture: Picture | None = None
    ticks: tuple[str, ...] = ()
    """Output so far, at each progress report."""
    prompt: str | None = None
    """Given to a sub-agent."""


class GeneratedTools:
    def __init__(self, project: Project) -> None:
        self._project = project
        self._chance = project.chance
        self._todos: list[Json] = []
        self._tools: tuple[tuple[Callable[[float], GeneratedCall], float], ...] = (
            (self.bash, 32),
            (self.read, 24),
            (self.edit, 19),
            (self.grep, 13),
            (self.todo, 2.4),
            (self.glob, 1.6),
            (self.task, 1.6),
            (self.write, 1.3),
        )

    def next_call(self, size: float, *, is_parallel: bool = False) -> GeneratedCall:
        if self._chance.odds(MISSED_SHARE):
            return self.failed()
        if is_parallel and self._chance.odds(0.8):
            return self._chance.choices((self.read, self.grep, self.glob), (10, 8, 1))[0](size)
        tools, weights = zip(*self._tools, strict=True)
        tool: Callable[[float], GeneratedCall] = self._chance.choices(tools, weights)[0]
        return tool(size)

    def read(self, size: float) -> GeneratedCall:
        path = self._project.any_path()
        lines = self._project.files[path]
        count = self._chance.length(READ_LINES[0] * size, *READ_LINES[1:])
        start = 0 if count >= len(lines) else self._chance.randrange(len(lines) - count)
        shown = lines[start : start + count]
        where: Json = {"file_path": f"{ROOT}/{path}"}
        if len(shown) < len(lines):
            where |= {"offset": start + 1, "limit": count}
        detail = {
            "type": "text",
            "file": {
                "filePath": f"{ROOT}/{path}",
                "content": "\n".join(shown),
                "numLines": len(shown),
                "startLine": start + 1,
                "totalLines": len(lines),
            },
        }
        return GeneratedCall(
            name="Read", input=where, output=_numbered(shown, start + 1), detail=detail
        )

    def look(self) -> GeneratedCall:
        picture = self._chance.pick(pictures())
        path = f"{ROOT}/web/shots/{self._project.words()['entity']}.png"
        detail = {"type": "image", "file": {"base64": picture.data, "type": "image/png"}}
        return GeneratedCall(
            name="Read", input={"file_path": path}, output="", detail=detail, picture=picture
        )

    def edit(self, _size: float) -> GeneratedCall:
        edit = self._project.edit()
        path = f"{ROOT}/{edit.path}"
        old, new = "\n".join(edit.old), "\n".join(edit.new)
        output = f"Updated {path}."
        if self._chance.odds(SNIPPET_SHARE):
            output += " It now reads:\n" + _numbered(
                (*edit.lead, *edit.new, *edit.trail), edit.start - len(edit.lead)
            )
        detail = {
            "filePath": path,
            "oldString": old,
            "newString": new,
            "originalFile": edit.before,
            "structuredPatch": [_patch(edit)],
            "userModified": False,
            "replaceAll": False,
        }
        given: Json = {
            "replace_all": False,
            "file_path": path,
            "old_string": old,
            "new_string": new,
        }
        return GeneratedCall(
            name="Edit", input=given, output=output, detail=detail, edited=edit.path
        )

    def write(self, _size: float) -> GeneratedCall:
        words = self._project.words()
        name = f"{words['adjective']}_{words['entity']}"
        path = self._chance.pick((f"docs/{name}.md", f"tests/test_{name}.py", f"web/src/{name}.ts"))
        content = self._project.compose(path)
        self._project.files[path] = content.split("\n")
        detail: Json = {
            "type": "create",
            "filePath": f"{ROOT}/{path}",
            "content": content,
            "structuredPatch": [],
            "originalFile": None,
        }
        return GeneratedCall(
            name="Write",
            input={"file_path": f"{ROOT}/{path}", "content": content},
            output=f"Created {ROOT}/{path}.",
            detail=detail,
            edited=path,
        )

    def bash(self, size: float) -> GeneratedCall:
        run = shell.run(self._project, size)
        lines = run.output.split("\n")
        reports = self._chance.between(1, 4) if self._chance.odds(SLOW_SHARE) else 0
        ticks = tuple("\n".join(lines[: len(lines) * n // 5]) for n in range(1, reports + 1))
        given: Json = {"command": run.command, "description": run.purpose}
        detail = {"stdout": run.output, "stderr": "", "interrupted": False, "isImage": False}
        if run.has_failed:
            text = f"Exit code 1\n{run.output}"
            return GeneratedCall(
                name="Bash",
                input=given,
                output=text,
                detail=f"Error: {text}",
                is_error=True,
                ticks=ticks,
            )
        return GeneratedCall(
            name="Bash", input=given, output=run.output, detail=detail, ticks=ticks
        )

    def grep(self, size: float) -> GeneratedCall:
        words = self._project.words()
        needle = words[self._chance.pick(("field", "field2", "noun", "verb", "word", "Entity"))]
        most = self._chance.length(14 * size, 1.3, 400)
        found = self._project.search(needle, most)
        given: Json = {
            "pattern": needle,
            "path": ROOT,
            "output_mode": "content",
            "head_limit": most,
        }
        detail: Json
        if self._chance.odds(0.15):
            names = sorted({match.path for match in found})
            given["output_mode"] = "files_with_matches"
            detail = {
                "mode": "files_with_matches",
                "filenames": names,
                "numFiles": len(names),
            }
            text = "\n".join([f"Found {len(names)} files", *names])
            return GeneratedCall(name="Grep", input=given, output=text, detail=detail)
        text = (
            "\n".join(f"{match.path}:{match.number}:{match.line}" for match in found)
            or "No matches found"
        )
        detail = {
            "mode": "content",
            "numFiles": 0,
            "filenames": [],
            "content": text,
            "numLines": len(found),
        }
        return GeneratedCall(name="Grep", input=given, output=text, detail=detail)

    def glob(self, size: float) -> GeneratedCall:
        suffix = self._chance.pick((".py", ".ts", ".md", ".sql"))
        names = [f"{ROOT}/{path}" for path in self._project.files if path.endswith(suffix)][
            : 3 + int(9 * size)
        ]
        detail = {
            "filenames": names,
            "durationMs": self._chance.between(2, 400),
            "numFiles": len(names),
            "truncated": False,
        }
        return GeneratedCall(
            name="Glob", input={"pattern": f"**/*{suffix}"}, output="\n".join(names), detail=detail
        )

    def todo(self, _size: float) -> GeneratedCall:
        old = self._todos
        if not old or all(each["status"] == "completed" for each in old):
            tasks = self._chance.sample(prose().model.tasks, k=self._chance.between(3, 6))
            texts = [fill(task, self._project.words()) for task in tasks]
            done = 0
        else:
            texts = [str(each["content"]) for each in old]
            done = sum(each["status"] == "completed" for each in old) + 1
        states = ["completed"] * done + ["in_progress"] + ["pending"] * len(texts)
        self._todos = [
            {"content": text, "status": state, "activeForm": f"Working: {text.lower()}"}
            for text, state in zip(texts, states, strict=False)
        ]
        detail = {"oldTodos": old, "newTodos": self._todos}
        return GeneratedCall(
            name="TodoWrite",
            input={"todos": self._todos},
            output="The list is up to date.",
            detail=detail,
        )

    def task(self, size: float) -> GeneratedCall:
        prompt = phrases.thinking(self._project, 2.0)
        text = phrases.report(self._project, size)
        given: Json = {"description": "Look around", "prompt": prompt, "subagent_type": "explore"}
        detail = {
            "status": "completed",
            "prompt": prompt,
            "agentId": f"a{self._chance.hex(6)}",
            "content": [{"type": "text", "text": text}],
            "totalDurationMs": self._chance.between(20_000, 200_000),
            "totalTokens": self._chance.between(12_000, 90_000),
            "totalToolUseCount": self._chance.between(3, 40),
        }
        return GeneratedCall(name="Task", input=given, output=text, detail=detail, prompt=prompt)

    def failed(self) -> GeneratedCall:
        path = f"{ROOT}/src/quayside/{self._project.words()['noun']}.py"
        text = "There is no such file."
        return GeneratedCall(
            name="Read",
            input={"file_path": path},
            output=f"<tool_use_error>{text}</tool_use_error>",
            detail=f"Error: {text}",
            is_error=True,
        )


def _numbered(lines: tuple[str, ...] | list[str], first: int) -> str:
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, start=first))


def _patch(edit: ProjectEdit) -> Json:
    start = edit.start - len(edit.lead)
    around = len(edit.lead) + len(edit.trail)
    return {
        "oldStart": start,
        "oldLines": len(edit.old) + around,
        "newStart": start,
        "newLines": len(edit.new) + around,
        "lines": edit.hunk_lines(),
    }
