"""The command finds a home folder if the environment names none."""

import os
import pwd
from pathlib import Path

import pytest

from mpidata.startup import find_home


def found(**environ: str) -> tuple[str, str | None]:
    find_home(environ)
    return environ["HOME"], environ.get("USER")


def entry(monkeypatch: pytest.MonkeyPatch, home: Path | None) -> None:
    def getpwuid(_: int) -> pwd.struct_passwd:
        if home is None:
            raise KeyError
        return pwd.struct_passwd(("me", "x", 7, 7, "", str(home), "/bin/sh"))

    monkeypatch.setattr(pwd, "getpwuid", getpwuid)


def test_existing_home_and_user_are_kept() -> None:
    assert found(HOME="/nowhere", USER="x") == ("/nowhere", "x") and found(HOME="/", LOGNAME="x") == ("/", None)


@pytest.mark.parametrize("empty", [{}, {"HOME": "", "USER": ""}])
def test_home_is_read_from_the_user_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty: dict[str, str]
) -> None:
    entry(monkeypatch, tmp_path)
    assert found(**empty) == (str(tmp_path), "me")


def test_missing_home_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry(monkeypatch, tmp_path / "none")
    assert found() == ("/", "me")


def test_user_without_an_entry_is_named_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    entry(monkeypatch, None)
    assert found() == ("/", str(os.geteuid()))
