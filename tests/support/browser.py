"""A real browser without windows: Debian's chromium, spoken to over two pipes.

The DevTools protocol over `--remote-debugging-pipe` needs no package: a message is JSON and a NUL.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
    *("--disable-background-networking", "--remote-debugging-pipe"),
)
WAIT = 60  # seconds for an answer: machines may be busy


class Browser:
    """One page of a browser. events: every message that was not an answer."""

    def __init__(self, profile: Path) -> None:
        to_browser, ours = os.pipe()
        theirs, from_browser = os.pipe()

        def give_pipes() -> None:
            os.dup2(to_browser, 9)
            os.dup2(from_browser, 8)
            os.dup2(9, 3)
            os.dup2(8, 4)

        command = [CHROMIUM, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            command, preexec_fn=give_pipes, close_fds=False, stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(from_browser)
        self._write, self._read, self._buffer, self._last = ours, theirs, b"", 0
        self._session = None
        self.events: list[dict] = []
        pages = self.ask("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in pages if one["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method, **params):
        """The result of a command."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _message(self):
        end = time.monotonic() + WAIT
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            chunk = os.read(self._read, 1 << 20)
            assert chunk, "the browser has ended"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path, width=1200, dark=False):
        """Shows a file, from the start and without earlier events."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=scheme)
        self.events.clear()
        self.ask("Page.navigate", url=Path(path).resolve().as_uri())
        end = time.monotonic() + WAIT
        while not any(one.get("method") == "Page.loadEventFired" for one in self.events):
            assert time.monotonic() < end, "the page does not load"
            self.events.append(self._message())

    def run(self, script):
        """The value of a piece of JavaScript, awaited."""
        how = {"expression": script, "returnByValue": True, "awaitPromise": True}
        result = self.ask("Runtime.evaluate", **how)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def requests(self):
        """The addresses that the page asked for, except its own and those of data: URLs."""
        urls = [
            one["params"]["request"]["url"]
            for one in self.events
            if one.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in urls[1:] if not url.startswith("data:")]

    def messages(self):
        """The messages on the console, exceptions included."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [one["params"] for one in self.events if one.get("method") in kinds]

    def picture(self, path):
        """Writes a screenshot as PNG."""
        data = self.ask("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        """Ends the browser."""
        self.ask("Browser.close")
        self._process.wait(WAIT)
        os.close(self._write)
        os.close(self._read)
