"""Makes the pictures of the console in the documentation: docs/pictures/console-*.png.

A browser looks at the console of a cloud on this machine, in which people run jobs. Ids, ages and times of day are
others each time. So a picture replaces the one before only if more of it differs than these make up: delete a picture
to have it made anew in any case. Without a browser there are no new pictures.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from docs.tools.browser import CHROMIUM, QUIET
from docs.tools.cloud import Around, cloud, says, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AT_MOST_BYTES = 120_000
"""How big a picture may be: they are loaded with the pages."""

NEGLIGIBLE = 0.06
"""The share of a picture's pixels in which two runs may differ: other ids, ages, and lengths of stages."""

SITE = """
[factories.here]
driver = "process"

[targets."ubuntu-24.04"]
factory = "here"
limit = 8

[targets.default]
redirect = "ubuntu-24.04"

[wells.locks]
driver = "lock"

[resources.bench]
well = "locks"
names = ["bench-1", "bench-2"]

[resources.licence]
well = "locks"
limit = 2

[resources.logic-analyser]
well = "locks"
names = ["saleae-1"]

[prices]
currency = "USD"

[limits]
heartbeat = "1s"
"""
JOB = '#!/bin/bash\n#: name = "{name}"\n#: variety = "basic"\n#: resources = {resources}\n{more}{script}\n'
LONG = 'echo "since $(date +%H:%M)"; sleep 600'
BUILD = r"""
bench=$(bmat resource get bench name)
echo "flashing $bench"
sleep 3
for test in boot clock adc spi i2c watchdog; do printf '\033[32mok\033[0m   %s\n' $test; sleep 0.4; done
echo "6 passed" | tee "$PENSTOCK_WORK/report.txt"
"""


class Person(NamedTuple):
    """Somebody who submits jobs."""

    around: Around

    def submits(self, name: str, resources: tuple[str, ...] = (), script: str = LONG, more: str = "") -> str:
        """Submit a job, without waiting for it. Returns its id."""
        text = JOB.format(name=name, resources=json.dumps(resources), more=more, script=script)
        (Path(self.around["HOME"]) / "job.sh").write_text(text, encoding="utf-8")
        return says(self.around, "job run job.sh --no-wait")


@dataclass(frozen=True)
class Picture:
    """One picture: its name, the page's path, what the page says once all is there, the size of the window in pixels,
    and the colours.
    """

    name: str
    path: str
    says: tuple[str, ...]
    size: tuple[int, int]
    colours: str = "light"


def pictures(job: str) -> list[Picture]:
    """All pictures of the console. `job` is the one whose page is shown."""
    desk, phone = (1240, 780), (390, 740)
    tested, waited = ("6 passed", "cleaning"), ("Next:",)
    return [
        Picture("job", f"/jobs/{job}", tested, desk),
        Picture("job-dark", f"/jobs/{job}", tested, desk, "dark"),
        Picture("pools", "/pools", (*waited, "trace i2c"), desk),
        Picture("pools-phone", "/pools?only=waited+for", waited, phone),
        Picture("graph", "/graph", ("soak test",), (1240, 560), "dark"),
        Picture("operator", "/operator", ("pools paused", "the probe is loose"), desk),
    ]


def main(folder: Path) -> None:
    """Make all pictures of the console in a folder."""
    if CHROMIUM is None:
        print("no pictures of the console: there is no Chromium on this machine; apt install chromium, or set CHROMIUM")
        return
    with cloud(SITE) as around, _browser(CHROMIUM) as browser:
        job = _scene(around)
        address = says(around, "console --print").splitlines()[0]
        signed_in = _visitor(browser, address)
        for each in pictures(job):
            _keep(browser, _taken(browser, signed_in, address.partition("/#")[0], each), folder, each.name)


