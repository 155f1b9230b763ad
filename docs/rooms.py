"""Draws docs/rooms.svg, the rooms of the code and their dependencies by imports: python docs/rooms.py [file]."""

import ast
import re
import sys
from pathlib import Path

from picture import GREY, SCHEDULER, SOLVER, TRAINER, _arrow, _box, _head, _text

ROOT = Path(__file__).resolve().parent.parent
STEP, BOX, FLOOR, HIGH = 126, 112, 74, 34
Arrows = dict[str, set[str]]


def python_rooms() -> Arrows:
    """Return the rooms of mpidata/ and launch/, with their subfolders, and the rooms that each imports.

    Imports for type checkers alone do not count.
    """
    folders = [f for top in ("mpidata", "launch") for f in (ROOT / top).iterdir() if (f / "__init__.py").exists()]
    arrows: Arrows = {f"{folder.parent.name}/{folder.name}": set() for folder in folders}
    for folder in folders:
        room = f"{folder.parent.name}/{folder.name}"
        for path in folder.rglob("*.py"):
            for name in imported(ast.parse(path.read_text())):
                parts = name.removeprefix("mpidata.").split(".")
                other = "/".join(parts[:2]) if parts[0] == "launch" else f"mpidata/{parts[0]}"
                arrows[room] |= {other} & arrows.keys() - {room}
    return arrows


def imported(tree: ast.AST) -> set[str]:
    """Return the names of all modules that a file imports."""
    names: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        else:
            names |= imported(node)
    return names


def c_rooms() -> Arrows:
    """Return the rooms of c_api/src, and the rooms whose headers each includes."""
    folders = [folder for folder in (ROOT / "c_api" / "src").iterdir() if any(folder.glob("*.c"))]
    arrows: Arrows = {f"src/{folder.name}": set() for folder in folders}
    for folder in folders:
        for path in folder.rglob("*.[ch]"):
            others = {f"src/{room}" for room in re.findall(r'^#include "(\w+)/', path.read_text(), re.MULTILINE)}
            arrows[f"src/{folder.name}"] |= others & arrows.keys() - {f"src/{folder.name}"}
    return arrows


def reachable(arrows: Arrows, start: str) -> set[str]:
    """Return all rooms that a room needs, directly or through others."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = arrows[waiting.pop()] - found
        found |= new
        waiting += sorted(new)
    return found


def floors(arrows: Arrows) -> list[list[str]]:
    """Return the rooms by floor, from the top: each is above those that it needs; rooms in a cycle share a floor."""
    below = {room: reachable(arrows, room) for room in arrows}

    def height(room: str) -> int:
        return max((1 + height(other) for other in below[room] if room not in below[other]), default=0)

    heights = {room: height(room) for room in arrows}
    return [sorted(r for r in arrows if heights[r] == level) for level in range(max(heights.values()), -1, -1)]


def drawn(arrows: Arrows) -> list[tuple[str, str]]:
    """Return the arrows that other arrows do not imply."""
    below = {room: reachable(arrows, room) for room in arrows}
    return [
        (room, other)
        for room in sorted(arrows)
        for other in sorted(arrows[room])
        if not any(other in below[via] and via not in below[other] for via in arrows[room] - {other})
    ]


def colour(room: str) -> str:
    """Return the colour of the room's role, as in picture.svg."""
    return {"solver": SOLVER, "trainer": TRAINER, "scheduler": SCHEDULER}.get(room.split("/")[1], GREY)


def part(title: str, arrows: Arrows, top: int, width: int) -> tuple[list[str], int]:
    """Draw one language's rooms below `top`; return the drawing and its lower end."""
    rows = floors(arrows)
    place = {
        room: (round(width / 2 + STEP * (i - (len(row) - 1) / 2)) - BOX // 2, top + 40 + FLOOR * level)
        for level, row in enumerate(rows)
        for i, room in enumerate(row)
    }
    lines, boxes = [], []
    for room, other in drawn(arrows):
        (x, y), (u, v) = place[room], place[other]
        x, u = x + BOX // 2, u + BOX // 2
        middle = (y + HIGH + v) // 2
        lines.append(_arrow(f"M{x},{y + HIGH} C{x},{middle} {u},{middle} {u},{v}", colour(room), 'opacity="0.8"'))
    for room, (x, y) in place.items():
        ink = colour(room)
        boxes += [
            _box(x, y, BOX, HIGH, ink),
            _text(x + BOX // 2, y + 22, room.removeprefix("src/"), 11, "#1f2933", 'text-anchor="middle"'),
        ]
    return [_text(28, top + 20, title, 13, GREY), *lines, *boxes], top + 40 + FLOOR * len(rows)


def picture() -> str:
    """Compose the picture."""
    width = 700
    python, end = part("Python: mpidata/ and launch/", python_rooms(), 14, width)
    c, end = part("C: c_api/src/", c_rooms(), end, width)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {end}" width="{width}" height="{end}" '
            'font-family="Helvetica, Arial, sans-serif">',
            "<title>The rooms of the code; an arrow leads to what a room needs</title>",
            f"<defs>{''.join(_head(colour) for colour in (GREY, SOLVER, TRAINER, SCHEDULER))}</defs>",
            f'<rect width="{width}" height="{end}" fill="#ffffff"/>',
            *python,
            *c,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".svg")
    target.write_text(picture(), encoding="utf-8")
