"""What is wrong with a job file, where, and what was meant."""

from dataclasses import dataclass

__all__ = ["Problem", "Problems"]


@dataclass(frozen=True)
class Problem:
    """One fault at one place. Lines and columns count from 1; columns count characters."""

    file: str
    line: int
    column: int
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.file}:{self.line}:{self.column}: {self.message}{hint}"


@dataclass(frozen=True)
class Problems:
    """Everything wrong with one job file, in the order of its lines."""

    items: tuple[Problem, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.items))
