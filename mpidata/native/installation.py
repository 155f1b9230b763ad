"""Where the built parts are: in this package, or where a site has installed libmpidata before it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from mpidata.errors import LibraryError

__all__ = ["SITE", "Folders", "folders", "folders_of", "read_facts"]

SITE = "site.json"
"""In `share/mpidata` of a package that was built against an installed libmpidata: says where its `build.json` is."""
_PACKAGE = Path(__file__).resolve().parents[1]


class Folders(NamedTuple):
    """Where what CMake has installed is; `prefix` is for CMAKE_PREFIX_PATH, `share` has `build.json`."""

    prefix: Path
    lib: Path
    include: Path
    bin: Path
    share: Path


def folders() -> Folders:
    """Find the built parts, which may not be there.

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
                f"install mpidata anew, with MPIDATA_LIBRARY set to the new libmpidata.so ({site} names the old one)."
            )
        share = facts.parent
    return folders_of(share)


def folders_of(share: Path) -> Folders:
    """Read from `build.json`, if it is there, where the other folders are as seen from its own."""
    facts = read_facts(share / "build.json") if (share / "build.json").is_file() else {}
    usual = {"prefix": "../..", "lib": "../../lib", "include": "../../include", "bin": "../../bin"}
    told = usual | facts.get("folders", {})
    prefix, lib, include, programs = (Path(os.path.normpath(share / told[name])) for name in usual)
    return Folders(prefix, lib, include, programs, share)


def read_facts(path: Path) -> dict[str, Any]:
    """Read a `build.json`, as CMake wrote it."""
    facts: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return facts
