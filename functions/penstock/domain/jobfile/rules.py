"""Output rules: `/work/*.log` with the sigils `!`, `=` and `%` before it."""

from dataclasses import dataclass

__all__ = ["OutputRule", "parse_output_rule"]


@dataclass(frozen=True)
class OutputRule:
    """Which files to keep. `path` is an absolute pattern; `text` the rule as written.

    `ignore` never keeps a match; `require_match` fails the job if nothing matched; `size_change_ok` lets
    files change or vanish while they are read.
    """

    path: str
    ignore: bool
    require_match: bool
    size_change_ok: bool
    text: str

    def __str__(self) -> str:
        sigils = "!" * self.ignore + "%" * self.size_change_ok + "=" * self.require_match
        return sigils + self.path


# What may follow the sigils read so far, besides the slash that starts the path.
NEXT = {"": "!=%", "!": "", "=": "%", "%": "=", "=%": "", "%=": ""}


def parse_output_rule(text: str) -> OutputRule | str:
    """The rule, or a sentence that says which character is wrong."""
    sigils = ""
    for at, char in enumerate(text):
        if char == "/":
            return OutputRule(text[at:], "!" in sigils, "=" in sigils, "%" in sigils, text)
        if char not in NEXT[sigils]:
            return _unwanted(char, sigils)
        sigils += char
    return "output rule pattern must be absolute path"


def _unwanted(char: str, sigils: str) -> str:
    if not sigils:
        return f"wanted sigil/absolute path, not {char!r}"
    if NEXT[sigils]:
        return f"{char!r} unexpected in output rule"
    return f"wanted '/', not {char!r}, in output rule"
