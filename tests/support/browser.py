"""A headless Chromium over its debugging pipe: open pages, run scripts, click and drag."""

import base64
import fcntl
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from programs import find

CHROMIUM = next(filter(None, map(find, ("chromium", "chromium-browser"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
WAIT_SECONDS = 40.0


class Browser:
    """One tab. Messages are JSON, each ended by a zero byte."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._buffer, self._last = b"", 0
        self.events: list[dict] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = ""
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params):
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if getattr(self, "_session", ""):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict:
        while b"\0" not in self._buffer:
            piece = os.read(self._read, 1 << 20)
            assert piece, "Chromium ended"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, url: str) -> None:
        """Open an address and wait until the page has drawn itself."""
        self.events.clear()
        self.ask("Page.navigate", url=url)
        self.wait("document.documentElement?.dataset.drawn")

    def run(self, script: str):
        """Evaluate an expression in the page and return its value."""
        done = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, script: str):
        """Evaluate an expression until it is true."""
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            if found := self.run(script):
                return found
        raise AssertionError(f"never true: {script}")

    def complaints(self) -> list[str]:
        """List exceptions and errors on the page's console."""
        self.run("0")
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:600])
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(params["entry"]["text"])
            elif event["method"] == "Page.javascriptDialogOpening":
                found.append("a dialog opened")
        return found

    def requested(self) -> list[str]:
        """List the addresses the page asked for, its own left out."""
        sent = [e["params"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in sent[1:]]

    def drag(self, selector: str, start: float, end: float) -> None:
        """Press at one share of an element's width, move, and release at another."""
        box = self.run(
            f"(b => [b.x, b.y, b.width, b.height])(document.querySelector({selector!r})"
            ".getBoundingClientRect())"
        )
        x, y, width, height = box
        row = y + height / 2

        def mouse(kind: str, share: float, buttons: int) -> None:
            self.ask(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x + width * share,
                y=row,
                button="left",
                buttons=buttons,
                clickCount=1,
            )

        mouse("mouseMoved", start, 0)
        mouse("mousePressed", start, 1)
        for step in range(1, 6):
            mouse("mouseMoved", start + (end - start) * step / 5, 1)
        mouse("mouseReleased", end, 0)

    def size(self, width: int, height: int, *, is_phone: bool = False) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if is_phone else 1,
            mobile=is_phone,
        )

    def prefer(self, scheme: str) -> None:
        self.ask(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    def picture(self, path: Path, *, is_whole: bool = False) -> None:
        done = self.ask("Page.captureScreenshot", captureBeyondViewport=is_whole)
        path.write_bytes(base64.b64decode(done["data"]))


def _pipe() -> tuple[int, int]:
    """Make a pipe whose numbers are not those that Chromium is to find its ends under."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in low)
    for one in low:
        os.close(one)
    return high


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Start a Chromium with a profile of its own and end it."""
    there, ours = _pipe(), _pipe()

    def place() -> None:
        os.dup2(there[0], 3)
        os.dup2(ours[1], 4)

    process = subprocess.Popen(
        [CHROMIUM, *FLAGS, f"--user-data-dir={profile}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=place,
        close_fds=False,
    )
    os.close(there[0])
    os.close(ours[1])
    try:
        browser = Browser(ours[0], there[1])
        browser.size(1280, 900)
        yield browser
    finally:
        process.terminate()
        process.wait()
        os.close(ours[0])
        os.close(there[1])
