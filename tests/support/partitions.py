"""The statements of `docs/deployment.md` that split the table of entries."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "deployment.md"


def partition_statements(bound: int = 1_000_000) -> list[str]:
    """Return the steps, each of them one transaction. Sessions from `bound` on are apart."""
    [block] = re.findall(r"```sql\n(-- partitions.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    steps = re.split(r"-- step \d.*\n", block)[1:]
    return [
        step.replace("2000000", f"{2 * bound}").replace("1000000", f"{bound}") for step in steps
    ]
