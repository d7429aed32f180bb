"""Chromium without a screen, and without a word to the network."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]

needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="needs Chromium: apt-get install chromium"
)


class Tab:
    """A page in Chromium, driven through its debugging pipe: real pointer, real keys."""

    def __init__(self, profile: Path) -> None:
        near, far = os.pipe(), os.pipe()  # commands to the browser, answers from it
        self.commands, self.answers = near[1], far[0]
        options = [f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        # Chromium reads commands from descriptor 3 and answers on 4. A shell puts the pipes there:
        # doing so in Python means a plain fork, which JAX warns of.
        pipes = f'exec "$0" "$@" 3<&{near[0]} 4>&{far[1]}'
        self.process = subprocess.Popen(
            ["bash", "-c", pipes, str(BROWSER), *QUIET, *options],
            pass_fds=(near[0], far[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (near[0], far[1]):
            os.close(end)
        self.buffer = b""
        self.count = 0
        self.session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        found = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        try:
            self.session = None
            self.send("Browser.close")
            self.process.wait(timeout=10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        finally:
            os.close(self.commands)
            os.close(self.answers)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data) :]
        return self.wait_for(lambda answer: answer.get("id") == self.count, method)

    def wait_for(self, fits: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        deadline = time.monotonic() + 60
        while True:
            while b"\0" in self.buffer:
                line, self.buffer = self.buffer.split(b"\0", 1)
                answer = json.loads(line)
                if "method" in answer:
                    self.events.append(answer)
                if fits(answer):
                    if "error" in answer:
                        raise RuntimeError(f"{what}: {answer['error']}")
                    return answer.get("result", answer)
            ready, _, _ = select.select([self.answers], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.answers, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError(f"{what}: no answer from Chromium")
            self.buffer += data

    def open(self, page: Path, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        self.events.clear()
        self.send("Page.navigate", url=page.as_uri())
        self.wait_for(lambda answer: answer.get("method") == "Page.loadEventFired", "load")
        # Two frames: sizes are observed. Then tables and the figures in sight are drawn.
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.run(
            "new Promise(done => { const look = () =>"
            " [...document.querySelectorAll('.stage, .filter-table')].every(s => s.dataset.drawn"
            " || s.matches('.stage') && s.getBoundingClientRect().top > innerHeight)"
            " ? done() : setTimeout(look, 20); look(); })"
        )

    def run(self, script: str) -> Any:
        """Value of an expression; what promises give is waited for."""
        found = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def texts(self, selector: str) -> list[str]:
        name = json.dumps(selector)
        return self.run(f"[...document.querySelectorAll({name})].map(e => e.textContent)")

    def place(self, selector: str, index: int = 0) -> tuple[float, float]:
        """Middle of an element, which is brought into view."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelectorAll({json.dumps(selector)})[{index}];"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        return x, y

    def mouse(self, kind: str, x: float, y: float, clicks: int = 0, alt: bool = False) -> None:
        button = "left" if clicks else "none"
        self.send(
            "Input.dispatchMouseEvent",
            type=kind, x=x, y=y, button=button, clickCount=clicks, modifiers=int(alt),
        )  # fmt: skip

    def hover(self, selector: str, index: int = 0) -> None:
        self.mouse("mouseMoved", *self.place(selector, index))

    def click(self, selector: str, index: int = 0, times: int = 1, alt: bool = False) -> None:
        at = self.place(selector, index)
        self.mouse("mouseMoved", *at)
        for count in range(1, times + 1):
            self.mouse("mousePressed", *at, clicks=count, alt=alt)
            self.mouse("mouseReleased", *at, clicks=count, alt=alt)

    def press(self, key: str) -> None:
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        codes |= {"Enter": 13, "Escape": 27, "Tab": 9, " ": 32, "Home": 36, "End": 35}
        known: dict[str, Any] = {"key": key, "code": key}
        known["windowsVirtualKeyCode"] = codes.get(key, ord(key[0].upper()))
        if len(key) == 1 or key == "Enter":
            known["text"] = "\r" if key == "Enter" else key
        self.send("Input.dispatchKeyEvent", type="keyDown", **known)
        self.send("Input.dispatchKeyEvent", type="keyUp", **known)

    def screenshot(self, whole: bool = False) -> bytes:
        found = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(found["data"])

    @property
    def errors(self) -> list[str]:
        """Exceptions, and what the console was told since the page was opened."""
        self.run("0")  # so that events sent until now have arrived
        wanted = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(e["params"]) for e in self.events if e["method"] in wanted]

    @property
    def requests(self) -> list[str]:
        self.run("0")
        sent = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]
