"""A replay as one page without scripts: the verdict and the table."""

import base64
import hashlib
from collections.abc import Sequence
from html import escape

from holdfast.pages.html import DOCTYPE

STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;"
    "max-width:76rem;padding:0 1rem}table{border-collapse:collapse;width:100%}th,td{padding:.35rem"
    " .6rem;border-bottom:1px solid #8884;text-align:right;white-space:nowrap}th:first-child,"
    "td:first-child{text-align:left}small{opacity:.7;display:block}tr.ours{font-weight:600}"
)
NOTES = (
    "cost: all calls, the engine's own included. own: what the policy itself asked a model for. moves: calls"
    " whose prompt does not begin with the one before. over: calls past the window, which a provider"
    " refuses. regret: what a later call or answer needed and had left the view, with the price of getting it back. beats ours by:"
    " cost, if it stays under the window for less than our defaults; regret, if it misses less with a context of"
    " the same size."
)


def render_replay(
    verdict: Sequence[str], heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """Write the page; each row is a name, what it does, and a cell for each head."""
    hashed = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{hashed}'"
    titles = "".join(f"<th>{escape(head)}</th>" for head in ("policy", *heads))
    body = "".join(_table_row(row) for row in rows)
    said = "".join(f"<p>{escape(line)}</p>" for line in verdict)
    return (
        f'{DOCTYPE}<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>Replay</title><style>{STYLE}</style></head><body><h1>Replay</h1>{said}"
        f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
        f"<p><small>{escape(NOTES)}</small></p></body></html>\n"
    )


def _table_row(row: Sequence[str]) -> str:
    name, label, *cells = map(escape, row)
    kind = ' class="ours"' if name.startswith("ours") else ""
    values = "".join(f"<td>{cell}</td>" for cell in cells)
    return f"<tr{kind}><td>{name}<small>{label}</small></td>{values}</tr>"
