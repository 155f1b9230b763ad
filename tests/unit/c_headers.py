"""The declarations in the headers of c_api, as GCC lists them."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from mpidata.native.build_flags import build_facts

__all__ = ["Declaration", "declarations"]

C_API = Path(__file__).parents[2] / "c_api"
_LINE = re.compile(r"/\* (.+?):\d+:\w+ \*/ extern .*?(mpidata_\w+) \((.*)\);")


class Declaration(NamedTuple):
    """A function's headers, such as `wire/plan.h`, and its argument types."""

    headers: set[str]
    arguments: tuple[str, ...]


@functools.cache
def declarations() -> Mapping[str, Declaration]:
    """Return all functions by name, in the order of their header."""
    headers = [path.relative_to(C_API / "src") for path in sorted((C_API / "src").rglob("*.h"))]
    names = ["mpidata.h", *map(str, headers), "mpidata_carried.h"]
    command = [build_facts()["mpicc"], "-std=gnu11", f"-I{C_API / 'include'}", f"-I{C_API / 'src'}", "-fsyntax-only"]
    gcc = {name: "gcc" for name in ("OMPI_CC", "MPICH_CC")}
    with tempfile.TemporaryDirectory() as folder:
        source, listed = Path(folder, "all.c"), Path(folder, "listed")
        source.write_text("".join(f'#include "{name}"\n' for name in names))
        subprocess.run([*command, "-aux-info", listed, source], check=True, env=os.environ | gcc)
        found = _LINE.findall(listed.read_text())
    relative = {str(C_API / top / name): name for top in ("include", "src") for name in names}
    functions: dict[str, Declaration] = {}
    for path, name, arguments in (each for each in found if each[0] in relative):
        types = () if arguments == "void" else tuple(arguments.split(", "))
        functions.setdefault(name, Declaration(set(), types)).headers.add(relative[path])
    return functions
