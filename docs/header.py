"""Makes a page of Markdown from the comments of a C header: python docs/header.py c_api/include/mpidata.h."""

import re
import sys
import textwrap
from pathlib import Path

_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
_DECLARED = re.compile(r"/\*((?:(?!\*/).)*)\*/\n((?:int|const char \*) ?(mpidata_\w+)\([^;]*\);)", re.DOTALL)
_ENUM = re.compile(r"(typedef )?enum \{\n(.*?)\n\} ?(\w*);", re.DOTALL)
_CONSTANT = re.compile(r"(MPIDATA_\w+) = (\d+),?(?: +/\* (.*?) \*/)?")
_PARAMETER = re.compile(r"^@param\[(in|out)\] +(\w+) +(.*)$", re.DOTALL)


def page(header: str) -> str:
    """Return the page: the words at the top, the constants, then each call with its comment."""
    top = _COMMENT.search(header)
    assert top is not None
    parts = ["# The C header", "`#include <mpidata.h>`", _prose(_lines(top[1]))]
    for _, body, name in _ENUM.findall(header):
        parts += [f"## {f'`{name}`' if name else 'Status codes'}", _constants(body)]
    parts.append("## Calls")
    for comment, declaration, name in _DECLARED.findall(header):
        parts += [f"### `{name}`", f"```c\n{declaration}\n```", _prose(_lines(comment))]
    return "\n\n".join(parts) + "\n"


def _lines(comment: str) -> str:
    return "\n".join(re.sub(r"^ \* ?", "", line).rstrip() for line in comment.strip(" \n").splitlines())


def _constants(body: str) -> str:
    rows = [f"| `{name}` | {value} | {meaning} |" for name, value, meaning in _CONSTANT.findall(body)]
    return "\n".join(["| name | value | meaning |", "| --- | --- | --- |", *rows])


def _prose(text: str) -> str:
    parts: list[str] = []
    for part in re.split(r"\n(?: *\n)+", text):
        if part.startswith("    ") and parts and parts[-1].startswith("    "):  # a blank line within code
            parts[-1] += f"\n\n{part}"
        else:
            parts.append(part)
    return "\n\n".join(map(_paragraph, parts))


def _paragraph(text: str) -> str:
    if text.startswith("    "):
        return f"```c\n{textwrap.dedent(text)}\n```"
    if text.startswith("@param"):
        return "\n".join(_parameter(one) for one in re.split(r"\n(?=@param)", text))
    return re.sub(r"(?<!`)\b((?:mpidata|MPIDATA)_\w+(?:<\w+>)?(?:\(\))?)(?!`)", r"`\1`", text)


def _parameter(text: str) -> str:
    match = _PARAMETER.match(text)
    assert match is not None, text
    return f"- `{match[2]}` ({match[1]}): {_paragraph(' '.join(match[3].split()))}"


if __name__ == "__main__":
    print(page(Path(sys.argv[1]).read_text()), end="")
