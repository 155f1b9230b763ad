"""The last picture of each name that the training script passed."""

from __future__ import annotations

import base64
import html

from mpidata.figures.pictures import read_pictures, read_png
from mpidata.run.folder import RunFolder

__all__ = ["embed_pictures"]

_MOST = 12


def embed_pictures(run: RunFolder) -> str:
    """Embed the last picture of each name, only the newest ones if there are many names; "" without any."""
    last = {picture.name: picture for picture in read_pictures(run)}
    shown = sorted(last.values(), key=lambda picture: picture.time)[-_MOST:]
    figures = []
    for picture in sorted(shown, key=lambda picture: picture.name):
        try:
            data = base64.b64encode(read_png(run, picture)).decode()
        except OSError:  # removed meanwhile
            continue
        caption = html.escape(f"{picture.name}, batch {picture.batch}")
        figures.append(
            f'<figure><img class="picture" alt="{caption}" src="data:image/png;base64,{data}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    return "\n".join(figures)
