"""The deterministic coder, in a real directory with real tools."""

import subprocess
import sys

import anthropic

from longhold.core.stages.compact.plain_summary import summarise
from longhold.simulator.brains import BrainRequest, text
from longhold.simulator.brains.digest import DigestBrain, plan


def tool(name, *inputs):
    """A tool definition whose inputs are all required."""
    properties = {field: {"type": "string"} for field in inputs}
    schema = {"type": "object", "properties": properties, "required": list(inputs)}
    return {"name": name, "description": name, "input_schema": schema}


TOOLS = [
    tool("Glob", "pattern"),
    tool("Grep", "pattern"),
    tool("Read", "file_path"),
    tool("Edit", "file_path", "old_string", "new_string"),
    tool("Write", "file_path", "content"),
    tool("Bash", "command"),
]


def run(root, name, inputs):
    """Carry a call out in a directory, as an agent would."""
    match name:
        case "Glob":
            return "\n".join(sorted(str(p.relative_to(root)) for p in root.glob(inputs["pattern"])))
        case "Grep":
            files = [p for p in root.rglob("*.py") if inputs["pattern"] in p.read_text()]
            return "\n".join(str(p.relative_to(root)) for p in files)
        case "Read":
            return (root / inputs["file_path"]).read_text()
        case "Edit":
            path = root / inputs["file_path"]
            path.write_text(path.read_text().replace(inputs["old_string"], inputs["new_string"]))
            return "edited"
        case "Write":
            (root / inputs["file_path"]).write_text(inputs["content"])
            return "written"
        case _:
            command = [
                sys.executable,
                "-c",
                "import area; assert area.area(2) == 4; print('1 passed')",
            ]
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
            return done.stdout + done.stderr


def work(client, root, prompt):
    """A minimal agent loop: ask, run the tools, ask again."""
    messages = [{"role": "user", "content": prompt}]
    for _ in range(12):
        made = client.messages.create(
            model="claude-opus-5", max_tokens=2000, tools=TOOLS, messages=messages
        )
        messages.append(made.to_param())
        uses = [block for block in made.content if block.type == "tool_use"]
        if not uses:
            return made.content[0].text, messages
        results = [
            {"type": "tool_result", "tool_use_id": u.id, "content": run(root, u.name, u.input)}
            for u in uses
        ]
        messages.append({"role": "user", "content": results})
    raise AssertionError("the coder did not come to an end")


def test_it_fixes_a_bug_through_the_tools(simulate, tmp_path):
    (tmp_path / "area.py").write_text("def area(side):\n    return side + side + 1\n")
    with anthropic.Anthropic(base_url=simulate(DigestBrain()).url, api_key="k") as client:
        said, messages = work(
            client, tmp_path, 'Replace "side + side + 1" with "side * side" in area.py, then test.'
        )
    assert (tmp_path / "area.py").read_text() == "def area(side):\n    return side * side\n"
    names = [
        b.name
        for m in messages
        if m["role"] == "assistant"
        for b in m["content"]
        if b.type == "tool_use"
    ]
    assert names == ["Glob", "Grep", "Read", "Edit", "Bash"]
    assert "ok: 1 passed" in said


def test_it_creates_a_file(simulate, tmp_path):
    (tmp_path / "area.py").write_text("def area(side):\n    return side * side\n")
    with anthropic.Anthropic(base_url=simulate(DigestBrain()).url, api_key="k") as client:
        work(client, tmp_path, 'Please create notes.txt with "remember the milk".')
    assert (tmp_path / "notes.txt").read_text() == "remember the milk"


def test_steps_without_a_tool_are_left_out():
    request = BrainRequest(
        model="m",
        system=(),
        tools=(tool("bash", "command"),),
        messages=({"role": "user", "content": [text("Run the tests of area.py")]},),
        max_tokens=100,
    )
    assert DigestBrain().answer(request).blocks[0]["input"] == {"command": "ls"}
    assert [step.kind for step in plan("Run the tests of area.py")] == ["list", "read", "shell"]


HISTORY = (
    {"role": "user", "content": [text("Never touch config/prod.yaml. Fix the login.")]},
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make test"}},
        ],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x\n3 failed"}],
    },
    {"role": "assistant", "content": [text("Three tests fail.")]},
)


def test_summaries_are_mechanical():
    told = summarise(HISTORY)
    assert "Never touch config/prod.yaml. Fix the login." in told
    assert "make test: 3 failed" in told
    assert "Three tests fail." in told


def test_reminders_inside_a_result_are_not_what_a_tool_said():
    result = "3 failed\n\n<system-reminder>\nBe brief.\n</system-reminder>"
    block = {"type": "tool_result", "tool_use_id": "t1", "content": result}
    told = summarise((*HISTORY[:2], {"role": "user", "content": [block]}))
    assert "make test: 3 failed" in told
    assert "reminder" not in told


def test_a_summary_prompt_is_recognised():
    prompt = text("Summarise the conversation so far in <summary> tags.")
    request = BrainRequest(
        model="m",
        system=(),
        tools=(),
        messages=(*HISTORY, {"role": "user", "content": [prompt]}),
        max_tokens=100,
    )
    said = DigestBrain().answer(request).blocks[0]["text"]
    assert said.startswith("<summary>")
    assert "config/prod.yaml" in said
