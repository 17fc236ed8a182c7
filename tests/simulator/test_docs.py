"""The example in the documentation runs as it stands."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"


def test_the_first_example_runs(capsys):
    """The page's Python block prints the scripted answer and a token count."""
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    exec(compile(example, str(PAGE), "exec"), {})
    assert re.fullmatch(r"hello \d+\n", capsys.readouterr().out)
