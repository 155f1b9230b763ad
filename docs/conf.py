"""Sphinx configuration of the site, which is built from the top folder (`make docs`), so that file links work on it."""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import fortran  # noqa: E402  beside this file
import header  # noqa: E402

project = "mpidata"
copyright = "the mpidata authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/*.md", "docs/python.rst"),
    *("benchmarks/results/*.md", "experiments/README.md", "experiments/results/*.md", "build/pages/*.md"),
]
html_theme = "furo"
html_title = "mpidata"
html_copy_source = False
myst_heading_anchors = 4
default_role = "code"
smartquotes = False  # options start with two dashes
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# Types in docstrings are words ("array of float32, shape (nx, ny)"), not names to look up.
nitpick_ignore_regex = [("py:.*", r"(?!mpidata\.).*")]

CONTENTS = {
    "Use": "docs/tutorial docs/examples docs/running docs/report docs/training docs/samplers docs/couple docs/solver "
    "docs/cpp docs/adios2 docs/device-batches docs/buffers docs/failures docs/elastic docs/parameter-server "
    "docs/model-parallel docs/checkpoints docs/recording docs/frameworks docs/loop docs/files",
    "On a cluster": "docs/installing docs/cluster docs/sites docs/fabric",
    "Reference": "docs/glossary docs/job-file build/pages/c-header build/pages/fortran docs/python "
    "docs/compatibility CHANGELOG SECURITY",
    "How fast, and how": "docs/benchmarks docs/internals CONTRIBUTING",
    "Results": " ".join(
        str(path.relative_to(ROOT).with_suffix(""))
        for path in (
            *sorted(ROOT.glob("benchmarks/results/*.md")),
            ROOT / "experiments/README.md",
            *sorted(ROOT.glob("experiments/results/*.md")),
        )
    ),
}
FRONT = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=README.html">'
    '<a href="README.html">mpidata</a>\n'
)


def make_pages(_app: Sphinx) -> None:
    """Make the pages of the C header and of the Fortran module; unchanged pages keep their mtime."""
    pages = ROOT / "build" / "pages"
    pages.mkdir(parents=True, exist_ok=True)
    for name, page in (
        ("c-header.md", header.page((ROOT / "c_api" / "include" / "mpidata.h").read_text())),
        ("fortran.md", fortran.page((ROOT / "fortran_api" / "mpidata.f90").read_text())),
    ):
        if not (pages / name).exists() or (pages / name).read_text() != page:
            (pages / name).write_text(page)


def adapt(app: Sphinx, name: str, source: list[str]) -> None:
    """Add the list of all pages to the front page; remove links to folders, which the site cannot show."""
    folder = (ROOT / name).parent
    source[0] = re.sub(
        r"\[([^]]+)\]\(([^)#:]+)\)", lambda link: link[1] if (folder / link[2]).is_dir() else link[0], source[0]
    )
    if name == app.config.root_doc:
        for caption, pages in CONTENTS.items():
            entries = "\n".join(f"/{page}" for page in pages.split())
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n{entries}\n```\n"


def add_front(app: Sphinx, error: Exception | None) -> None:
    """Redirect index.html to the front page."""
    if error is None:
        (Path(app.outdir) / "index.html").write_text(FRONT)


def setup(app: Sphinx) -> None:
    """Connect the functions above to Sphinx's events."""
    app.connect("builder-inited", make_pages)
    app.connect("source-read", adapt)
    app.connect("build-finished", add_front)
