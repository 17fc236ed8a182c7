"""Web pages as text: headings, lists, links with their addresses, code, tables as rows.

Scripts, styles and forms are left out. Broken HTML gives what can be read of it.
"""

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

_MACHINERY = """
button canvas dialog form iframe noscript object script select style svg template
"""
_SKIPPED = frozenset(_MACHINERY.split())
_BLOCKS = """
address article aside blockquote dd div dl dt figcaption figure footer header hr main nav ol p
section table ul
"""
_BREAKING = frozenset(_BLOCKS.split())
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}


def readable_text(html: str, address: str = "") -> str:
    reader = _Reader(address)
    reader.feed(html)
    reader.close()
    return _tidy("".join(reader.parts), reader.title)


def _tidy(text: str, title: str) -> str:
    lines = [line.rstrip() for line in text.split("\n")]
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    title = " ".join(title.split())
    return f"# {title}\n\n{body}" if title and title not in body[:400] else body


class _Reader(HTMLParser):
    def __init__(self, address: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = ""
        self._address = address
        self._skipping: list[str] = []
        self._in_title = False
        self._in_code = 0
        self._links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED:
            self._skipping.append(tag)
        elif tag == "title":
            self._in_title = not self.title
        elif tag in _HEADINGS:
            self.parts.append(f"\n\n{_HEADINGS[tag]} ")
        elif tag == "pre":
            self._in_code += 1
            self.parts.append("\n```\n")
        elif tag == "a":
            self._links.append(dict(attrs).get("href") or "")
        elif tag in ("td", "th"):
            self.parts.append(" | ")
        elif tag == "img" and (text := dict(attrs).get("alt")):
            self.handle_data(f"[{text}]")
        else:
            self.parts.append({"br": "\n", "li": "\n- ", "tr": "\n"}.get(tag, self._break(tag)))

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            if tag in self._skipping:
                del self._skipping[self._skipping.index(tag) :]
        elif tag == "title":
            self._in_title = False
        elif tag == "pre" and self._in_code:
            self._in_code -= 1
            self.parts.append("\n```\n")
        elif tag == "a" and self._links:
            self._end_link(self._links.pop())
        else:
            self.parts.append("\n\n" if tag in _HEADINGS else self._break(tag))

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._skipping:
            self.parts.append(data if self._in_code else self._flowed(data))

    def _flowed(self, data: str) -> str:
        """Collapse whitespace, with none at the beginning of a line."""
        text = re.sub(r"\s+", " ", data)
        at_start = not self.parts or self.parts[-1].endswith(("\n", " "))
        return text.lstrip() if at_start else text

    def _break(self, tag: str) -> str:
        return "\n\n" if tag in _BREAKING else ""

    def _end_link(self, target: str) -> None:
        if target and not target.startswith(("#", "javascript:", "data:")) and not self._skipping:
            self.parts.append(f" ({urljoin(self._address, target)})")
