"""The page of a report: HTML that needs no other file and no network."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["folded", "heading", "page", "paragraph", "section", "table"]

_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
:root {{ color-scheme: light; }}
body {{ font: 15px/1.45 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 70rem; margin: 1.5rem auto;
  padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; margin: 0 0 .2rem; }}
h2 {{ font-size: 1.15rem; border-bottom: 1px solid #bbb; margin: 2rem 0 .6rem; padding-bottom: .15rem; }}
h3 {{ font-size: 1rem; margin: 1rem 0 .3rem; }}
img {{ width: 100%; height: auto; display: block; margin: .4rem 0; }}
img.picture {{ width: auto; max-width: 100%; }}
figure {{ margin: .6rem 0; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }}
th, td {{ text-align: left; vertical-align: top; padding: .15rem .9rem .15rem 0; overflow-wrap: anywhere; }}
th {{ font-weight: 600; white-space: nowrap; overflow-wrap: normal; }}
thead th {{ border-bottom: 1px solid #bbb; }}
pre {{ background: #f5f5f5; padding: .6rem; overflow-x: auto; font-size: .85rem; }}
.advice {{ border-left: 4px solid #0072B2; background: #f2f7fb; padding: .5rem .9rem; }}
.first {{ font-weight: 600; }}
.advice p {{ margin: .3rem 0; }}
.error {{ border-left: 4px solid #D55E00; background: #fdf4ef; padding: .5rem .9rem; white-space: pre-wrap; }}
.muted {{ color: #555; }}
.beside {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1rem; }}
.beside > * {{ min-width: 0; }}
@media print {{
  body {{ max-width: none; margin: 0; font-size: 10pt; }}
  img, tr {{ break-inside: avoid; }}
  h2 {{ break-after: avoid; }}
  pre {{ white-space: pre-wrap; }}
}}
</style>
</head>
<body>
"""


def page(title: str, parts: Iterable[str]) -> str:
    """Return a page of parts, which are HTML; the title is text."""
    return _HEAD.format(title=html.escape(title)) + "\n".join(parts) + "\n</body>\n</html>\n"


def heading(title: str) -> str:
    """Return the heading of the page; the title is text."""
    return f"<header><h1>{html.escape(title)}</h1></header>"


def section(title: str, *parts: str) -> str:
    """Return parts, which are HTML, with a title; "" if all of them are empty."""
    body = "\n".join(part for part in parts if part)
    return f"<section>\n<h2>{html.escape(title)}</h2>\n{body}\n</section>" if body else ""


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph of text."""
    return f'<p class="{kind}">{html.escape(text)}</p>' if kind else f"<p>{html.escape(text)}</p>"


def table(rows: Iterable[Sequence[object]], head: Sequence[object] = ()) -> str:
    """Return a table of texts, the first of each row its name; "" if there are no rows."""
    body = "\n".join(_row(row) for row in rows)
    top = f"<thead><tr>{''.join(f'<th>{_text(cell)}</th>' for cell in head)}</tr></thead>" if head else ""
    return f'<div class="scroll"><table>{top}<tbody>\n{body}\n</tbody></table></div>' if body else ""


def folded(title: str, text: str) -> str:
    """Return a text that can be folded; "" if it is empty."""
    body = f"<pre>{html.escape(text)}</pre>"
    return f"<details open><summary>{html.escape(title)}</summary>{body}</details>" if text else ""


def _row(row: Sequence[object]) -> str:
    name, *cells = row
    return f'<tr><th scope="row">{_text(name)}</th>{"".join(f"<td>{_text(cell)}</td>" for cell in cells)}</tr>'


def _text(cell: object) -> str:
    return html.escape(str(cell))
