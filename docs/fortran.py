"""Makes a Markdown page from the comments of the Fortran module: python docs/fortran.py fortran_api/mpidata.f90."""

import re
import sys
from pathlib import Path

from header import constants, prose

_TOP = re.compile(r"\A((?:!>.*\n)+)")
_CONSTANT = re.compile(r"public :: (MPIDATA_\w+) = (\d+)(?: +!< (.*))?$", re.MULTILINE)
_LIST = re.compile(r"^ *public :: (mpidata_.*)$", re.MULTILINE)
_ABOVE = r"((?:^ *!>.*\n)+) *"
_GENERIC = _ABOVE + r"interface {name}$"
_TYPE = _ABOVE + r"type :: {name}$"
_PROCEDURE = _ABOVE + r"((?:subroutine|function) {name}\(.*)\n((?:.* :: .*\n)*)"
_CALL = re.compile(r"\A`([^`]+)`: (.*)", re.DOTALL)
_MEANING = re.compile(r":: (\w+)(?:\(:\))? +!< (.*)")
_ARGUMENT = re.compile(r"^(\w+) {2,}(\S.*(?:\n +.*)*)", re.MULTILINE)


def page(module: str) -> str:
    """Return the page: the introduction, the constants, then each call with its comment."""
    top = _TOP.match(module)
    assert top is not None
    names = ", ".join(_LIST.findall(module)).split(", ")
    parts = ["# The Fortran module", "`use mpidata`", prose(_lines(top[1]), "fortran")]
    parts += ["## Constants", constants(_CONSTANT.findall(module)), "## Calls"]
    return "\n\n".join([*parts, *(_call(module, name) for name in names)]) + "\n"


def _lines(comment: str) -> str:
    return "\n".join(re.sub(r"^ *!> ?", "", line).rstrip() for line in comment.splitlines())


def _call(module: str, name: str) -> str:
    generic = re.search(_GENERIC.format(name=name), module, re.MULTILINE)
    if generic:
        match = _CALL.match(_lines(generic[1]))
        assert match is not None, name
        form, words = match[1], match[2][0].upper() + match[2][1:]
    elif structure := re.search(_TYPE.format(name=name), module, re.MULTILINE):
        form, words = f"type({name})", _lines(structure[1])
    else:
        procedure = re.search(_PROCEDURE.format(name=name), module, re.MULTILINE)
        assert procedure is not None, name
        words = _lines(procedure[1])
        result = re.search(r"result\((\w+)\)", procedure[2])
        declared = [line[2:] for line in procedure[3].splitlines()]
        seen = [line for line in declared if "intent(" in line or (result and line.endswith(result[1]))]
        form = "\n".join([procedure[2], *(line.partition("!<")[0].rstrip() for line in seen)])
        meanings = [f"- `{argument}`: {meaning}" for argument, meaning in _MEANING.findall("\n".join(seen))]
        words += "\n\n" * bool(meanings) + "\n".join(meanings)
    words = _ARGUMENT.sub(lambda found: f"- `{found[1]}`: {' '.join(found[2].split())}", words)
    return f"### `{name}`\n\n```fortran\n{form}\n```\n\n{prose(words, 'fortran')}"


if __name__ == "__main__":
    print(page(Path(sys.argv[1]).read_text()), end="")
