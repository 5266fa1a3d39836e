"""The kinds of mutants, each with a record of its own: of conditions, and of effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutate import effects, sites
from tests.mutate.scope import modules
from tests.mutate.sites import Mutant

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Kind:
    """Mutants of one kind: what they are of, how a module's are found, and where it is kept what is known of them."""

    of: str
    mutants: Callable[[str], tuple[Mutant, ...]]
    record: Path
    equivalent: Path
    owed: Path

    def every(self) -> Iterator[Mutant]:
        """Every mutant of every module."""
        for module in modules():
            yield from self.mutants(module)


CONDITIONS = Kind(
    of="condition",
    mutants=sites.mutants,
    record=HERE.parent / "mutants.txt",
    equivalent=HERE / "equivalent.toml",
    owed=HERE / "owed.toml",
)

EFFECTS = Kind(
    of="effect",
    mutants=effects.mutants,
    record=HERE.parent / "mutants_effects.txt",
    equivalent=HERE / "equivalent_effects.toml",
    owed=HERE / "owed_effects.toml",
)

KINDS = {f"{kind.of}s": kind for kind in (CONDITIONS, EFFECTS)}