def _scene(around: Around) -> str:
    """Jobs of three people: one is done, some hold what others wait for. Returns the one that is done."""
    ada, ben, carla = (_person(around, name) for name in ("ada", "ben", "carla"))
    done = ada.submits("board tests", ("bench",), BUILD, '#: output_rules = ["=/work/report.txt"]\n')
    until(around, done, "settled")
    for holds in (
        ada.submits("soak test", ("bench", "licence")),
        ben.submits("flash", ("bench",)),
        carla.submits("trace spi", ("logic-analyser",)),
    ):
        until(around, holds, "running")
    ben.submits("flash rev-b", ("bench",))
    carla.submits("power cycles", ("bench", "logic-analyser"))
    ada.submits("board tests", ("bench",))
    ben.submits("trace i2c", ("logic-analyser",))
    says(around, "pool pause resource/licence --reason 'the server moves'")
    units = json.loads(says(around, "resource list --json"))
    held = next(each["id"] for each in units if each["slot"] == "saleae-1")
    says(around, f"resource hold {held} --reason 'the probe is loose' --for 30m")
    return done


def _person(around: Around, name: str) -> Person:
    says(around, f"user create {name}")
    made = json.loads(says(around, f"token create --user {name} --json"))
    url = json.loads(says(around, "console --print --json"))["url"].partition("/#")[0]
    return Person({**around, "PENSTOCK_TOKEN": made["token"], "PENSTOCK_URL": url})


@contextmanager
def _browser(program: str) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright  # only `make pictures` and `make e2e` install it

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=QUIET)
        yield browser
        browser.close()


def _visitor(browser: Browser, address: str) -> Any:
    """What a browser keeps of somebody who signed in with the address that `penstock console` prints."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.get_by_role("button", name="Sign out").wait_for()
    state = context.storage_state()
    context.close()
    return state


def _taken(browser: Browser, signed_in: Any, url: str, picture: Picture) -> bytes:
    """A page as PNG. Raises ValueError if it is too big."""
    width, height = picture.size
    context = browser.new_context(
        storage_state=signed_in,
        viewport={"width": width, "height": height},
        color_scheme="dark" if picture.colours == "dark" else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.goto(url + picture.path)
    page.locator("main h1").wait_for()
    for text in picture.says:
        page.locator("main").get_by_text(text).filter(visible=True).first.wait_for()
    page.locator("main .loading, main .glance .off").first.wait_for(state="detached")  # what is not known yet
    png: bytes = page.screenshot()
    context.close()
    if len(png) > AT_MOST_BYTES:
        raise ValueError(f"{picture.name} has {len(png)} bytes, and may have {AT_MOST_BYTES}: make its window smaller")
    return png


def _keep(browser: Browser, png: bytes, folder: Path, name: str) -> None:
    """Write a picture, unless the one that is there shows the same."""
    path = folder / f"console-{name}.png"
    page = browser.new_page()
    share = difference(page, path.read_bytes(), png) if path.is_file() else 1.0
    page.close()
    if share > NEGLIGIBLE:
        path.write_bytes(png)
    print(path, f"{len(png)} bytes, {share:.1%} differ", "" if share > NEGLIGIBLE else "(kept)")


COMPARE = """async (pictures) => {
  const read = async (png) => {
    const image = new Image();
    image.src = "data:image/png;base64," + png;
    await image.decode();
    const surface = new OffscreenCanvas(image.width, image.height).getContext("2d");
    surface.drawImage(image, 0, 0);
    return surface.getImageData(0, 0, image.width, image.height);
  };
  const [one, other] = await Promise.all(pictures.map(read));
  if (one.width !== other.width || one.height !== other.height) return 1;
  let count = 0;
  for (let at = 0; at < one.data.length; at += 4)
    count += [0, 1, 2].some((each) => Math.abs(one.data[at + each] - other.data[at + each]) > 16);
  return count / (one.width * one.height);
}"""
"""The browser reads PNG, so nothing else has to."""


def difference(page: Page, one: bytes, other: bytes) -> float:
    """The share of pixels in which two pictures differ visibly: 1 if their sizes differ."""
    return float(page.evaluate(COMPARE, [base64.b64encode(each).decode() for each in (one, other)]))
