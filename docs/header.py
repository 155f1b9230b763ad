"""Makes a Markdown page from the comments of a C header: python docs/header.py c_api/include/mpidata.h."""

import re
import sys
import textwrap
from pathlib import Path

_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
_DECLARED = re.compile(r"/\*((?:(?!\*/).)*)\*/\n((?:int|const char \*) ?(mpidata_\w+)\([^;]*\);)", re.DOTALL)
_ENUM = re.compile(r"(typedef )?enum \{\n(.*?)\n\} ?(\w*);", re.DOTALL)
_CONSTANT = re.compile(r"(MPIDATA_\w+) = (\d+),?(?: +/\* (.*?) \*/)?")
_PARAMETER = re.compile(r"^@param\[(in|out)\] +(\w+(?:, \w+)*) +(.*)$", re.DOTALL)
_NAME = re.compile(r"`[^`]*`|\b(?:mpidata|MPIDATA)_\w+(?:<\w+>)?(?:\(\))?")


def page(header: str) -> str:
    """Return the page: the introduction, the constants, then each call with its comment."""
    top = _COMMENT.search(header)
    assert top is not None
    parts = ["# The C header", "`#include <mpidata.h>`", prose(_lines(top[1]), "c")]
    for _, body, name in _ENUM.findall(header):
        parts += [f"## {f'`{name}`' if name else 'Status codes'}", constants(_CONSTANT.findall(body))]
    parts.append("## Calls")
    for comment, declaration, name in _DECLARED.findall(header):
        parts += [f"### `{name}`", f"```c\n{declaration}\n```", prose(_lines(comment), "c")]
    return "\n\n".join(parts) + "\n"


def _lines(comment: str) -> str:
    return "\n".join(re.sub(r"^ \* ?", "", line).rstrip() for line in comment.strip(" \n").splitlines())


def constants(found: list[tuple[str, str, str]]) -> str:
    """Return a table with the name, value and meaning of each constant."""
    rows = [f"| `{name}` | {value} | {meaning} |" for name, value, meaning in found]
    return "\n".join(["| name | value | meaning |", "| --- | --- | --- |", *rows])


def prose(text: str, language: str) -> str:
    """Return a comment as Markdown; text indented by four blanks is code in this language."""
    parts: list[str] = []
    for part in re.split(r"\n(?: *\n)+", text):
        if part.startswith("    ") and parts and parts[-1].startswith("    "):  # a blank line within code
            parts[-1] += f"\n\n{part}"
        else:
            parts.append(part)
    return "\n\n".join(_paragraph(part, language) for part in parts)


def _paragraph(text: str, language: str) -> str:
    if text.startswith("    "):
        return f"```{language}\n{textwrap.dedent(text)}\n```"
    if text.startswith("@param"):
        return "\n".join(_parameter(one) for one in re.split(r"\n(?=@param)", text))
    return _NAME.sub(lambda match: match[0] if match[0].startswith("`") else f"`{match[0]}`", text)


def _parameter(text: str) -> str:
    match = _PARAMETER.match(text)
    assert match is not None, text
    names = ", ".join(f"`{name}`" for name in match[2].split(", "))
    return f"- {names} ({match[1]}): {_paragraph(' '.join(match[3].split()), '')}"


if __name__ == "__main__":
    print(page(Path(sys.argv[1]).read_text()), end="")
