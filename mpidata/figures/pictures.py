"""Pictures of a training script: how they are drawn, and their files in the run folder."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpidata.errors import StreamError, as_line
from mpidata.run.folder import RunFolder
from mpidata.run.own_files import FOLDER_MODE, opener

__all__ = ["Picture", "draw", "read_pictures", "read_png", "write_picture"]

_LARGEST, _SMALL = 4096, 256  # points along a side
_COLOUR_MAP = "viridis"
_TAKEN = (
    "Give a figure of matplotlib, or real numbers of shape [height, width], or uint8 or floats of shape "
    f"[height, width, 3], red, green and blue, with at most {_LARGEST} points along a side."
)


@dataclass(frozen=True)
class Picture:
    """A picture in a run folder.

    Attributes
    ----------
    name : str
        As the script gave it.
    batch : int
        Number of batches that its trainer had drawn.
    path : Path
        A PNG file.
    time : float
        When it was written, in Unix seconds.
    """

    name: str
    batch: int
    path: Path
    time: float


def draw(name: str, picture: Any) -> bytes:
    """Draw a picture as a PNG file.

    Parameters
    ----------
    name : str
        Name of the picture, for the error message.
    picture : array, tensor or figure
        What `MPIStreamDataset.picture` takes.

    Raises
    ------
    StreamError
        The picture has another type or is too large, or matplotlib is missing.
    """
    file = io.BytesIO()
    if hasattr(picture, "savefig"):
        try:
            picture.savefig(file, format="png")
        except Exception as error:
            raise StreamError(f"picture: the figure {name!r} cannot be drawn: {as_line(error)}. Correct it.") from error
        return file.getvalue()
    values, options = _points(name, picture)
    try:
        from matplotlib.image import imsave
    except ImportError:
        raise StreamError(
            "picture: drawing an array needs matplotlib, which is not installed. Install it with: "
            "pip install 'mpidata[report]'"
        ) from None
    times = max(1, _SMALL // max(values.shape[:2]))  # so that a point of a coarse field can be seen
    imsave(file, values.repeat(times, 0).repeat(times, 1), format="png", **options)
    return file.getvalue()


def _points(name: str, picture: Any) -> tuple[NDArray[Any], dict[str, Any]]:
    values = _array(name, picture)
    shape, colours = values.shape, values.ndim == 3 and values.shape[2] in (3, 4)
    known = values.dtype == np.uint8 or values.dtype.kind == "f" if colours else values.dtype.kind in "buif"
    if not (known and (values.ndim == 2 or colours) and values.size and max(shape[:2]) <= _LARGEST):
        raise StreamError(
            f"picture: {name!r} is a {type(picture).__name__} of shape {shape} and dtype {values.dtype}. {_TAKEN}"
        )
    if colours and values.dtype == np.uint8:
        return np.ma.filled(values, 0), {}
    values = np.ma.filled(values.astype(np.float64), np.nan)  # what is masked is missing
    if colours:
        return np.nan_to_num(values).clip(0.0, 1.0), {}
    finite = values[np.isfinite(values)]
    if not finite.size:
        return values, {"cmap": _COLOUR_MAP, "vmin": 0.0, "vmax": 1.0}
    largest = max(abs(finite.min()), abs(finite.max())) or 1.0  # as parts of it: no difference overflows
    limits = {"vmin": finite.min() / largest, "vmax": finite.max() / largest}
    return values / largest, {"cmap": _COLOUR_MAP, **limits}


def _array(name: str, picture: Any) -> NDArray[Any]:
    try:
        if hasattr(picture, "detach"):
            picture = picture.detach().cpu().resolve_conj().resolve_neg()
            picture = picture.float() if picture.is_floating_point() else picture
        return picture if isinstance(picture, np.ma.MaskedArray) else np.asarray(picture)
    except (TypeError, ValueError, RuntimeError) as error:
        raise StreamError(
            f"picture: {name!r} is a {type(picture).__name__} that NumPy cannot convert to an array: {as_line(error)}. "
            f"{_TAKEN}"
        ) from None


def write_picture(run: RunFolder, name: str, batch: int, png: bytes) -> None:
    """Write a picture into the run folder, whole or not at all; raises OSError."""
    run.pictures.mkdir(FOLDER_MODE, exist_ok=True)
    path = run.pictures / f"{name}-{batch}.png"
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        with open(new, "xb", opener=opener) as file:
            file.write(png)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def read_png(run: RunFolder, picture: Picture) -> bytes:
    """Read a picture; raises OSError, also if it is no longer a file of the run's owner."""
    with open(os.open(picture.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not _is_of_run(os.fstat(file.fileno()), run):
            raise PermissionError(f"{picture.path} does not belong to the run")
        return file.read()


def read_pictures(run: RunFolder) -> list[Picture]:
    """List the pictures in a run folder, in the order in which they were written; without links and files of others."""
    found = []
    for path in run.pictures.glob("[!.]*-*.png"):
        name, _, batch = path.stem.rpartition("-")
        if name and batch.isdecimal():
            with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
                if _is_of_run(status := path.lstat(), run):
                    found.append(Picture(name, int(batch), path, status.st_mtime))
    return sorted(found, key=lambda picture: (picture.time, picture.batch, picture.name))


def _is_of_run(status: os.stat_result, run: RunFolder) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_uid == run.path.stat().st_uid
