"""docs/users/cli.md says what the commands say."""

from pathlib import Path

from penstock.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "users" / "cli.md"


def test_the_reference_page_is_up_to_date() -> None:
    assert PAGE.read_text() == reference(), "run `python -m penstock.cli.reference > docs/users/cli.md`"
