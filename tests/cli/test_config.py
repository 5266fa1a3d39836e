"""Which service is asked, with which token, and how the configuration file is kept."""

from pathlib import Path

import pytest

from penstock.cli.config import Config, Profile, Target, load, path, remove_profile, resolve, save_profile, use_profile
from penstock.cli.errors import Refused
from tests.cli.conftest import plain
from tests.cli.service import TOKEN, Service

CONFIG = Config({"local": Profile("http://l", "tl"), "work": Profile("http://w", "tw")}, None)
ENV = {"PENSTOCK_URL": "http://e", "PENSTOCK_TOKEN": "te"}


def where(
    config: Config, env: dict[str, str], url: str | None = None, token: str | None = None, name: str | None = None
) -> Target:
    return resolve(config, env, url=url, token=token, profile=name)


@pytest.mark.parametrize(
    ("env", "url", "token", "name", "default", "found"),
    [
        (ENV, "http://o", "to", "work", None, Target("http://o", "to", None)),
        (ENV, None, None, "work", None, Target("http://e", "te", None)),
        ({"PENSTOCK_PROFILE": "local"}, None, None, "work", "local", Target("http://w", "tw", "work")),
        ({"PENSTOCK_PROFILE": "work"}, None, None, None, "local", Target("http://w", "tw", "work")),
        ({}, None, None, None, "work", Target("http://w", "tw", "work")),
        ({}, None, None, None, None, Target("http://l", "tl", "local")),
        ({}, None, "to", "work", None, Target("http://w", "to", "work")),
        ({"PENSTOCK_TOKEN": "te"}, None, None, None, None, Target("http://l", "te", "local")),
        ({}, "http://l/", None, None, None, Target("http://l", "tl", "local")),
    ],
)
def test_precedence(
    env: dict[str, str], url: str | None, token: str | None, name: str | None, default: str | None, found: Target
) -> None:
    assert where(Config(CONFIG.profiles, default), env, url, token, name) == found


def test_a_profiles_token_is_sent_only_to_its_url() -> None:
    assert where(CONFIG, {}, "http://other") == Target("http://other", None, None)
    assert where(CONFIG, {"PENSTOCK_URL": "http://other"}, name="work").token is None


@pytest.mark.parametrize("name", ["nope", None])
def test_without_a_service_commands_are_refused(name: str | None) -> None:
    with pytest.raises(Refused) as caught:
        where(Config(), {}, name=name)
    assert "penstock local up" in (caught.value.hint or "")


def test_file_is_private_and_kept(home: Path) -> None:
    file = path({"HOME": str(home)})
    file.parent.mkdir(parents=True)
    file.write_text('# mine\n[profile.work]\nurl = "http://w" # here\n')
    save_profile(file, "local", Profile("http://l", "tl"))
    use_profile(file, "local")
    assert file.stat().st_mode & 0o777 == 0o600
    assert "# mine" in file.read_text()
    assert "# here" in file.read_text()
    assert load(file) == Config({"work": Profile("http://w"), "local": Profile("http://l", "tl")}, "local")
    remove_profile(file, "local")
    remove_profile(file, "local")
    assert load(file) == Config({"work": Profile("http://w")}, None)


@pytest.mark.parametrize("text", ["[profile", "profile = 1", "[profile.x]\ntoken = 't'", "\x00"])
def test_malformed_file(home: Path, text: str) -> None:
    file = path({"HOME": str(home)})
    file.parent.mkdir(parents=True)
    file.write_text(text)
    result = plain("job", "list")
    assert (result.exit_code, str(file) in result.stderr) == (2, True)


def test_xdg_config_home_is_used(home: Path) -> None:
    assert path({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}) == Path("/x/penstock/config.toml")
    assert path({"HOME": "/h"}) == Path("/h/.config/penstock/config.toml")


def test_profiles(home: Path, service: Service) -> None:
    file = path({"HOME": str(home)})
    save_profile(file, "work", Profile(service.url, TOKEN))
    assert plain("job", "list").exit_code == 2
    assert plain("profile", "use", "work").exit_code == 0
    assert plain("job", "list").exit_code == 0
    listed = plain("profile", "list").stdout
    assert "work" in listed
    assert TOKEN not in listed
    assert plain("profile", "use", "nope").exit_code == 2
