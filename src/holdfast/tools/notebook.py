"""Notebooks as text: cell by cell, outputs under their code, images beside it.

Long outputs are cut and images past a number left out: running the cell brings them back.
"""

import msgspec
from msgspec import Struct

from holdfast.messages import Image, Json, JsonObject

OUTPUT_CHARS = 10_000
"""Of one output; a table or a traceback fits."""
MAX_PICTURES = 10
"""Each costs about as much as 200 lines of code."""
PICTURE_CHARS = 5_000_000
"""The most a provider takes for one, in base64."""


class _Cell(Struct):
    cell_type: str
    source: str | list[str] = ""
    outputs: list[JsonObject] = []


class _Notebook(Struct):
    cells: list[_Cell]


class NotANotebook(Exception):
    """The file is no JSON, or has no cells."""


def show_notebook(content: bytes) -> tuple[str, tuple[Image, ...]]:
    try:
        notebook = msgspec.json.decode(content, type=_Notebook)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise NotANotebook(str(error)) from None
    lines: list[str] = []
    pictures: list[Image] = []
    for number, cell in enumerate(notebook.cells, start=1):
        lines += (f"[cell {number}: {cell.cell_type}]", _joined(cell.source))
        for output in cell.outputs:
            shown, drawn = _output(output)
            lines += [f"[output of cell {number}]", shown] if shown else []
            pictures += drawn
    if len(pictures) > MAX_PICTURES:
        lines.append(f"[{len(pictures) - MAX_PICTURES} more pictures are not shown]")
    return "\n".join(lines), tuple(pictures[:MAX_PICTURES])


def _output(output: JsonObject) -> tuple[str, list[Image]]:
    found = output.get("data")
    data = found if isinstance(found, dict) else {}
    pictures = [
        Image(source={"type": "base64", "media_type": kind, "data": _joined(data[kind]).strip()})
        for kind in ("image/png", "image/jpeg")
        if kind in data and len(_joined(data[kind])) <= PICTURE_CHARS
    ]
    said = _joined(output.get("text") or data.get("text/plain") or "")
    if output.get("output_type") == "error":
        said = f"{output.get('ename', 'error')}: {output.get('evalue', '')}"
    if len(said) > OUTPUT_CHARS:
        said = f"{said[:OUTPUT_CHARS]}\n[{len(said) - OUTPUT_CHARS:,} more characters]"
    return said.rstrip("\n"), pictures


def _joined(text: Json) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text)
