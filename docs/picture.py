"""Draws docs/picture.svg, the picture of a job: python docs/picture.py [file]."""

import sys
from pathlib import Path

WIDTH, HEIGHT = 900, 430
INK, GREY, SOLVER, TRAINER, SCHEDULER, SEEN = "#1f2933", "#7b8794", "#2f6fb0", "#3d8f57", "#b7791f", "#cfe6d6"


def _box(x: int, y: int, width: int, height: int, colour: str, fill: str = "#ffffff", more: str = "") -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{colour}" '
        f'stroke-width="1.6" {more}/>'
    )


def _text(x: int, y: int, words: str, size: int = 13, colour: str = INK, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" {more}>{words}</text>'


def _arrow(path: str, colour: str, more: str = "", both: bool = False) -> str:
    start = f'marker-start="url(#{colour[1:]})"' if both else ""
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8" {start} '
        f'marker-end="url(#{colour[1:]})" {more}/>'
    )


def _head(colour: str) -> str:
    return (
        f'<marker id="{colour[1:]}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path d="M0,0 L10,5 L0,10 z" fill="{colour}"/></marker>'
    )


def _group(y: int, number: int) -> list[str]:
    """Draw a solver group: two ranks, each with its block of the field."""
    parts = [
        _box(40, y, 230, 76, SOLVER),
        _text(54, y + 21, f"solver group {number}", 13, SOLVER, 'font-weight="bold"'),
    ]
    for rank in range(2):
        x = 54 + 104 * rank
        parts += [_box(x, y + 33, 96, 32, SOLVER, "#e4eef8"), _text(x + 9, y + 54, f"rank {rank}: block", 12)]
    return parts


def _trainer(y: int, number: int) -> list[str]:
    """Draw a trainer: its buffer of slots, and the script that draws batches from it."""
    parts = [
        _box(560, y, 300, 104, TRAINER),
        _text(574, y + 21, f"trainer {number}", 13, TRAINER, 'font-weight="bold"'),
    ]
    for slot in range(8):
        fill = "#ffffff" if slot > 5 else SEEN
        parts.append(_box(574 + 17 * slot, y + 36, 14, 26, TRAINER, fill))
    parts += [
        _text(574, y + 84, "buffer of samples", 12, GREY),
        _box(772, y + 33, 76, 32, TRAINER, "#e8f4ec"),
        _text(782, y + 54, "train.py", 12),
        _arrow(f"M712,{y + 49} H770", TRAINER),
        _text(716, y + 41, "batch", 12, TRAINER),
    ]
    return parts


def picture() -> str:
    """Compose the picture."""
    dashed = 'stroke-dasharray="5 4"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="Helvetica, Arial, sans-serif">',
        "<title>One MPI job: a scheduler, solver groups and trainers</title>",
        "<defs>" + "".join(_head(colour) for colour in (SOLVER, TRAINER, SCHEDULER)) + "</defs>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _box(12, 12, WIDTH - 24, HEIGHT - 24, GREY, "#fbfcfd", dashed),
        _text(28, 34, "one MPI job, described by job.yaml", 13, GREY),
        _box(330, 30, 180, 58, SCHEDULER, "#fdf4e3"),
        _text(344, 53, "scheduler", 13, SCHEDULER, 'font-weight="bold"'),
        _text(344, 74, "queue of simulations", 12),
        *_group(130, 0),
        *_group(226, 1),
        *_group(322, 2),
        *_trainer(130, 0),
        *_trainer(294, 1),
        # the assignment of simulations, and the steps that trainers expect
        _arrow("M330,59 H155 V128", SCHEDULER, dashed, both=True),
        _text(164, 100, "next / parameters", 12, SCHEDULER),
        _arrow("M510,59 H710 V128", SCHEDULER, dashed, both=True),
        _text(548, 100, "steps to expect / held", 12, SCHEDULER),
        # blocks of samples, each to its trainer
        *[
            _arrow(f"M272,{y} C400,{y} 430,{end} 558,{end}", SOLVER)
            for y in (168, 264, 360)
            for end in (172 + y // 20, 336 + y // 20)
        ],
        _text(356, 150, "blocks of samples, over MPI", 12, SOLVER),
        _text(288, 404, "trainer = (simulation + step) mod trainers", 12, GREY),
        # the trainers' own traffic
        _arrow("M810,236 V292", TRAINER, "", both=True),
        _text(668, 269, "torch.distributed", 12, TRAINER),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".svg")
    target.write_text(picture(), encoding="utf-8")
