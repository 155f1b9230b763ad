"""The result of a check, and how it is shown."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["Finding", "State", "as_json", "show"]

State = Literal["ok", "warning", "failed", "absent"]
_COLOURS = {"ok": "green", "warning": "yellow", "failed": "bold red", "absent": "dim"}


@dataclasses.dataclass(frozen=True)
class Finding:
    """A line of the table.

    Parameters
    ----------
    check : str
        What was checked.
    state : {'ok', 'warning', 'failed', 'absent'}
        `warning`: jobs run, but slower or less safely than they could. `failed`: they do not run. `absent`: it does not
        exist on this machine, or was not checked.
    found : str
        What was found.
    fix : str
        What to do, if anything.
    """

    check: str
    state: State
    found: str
    fix: str = ""


def as_json(findings: Sequence[Finding]) -> str:
    """Return findings as JSON: `{"ok": ..., "checks": [{"check": ..., "state": ..., "found": ..., "fix": ...}]}`."""
    good = all(finding.state != "failed" for finding in findings)
    return json.dumps({"ok": good, "checks": [dataclasses.asdict(finding) for finding in findings]}, indent=2)


def show(findings: Sequence[Finding], console: Console) -> None:
    """Print findings as a table."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for style in ("", "", ""):
        table.add_column(style=style, overflow="fold")
    for finding in findings:
        text = Text(finding.found)
        if finding.fix:
            text.append(f"\n{finding.fix}", "italic")
        table.add_row(Text(finding.check), Text(finding.state, _COLOURS[finding.state]), text)
    console.print(table)
