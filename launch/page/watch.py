"""`mpidata watch`: shows and refreshes the page of a run, in any shell that can read its folder."""

from __future__ import annotations

import os
import time
from pathlib import Path

from rich.console import Console
from rich.live import Live

from mpidata.errors import LaunchError
from mpidata.launch.page.page import draw
from mpidata.launch.page.view import View
from mpidata.run.folder import RunFolder

__all__ = ["watch_run"]

_EVERY_S = 1.0


def watch_run(folder: str | Path, once: bool, console: Console) -> None:
    """Show the page until the run ends or Ctrl-C; with `once`, show it once. Changes nothing.

    Raises
    ------
    LaunchError
        `folder` is not a run folder.
    """
    run = RunFolder(Path(folder).absolute())
    if not os.path.exists(run.plan):
        raise LaunchError(f"{folder} is not a run folder. Name one that `mpidata list` shows, such as runs/rod/1.")
    view = View(run)
    view.look()
    if once or not console.is_terminal:
        console.print(draw(view, console.width, 1000, console.encoding))
        return
    with Live(console=console, auto_refresh=False, screen=False) as live:
        try:
            while True:
                live.update(draw(view, console.width, console.height, console.encoding), refresh=True)
                if view.status != "running":
                    return
                time.sleep(_EVERY_S)
                view.look()
        except KeyboardInterrupt:
            return
