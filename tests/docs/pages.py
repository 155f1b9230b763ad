"""Parses the pages of the documentation."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = [README, CONTRIBUTING, ROOT / "CHANGELOG.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
_FENCE = re.compile(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A code block: its language, and the name of its file, `fragment`, or nothing."""

    page: Path
    line: int
    language: str
    name: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}-{self.line}"


def blocks(*languages: str, page: Path | None = None) -> list[Block]:
    """Return all blocks in these languages, from one page or from all."""
    found = []
    for path in [page] if page else PAGES:
        text = path.read_text()
        for match in _FENCE.finditer(text):
            language, name, code = match.groups()
            line = text.count("\n", 0, match.start()) + 1
            if not languages or language in languages:
                found.append(Block(path, line, language, name, code))
    return found


def files(page: Path) -> dict[str, str]:
    """Return the named files of a page."""
    return {block.name: block.text for block in blocks(page=page) if block.name and block.name != "fragment"}


def prose(page: Path) -> str:
    """Return a page without its blocks."""
    return _FENCE.sub("", page.read_text())


def spans(page: Path) -> list[str]:
    """Return the inline code in the prose, with line ends replaced by blanks."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose(page))]


def table(page: Path, heading: str) -> list[str]:
    """Return the code in the first column of the first table after a text."""
    _, found, rest = page.read_text().partition(heading)
    assert found, f"{page.name} has no {heading!r}"
    rows = re.search(r"^\|.*?(?=\n[^|]|\Z)", rest, re.MULTILINE | re.DOTALL)
    assert rows
    return [name for row in rows[0].splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
