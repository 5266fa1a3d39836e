"""A real browser at the console: what a test types and clicks, what the page said, and what it looked like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docs.tools.browser import CHROMIUM, DESK, PHONE, QUIET, WALL

__all__ = ["CHROMIUM", "DESK", "PHONE", "QUIET", "WALL", "Console"]

ROOT = Path(__file__).parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
SCREENS = ROOT / "build" / "screens"
"""Screenshots of the last run, by page, width and colours."""

EXPECTED = tuple(f"status of {each}" for each in (400, 401, 403, 404, 409, 410, 412, 422, 429))
"""What Chromium itself prints for an answer that the console shows as a refusal."""

ROWS = """(table) => [...table.querySelectorAll('tbody tr')].map((row) => Object.fromEntries(
    [...row.querySelectorAll('td[data-title]')].map((cell) => [cell.dataset.title, cell.textContent.trim()])))"""

LOOKS = 600
"""How often a test looks whether what it waits for has come, a tenth of a second after the other."""


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

    def press(self, name: str, within: Any = None, **fields: str | bool) -> None:
        """Press a button, fill in what it asks, and agree. `within`: a part of the page that has the button."""
        button = within.get_by_role("button", name=name, exact=True).first if within else self.button(name)
        button.click()
        dialog = self.page.locator("dialog[open]")
        if dialog.count():
            for label, value in fields.items():
                fill(self.field(label.replace("_", " "), dialog), value)
            dialog.get_by_role("button", name=name, exact=True).click()
            dialog.wait_for(state="hidden")

    def field(self, label: str, within: Any = None) -> Any:
        """A field by the words before it; by default one of the page's filters."""
        part = within or self.page.locator("main .filters")
        titled = part.locator(f'label:has(> span:text-is("{label}"))').locator("input, select, textarea")
        return (titled if titled.count() else part.get_by_label(label)).first

    def choose(self, label: str, value: str) -> None:
        """Set one of the page's filters."""
        field = self.field(label)
        fill(field, value)
        field.dispatch_event("change")  # as Enter, or leaving the field

    def region(self, name: str) -> Any:
        """A part of the page that has a name, such as a table."""
        return self.page.get_by_role("region", name=name, exact=True)

    def row(self, table: str, text: str) -> Any:
        """The row of a table that has a text."""
        return self.region(table).get_by_role("row").filter(has_text=text).first

    def abroad(self) -> list[str]:
        """Requests that went to another origin."""
        return [each for each in self.requests if f" {self.url}/" not in each]

    def says(self, text: str) -> None:
        """Wait for a notice."""
        self.page.locator(".notices").get_by_text(text).first.wait_for()

    def becomes(self, read: Callable[[], Any], wanted: Any) -> None:
        """Wait until what is read is what is wanted. Meanwhile the page goes on, and requests are answered."""
        for _ in range(LOOKS):
            if read() == wanted:
                return
            self.page.wait_for_timeout(100)
        found = read()
        assert found == wanted, f"{found!r} instead of {wanted!r}"

    def until(self, happened: Callable[[], Any]) -> Any:
        """Wait until something is so, and return it."""
        self.becomes(lambda: bool(happened()), True)
        return happened()

    def copied(self, name: str, within: Any = None) -> str:
        """Press a button that copies, and return what is in the clipboard then."""
        self.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page.evaluate("navigator.clipboard.writeText('')")
        (within.get_by_role("button", name=name, exact=True).first if within else self.button(name)).click()
        return str(self.until(lambda: self.page.evaluate("navigator.clipboard.readText()")))

    def download(self, press: Callable[[], None]) -> bytes:
        """Press a button that downloads, and return the file."""
        with self.page.expect_download() as coming:
            press()
        return Path(coming.value.path()).read_bytes()

    def rows(self, caption: str) -> list[dict[str, str]]:
        """The rows of a table, each cell by its column's title."""
        table = self.page.locator("main table").filter(has=self.page.locator(f"caption:text-is('{caption}')")).first
        return list(table.evaluate(ROWS)) if table.count() else []

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


def fill(field: Any, value: str | bool) -> None:
    """Give a field a value: text, a choice by its words, or whether it is checked."""
    if isinstance(value, bool):
        field.set_checked(value)
    elif field.evaluate("each => each.tagName") == "SELECT":
        field.select_option(label=value)
    else:
        field.fill(value)
