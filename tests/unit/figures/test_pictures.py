"""Pictures of a training script: what can be drawn, and what happens to the files."""

import io
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.image import imread
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mpidata.errors import StreamError
from mpidata.figures.loggers import Loggers
from mpidata.figures.pictures import draw, read_pictures, read_png, write_picture
from mpidata.run.folder import RunFolder

TRACKER = """
said = []
class Tracker:
    def open(self, run, job): pass
    def write(self, time, batch, values): pass
    def picture(self, time, batch, name, path): said.append((batch, name, path.name, path.read_bytes()))
    def close(self, status): said.append(status)
class Plain:
    def open(self, run, job): pass
    def write(self, time, batch, values): pass
    def close(self, status): pass
"""


def points(png: bytes) -> Any:
    return imread(io.BytesIO(png), format="png")


def test_field_colours_span_its_minimum_to_its_maximum() -> None:
    field = np.arange(6.0).reshape(2, 3)
    drawn = points(draw("u", field))
    assert drawn.shape == (170, 255, 4)
    assert (drawn[:85, :85] == drawn[0, 0]).all() and (drawn[85:, 170:] == drawn[-1, -1]).all()
    assert drawn[0, 0][:3] == pytest.approx([0.267, 0.004, 0.329], abs=0.005)  # both ends of viridis
    assert drawn[-1, -1][:3] == pytest.approx([0.993, 0.906, 0.144], abs=0.005)


@pytest.mark.parametrize(
    "field",
    [
        torch.ones(4, 4, requires_grad=True),
        torch.zeros(2, 2, dtype=torch.bfloat16),
        np.array([[True, False]]),
        np.full((3, 3), np.nan),
        [[1, 2], [3, np.inf]],
        np.array([[0.0, 5e-324]]),
        np.zeros((2, 2, 3), np.longdouble),
        torch.rand(3, 3, dtype=torch.complex64).conj().imag,  # its sign is only marked
        np.zeros((1, 4096)),
    ],
)
def test_fields_of_many_types_are_drawn(field: Any) -> None:
    assert points(draw("u", field)).ndim == 3


def test_rgb_arrays_keep_their_colours() -> None:
    wanted = np.random.default_rng(0).integers(0, 256, (300, 200, 3), dtype=np.uint8)
    assert (points(draw("image", wanted))[..., :3] * 255).round() == pytest.approx(wanted)
    floats = np.full((300, 300, 3), [0.0, 1.5, np.nan])
    assert points(draw("image", torch.from_numpy(floats)))[0, 0, :3] == pytest.approx([0, 1, 0])


def test_a_figure_is_drawn() -> None:
    figure = Figure(figsize=(2, 1), dpi=100)
    figure.subplots().plot([1, 2])
    assert points(draw("curve", figure)).shape == (100, 200, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(3),
        np.zeros((2, 2, 2)),
        np.zeros((0, 3)),
        np.full((4, 4, 3), 200),
        np.zeros((2, 2), complex),
        "u",
        None,
        np.zeros((5000, 2)),
        torch.rand(3, 3, dtype=torch.complex64).conj(),
    ],
)
def test_values_that_cannot_be_drawn_are_refused(wrong: Any) -> None:
    with pytest.raises(StreamError, match=r"picture: 'u' is a \w+ of shape .*Give a figure of matplotlib"):
        draw("u", wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        torch.eye(3).to_sparse(),
        torch.empty(3, 3, device="meta"),
        torch.nested.nested_tensor([torch.rand(2, 2)]),
        [[1, 2], [3]],
    ],
)
def test_values_that_are_not_arrays_are_refused(wrong: Any) -> None:
    with pytest.raises(StreamError, match=r"'u' is a \w+ that NumPy cannot convert to an array: .*\. Give a figure"):
        draw("u", wrong)


def test_figure_that_fails_to_draw_raises_an_error() -> None:
    figure = Figure()
    figure.text(0, 0, r"$\frac{1$")
    with pytest.raises(StreamError, match=r"the figure 'curve' cannot be drawn: .*Parse"):
        draw("curve", figure)


def test_largest_range_is_drawn_like_any_other() -> None:
    field = np.array([[-1.0, 1.0], [0.0, 0.25]])
    assert draw("u", 1.7e308 * field) == draw("u", field)


def test_masked_points_are_drawn_as_missing() -> None:
    field = np.array([[1e20, 1.0], [2.0, 3.0]])
    masked = np.ma.masked_greater(field, 1e10)
    assert draw("u", masked) == draw("u", np.where(field > 1e10, np.nan, field))
    colours = np.ma.masked_array(np.ones((2, 2, 3)), True)
    assert draw("u", colours) == draw("u", np.zeros((2, 2, 3)))


def test_missing_matplotlib_gives_an_install_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.image", None)
    with pytest.raises(StreamError, match=r"needs matplotlib.*pip install 'mpidata\[report\]'"):
        draw("u", np.zeros((2, 2)))


def test_complete_pictures_are_read_in_order_of_time(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert read_pictures(run) == []
    for second, (name, batch) in enumerate([("b", 2), ("a", 10), ("a", 9)]):
        write_picture(run, name, batch, b"PNG")
        os.utime(tmp_path / "pictures" / f"{name}-{batch}.png", (second, second))
    (tmp_path / "pictures" / ".a-11.png.12.new").touch()
    (tmp_path / "pictures" / "mine.png").touch()
    assert [(one.name, one.batch, one.time) for one in read_pictures(run)] == [("b", 2, 0), ("a", 10, 1), ("a", 9, 2)]


def test_only_the_owner_can_add_files(tmp_path: Path) -> None:
    run, before = RunFolder(tmp_path), os.umask(0)
    try:
        write_picture(run, "u", 1, b"PNG")
        run.give_up(3)
    finally:
        os.umask(before)
    for folder in (run.pictures, run.given_up(3).parent):
        assert folder.stat().st_mode & 0o022 == 0


def test_links_and_files_of_others_are_not_pictures_of_the_run(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    write_picture(run, "u", 1, b"PNG")
    (tmp_path / "secret").write_text("secret")
    (run.pictures / "u-2.png").symlink_to(tmp_path / "secret")
    os.mkfifo(run.pictures / "u-3.png")
    [picture] = read_pictures(run)
    assert picture.batch == 1 and read_png(run, picture) == b"PNG"
    for batch in (2, 3):
        with pytest.raises(OSError):
            read_png(run, replace(picture, path=run.pictures / f"u-{batch}.png"))
    if os.geteuid() == 0:
        os.chown(picture.path, 65534, 65534)
        assert read_pictures(run) == []
        with pytest.raises(PermissionError):
            read_png(run, picture)


def test_loggers_receive_only_new_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pictured.py").write_text(TRACKER)
    monkeypatch.delitem(sys.modules, "pictured", raising=False)
    run, said, png = RunFolder(tmp_path), list[str](), draw("u", np.zeros((2, 2)))
    write_picture(run, "u", 1, png)  # before a resume
    names = ["pictured:Plain", "pictured:Tracker", "tensorboard"]
    loggers = Loggers(names, tmp_path, {"folder": str(tmp_path)}, said.append)
    loggers.start()
    write_picture(run, "u", 5, png)
    loggers.close("complete", 20.0)
    assert said == []
    assert sys.modules["pictured"].said == [(5, "u", "u-5.png", png), "complete"]
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    [image] = events.Images("u")
    assert (image.step, image.width, image.height, image.encoded_image_string) == (5, 256, 256, png)
