"""A real browser at the console: what a test types and clicks, what the page said, and what it looked like."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docs.tools.browser import CHROMIUM, DESK, PHONE, QUIET, WALL

__all__ = ["CHROMIUM", "DESK", "PHONE", "QUIET", "WALL", "Console"]

ROOT = Path(__file__).parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
SCREENS = ROOT / "build" / "screens"
"""Screenshots of the last run, by page, width and colours."""

EXPECTED = ("status of 401", "status of 403", "status of 404", "status of 409", "status of 422", "status of 429")
"""What Chromium itself prints for an answer that the console shows as a refusal."""


@dataclass
class Console:
    """One visitor with a browser of their own: nothing is shared with another visitor."""

    page: Any
    url: str
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.errors.append(f"{error}"))
        self.page.on("request", lambda request: self.requests.append(f"{request.method} {request.url}"))

    def _heard(self, message: Any) -> None:
        if message.type == "error" and not any(each in message.text for each in EXPECTED):
            self.errors.append(message.text)

    def open(self, path: str) -> Any:
        """Go to a page, and wait for its heading and its first answer. Returns the page, to look for things in it."""
        self.page.goto(self.url + path)
        self.page.locator("main h1").wait_for()
        self.page.locator("main .loading").first.wait_for(state="detached")
        return self.page

    def sign_in(self, token: str) -> None:
        """Sign in with a token, as a person does."""
        self.page.goto(f"{self.url}/sign-in")
        self.page.locator("input[name=token]").fill(token)
        self.page.get_by_role("button", name="Sign in", exact=True).click()
        self.page.get_by_role("heading", name="Jobs", exact=True).wait_for()

    def button(self, name: str) -> Any:
        """A button of the page by its name. The question that it may ask has a button of the same name."""
        return self.page.locator("main").get_by_role("button", name=name, exact=True).first

    def press(self, name: str, **fields: str) -> None:
        """Press a button, fill in what it asks, and agree."""
        self.button(name).click()
        dialog = self.page.locator("dialog[open]")
        if dialog.count():
            for label, value in fields.items():
                dialog.get_by_label(label.replace("_", " ")).fill(value)
            dialog.get_by_role("button", name=name, exact=True).click()
            dialog.wait_for(state="hidden")

    def says(self, text: str) -> None:
        """Wait for a notice."""
        self.page.locator(".notices").get_by_text(text).first.wait_for()

    def faults(self) -> list[str]:
        """What axe finds wrong with the page as it is: the rule, and where."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {', '.join(node['target'][0] if node['target'] else '?' for node in each['nodes'][:5])}"
            for each in found["violations"]
        ]

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window: 0 where nobody has to scroll sideways."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def shot(self, name: str) -> None:
        """Keep a picture of the window."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENS / f"{name}.png")
