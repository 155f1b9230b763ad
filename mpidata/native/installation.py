"""The location of the built parts: this package, or a site's earlier installation of libmpidata."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from mpidata.errors import LibraryError

__all__ = ["SITE", "Folders", "folders", "folders_of", "read_facts"]

SITE = "site.json"
"""File in `share/mpidata` of a package built against an installed libmpidata; has the path of its `build.json`."""
_PACKAGE = Path(__file__).resolve().parents[1]


class Folders(NamedTuple):
    """The folders of an installation by CMake; `prefix` is for CMAKE_PREFIX_PATH, `share` has `build.json`."""

    prefix: Path
    lib: Path
    include: Path
    bin: Path
    share: Path


def folders() -> Folders:
    """Find the folders of the built parts, which need not exist.

    Raises
    ------
    LibraryError
        The package was built against an installation that is gone.
    """
    share = _PACKAGE / "share" / "mpidata"
    if (site := share / SITE).is_file():
        facts = Path(json.loads(site.read_text("utf-8"))["build"])
        if not facts.is_file():
            raise LibraryError(
                f"The libmpidata that this mpidata was installed on is gone: there is no {facts}. Load its module, or "
                f"reinstall mpidata with MPIDATA_LIBRARY set to the new libmpidata.so ({site} names the old one)."
            )
        share = facts.parent
    return folders_of(share)


def folders_of(share: Path) -> Folders:
    """Return the other folders, whose paths relative to `share` are in `build.json`, if it exists."""
    facts = read_facts(share / "build.json") if (share / "build.json").is_file() else {}
    usual = {"prefix": "../..", "lib": "../../lib", "include": "../../include", "bin": "../../bin"}
    told = usual | facts.get("folders", {})
    prefix, lib, include, programs = (Path(os.path.normpath(share / told[name])) for name in usual)
    return Folders(prefix, lib, include, programs, share)


def read_facts(path: Path) -> dict[str, Any]:
    """Read a `build.json`, as CMake wrote it; raises LibraryError if it cannot be read."""
    try:
        facts: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if not isinstance(facts, dict):
            raise ValueError("it holds no JSON object")
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise LibraryError(f"Cannot read {path}: {why}. Make it readable, or reinstall mpidata.") from None
    return facts
