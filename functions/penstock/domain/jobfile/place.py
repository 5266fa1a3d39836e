"""Where a check stands in a document, and what it found wrong there. Knows nothing of lines and columns."""

from dataclasses import dataclass, field

__all__ = ["Fault", "Path", "Place", "clip"]

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Fault:
    """What is wrong at a path; `on_key` when the key is at fault, not its value."""

    path: Path
    message: str
    hint: str | None = None
    on_key: bool = False

    @property
    def where(self) -> str:
        """The path as people write it: `resources.db.type`, `output_rules[2]`."""
        return "".join(f"[{step}]" if isinstance(step, int) else f".{clip(step)}" for step in self.path).lstrip(".")


@dataclass(frozen=True)
class Place:
    """A path into the document, with the list that all faults go to."""

    path: Path = ()
    faults: list[Fault] = field(default_factory=list)

    def __truediv__(self, step: str | int) -> "Place":
        return Place((*self.path, step), self.faults)

    @property
    def label(self) -> str:
        name = ".".join(step for step in self.path if isinstance(step, str))
        entry = "an entry of " if isinstance(self.path[-1], int) else ""
        return f"{entry}`{clip(name)}`"

    def fault(self, message: str, hint: str | None = None, *, on_key: bool = False) -> None:
        self.faults.append(Fault(self.path, message, hint, on_key))


def clip(text: str, most: int = 80) -> str:
    """Fit for a message: short, and without characters that would act on a terminal."""
    short = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(char if char.isprintable() else "?" for char in short)
