"""RecordedDataset: the samples of a record as a torch dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset

from mpidata.dtypes import numpy_dtype, valid
from mpidata.errors import DAMAGED, StreamError
from mpidata.packing import check_constants, join_fields, number_tensors, refuse_stacking
from mpidata.record.constants import RecordedConstants
from mpidata.record.layout import Header, column_of, files_in, open_file, read_ends, read_given, read_index
from mpidata.run.plan import Field
from mpidata.tensors import WEIGHT, number_tensor, part_weights, tensor_of

__all__ = ["RecordedDataset"]


class RecordedDataset(Dataset[dict[str, torch.Tensor]]):
    """The samples that a job has recorded on all its trainers.

    Parameters
    ----------
    path : str or Path
        Folder of the record: `record.path` of the job file.
    validation : bool
        Use the samples of the validation simulations, instead of those for training.
    window, stride : int
        Number of steps of a sample, and their distance, like `samples.window` and `samples.stride` of a job. A window
        starts at each step that is followed by enough recorded steps of its simulation.
    constants : str
        Where fields with ``per: simulation`` are. ``"apart"``: samples have them in their own shape, `constants`
        returns them, and samples of a simulation may share their memory. ``"batch"``: they are in windows like other
        fields, and never share memory.

    Raises
    ------
    StreamError
        There is no such folder, or no record in it; or `window` or `stride` is less than 1.
    MpidataError
        A file is damaged, or the files do not belong together.

    Notes
    -----
    Each sample is a dict of tensors, like the stream's single samples: one for each field, ``[*shape]`` in the declared
    dtype; ``parameters``, ``[n]`` float64; ``time`` (float64), ``step`` and ``simulation`` (int64) without dimensions.
    With a `window` W of 2 or more, fields are ``[W, *shape]``, and ``time`` and ``step`` are ``[W]``. Samples are
    ordered by (simulation, step), not by arrival.

    A field whose shape contains a name, ``[nodes, 2]``, has the length of the sample; ``nodes`` is also a tensor, int64
    without dimensions. In windows the steps are joined along that dimension: ``nodes`` is ``[W]``, and
    ``nodes_offsets``, ``[W + 1]`` int64, has the start of each step. `PackedCollate` joins such samples into batches.
    An optional field has ``<name>_given``, bool, with the shape of the lengths, and zeros if it was not put.

    Works with the workers of a DataLoader: each process opens the files when it first reads from them. Threads of a
    process must not read at the same time. The record may still be written; samples that are added later are not seen.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        validation: bool = False,
        window: int = 1,
        stride: int = 1,
        constants: Literal["apart", "batch"] = "apart",
    ) -> None:
        folder = Path(path)
        check_constants(constants)
        if window < 1 or stride < 1:
            raise StreamError(f"RecordedDataset: window is {window} and stride {stride}. Use 1 or more.")
        self._paths = files_in(folder)
        if not self._paths:
            what = "has no files of a record" if os.path.isdir(folder) else "is not a folder"
            raise StreamError(f"{folder} {what}. Give the folder that `record.path` of the job file names.")
        headers: list[Header] = []
        found: list[npt.NDArray[np.void]] = []
        self._ends: list[dict[str, npt.NDArray[np.int64]]] = []
        self._given: list[dict[str, npt.NDArray[np.bool_]]] = []
        self._constants: list[RecordedConstants] = []
        for number, file_path in enumerate(self._paths):
            with open_file(file_path) as file:
                headers.append(Header.read(file, file_path))
                _check_alike(headers, self._paths)
                columns = dict(read_index(file, file_path))
                found.append(_index(columns, number, validation))
                self._ends.append(read_ends(file, file_path, headers[-1], columns["simulation"] >= 0))
                self._given.append(read_given(file, file_path, headers[-1], len(columns["simulation"])))
                if headers[-1].constants:
                    self._constants.append(RecordedConstants(file, file_path, headers[-1], columns["simulation"]))
        samples = np.concatenate(found)
        samples = samples[np.lexsort((samples["file"], samples["step"], samples["simulation"]))]
        again = np.zeros(len(samples), bool)
        for name in ("simulation", "step"):
            column = samples[name]
            again[1:] = (again[1:] if name == "step" else True) & (column[1:] == column[:-1])
        self._steps = samples[~again]
        self._windows = _windows(self._steps, window, stride)
        self._header = headers[0]
        self._gathers = constants == "batch"
        self._step_fields = [field for field in self._header.fields if not field.per_simulation]
        once = [] if self._gathers else self._header.constants
        self._apart = {name for field in once for name in (field.name, f"{field.name}_given")}
        self._files: list[h5py.File] = []
        self._process = 0

    @property
    def fields(self) -> dict[str, Field]:
        """The fields by name, in the job file's order; each has `name`, `dtype` and `shape`."""
        return {field.name: field for field in self._header.fields}

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the columns of ``parameters``."""
        return self._header.parameters[:-1] if self._header.weights else self._header.parameters

    @property
    def has_weights(self) -> bool:
        """Whether samples have a ``weight``."""
        return self._header.weights

    @property
    def parameter_texts(self) -> dict[str, tuple[str, ...]]:
        """The texts of each parameter that is a text; ``parameters`` has the position of the text in this list."""
        return dict(self._header.texts)

    @property
    def simulations(self) -> npt.NDArray[np.int64]:
        """Id of the simulation of each sample: ndarray of int64, shape (len(self),)."""
        column: npt.NDArray[np.int64] = self._steps["simulation"][self._windows[:, 0]]
        return column

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self._windows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        """Read one sample; raises IndexError, or StreamError if the disk fails."""
        try:
            window = self._windows[index]
        except IndexError:
            raise IndexError(f"There is no sample {index}: the record holds {len(self)} of them.") from None
        refuse_stacking(self, self._header.lengths, "dataset.fields")
        steps = [self._read_step(index, int(step)) for step in window]
        names, n_lengths = self._header.numbers, len(self._header.lengths)
        of_steps = [self._numbers(int(step)) for step in window]
        numbers = np.array(of_steps[0] if len(steps) == 1 else list(zip(*of_steps, strict=True)), np.int64)
        if len(steps) == 1:
            return steps[0] | number_tensors(names, numbers, n_lengths)
        fields = self._header.fields if self._gathers else self._step_fields
        joined = join_fields(fields, steps, dict(zip(names[:n_lengths], numbers, strict=False)))
        joined |= number_tensors(names, numbers, n_lengths)
        joined |= {name: torch.stack([step[name] for step in steps]) for name in ("time", "step")}
        return joined | {
            name: of for name, of in steps[0].items() if name in {"parameters", "simulation", WEIGHT} | self._apart
        }

    def _numbers(self, place: int) -> list[int]:
        step = self._steps[place]
        row, number = int(step["row"]), int(step["file"])
        lengths = [int(ends[row + 1] - ends[row]) for ends in self._ends[number].values()]
        return [*lengths, *(int(given[row]) for given in self._given[number].values())]

    def _read_step(self, index: int, place: int) -> dict[str, torch.Tensor]:
        step = self._steps[place]
        number, row = int(step["file"]), int(step["row"])
        try:
            file, ends = self._open()[number], self._ends[number]
            tensors = {f.name: _read_field(file["fields"][f.name], f, row, ends) for f in self._step_fields}
            tensors |= self._read_constants(number, row) if self._constants else {}
            n = len(self._header.parameters)
            none = torch.empty(0, dtype=torch.float64, device="cpu")
            tensors["parameters"] = _read(file["parameters"], row, 1, (n,), "float64")[0] if n else none
        except DAMAGED as error:
            raise StreamError(
                f"Sample {index} cannot be read from row {row} of {self._paths[number]}: {error}. Restore "
                "the file from a copy."
            ) from None
        tensors["time"] = number_tensor(float(step["time"]))
        tensors["step"] = number_tensor(int(step["step"]))
        tensors["simulation"] = number_tensor(int(step["simulation"]))
        return part_weights(tensors) if self._header.weights else tensors

    def _read_constants(self, number: int, row: int) -> dict[str, torch.Tensor]:
        """Read the constants of a row of a file; an optional one that was not put has the lengths of the sample."""
        constants = self._constants[number]
        held = dict(constants.read(self._open()[number], int(constants.of[row]), _read_field))
        lengths = {name: int(ends[row + 1] - ends[row]) for name, ends in self._ends[number].items()}
        for field in self._header.constants:
            if self._gathers:
                held[field.name] = held[field.name].clone()
            if field.optional:
                given = bool(self._given[number][f"{field.name}_given"][row])
                held[f"{field.name}_given"] = number_tensor(given)
                if not given:
                    dtype = getattr(torch, field.dtype)
                    held[field.name] = torch.zeros(field.extents(lengths), dtype=dtype, device="cpu")
        return held

    def by_try(self, index: int) -> int:
        """Return the number of the try of its simulation that made a sample; 1 if the record does not contain it.

        Only a record of fields with ``per: simulation`` contains it.
        """
        if not self._constants:
            return 1
        step = self._steps[self._windows[index][0]]
        constants = self._constants[int(step["file"])]
        return int(constants.tries[constants.of[int(step["row"])]])

    def constants(self, simulation: int) -> dict[str, torch.Tensor]:
        """Read the fields with ``per: simulation`` of a simulation.

        Parameters
        ----------
        simulation : int
            The id of the simulation, of which the dataset must have a sample.

        Returns
        -------
        dict of str to torch.Tensor
            The fields by name, in their own shapes; an optional one has ``<name>_given``, and zeros if it was not put.
            Do not change them: samples may share their memory.

        Raises
        ------
        StreamError
            The job has no such fields, the dataset holds no sample of the simulation, or the disk fails.

        Notes
        -----
        If a simulation was tried again, the constants are those of the newest try of which there is a sample.
        """
        if not self._constants:
            raise StreamError("The record has no field with 'per: simulation'.")
        simulation = int(simulation)
        first, end = np.searchsorted(self._steps["simulation"], [simulation, simulation + 1]).tolist()
        if first == end:
            raise StreamError(f"The dataset holds no sample of simulation {simulation}, whose constants are requested.")
        files, rows = (self._steps[name][first:end].tolist() for name in ("file", "row"))
        of = [self._constants[number] for number in files]
        newest = int(np.argmax([held.tries[held.of[row]] for held, row in zip(of, rows, strict=True)]))
        return self._read_constants(files[newest], rows[newest])

    def __getstate__(self) -> dict[str, Any]:
        """Omit the open files: each process opens its own."""
        return {**self.__dict__, "_files": [], "_process": 0}

    def _open(self) -> list[h5py.File]:
        if self._process != os.getpid():  # a forked process must not use the files of its parent
            self._files = [open_file(path) for path in self._paths]
            self._process = os.getpid()
        return self._files


_INDEX = np.dtype([("simulation", "i8"), ("step", "i8"), ("time", "f8"), ("file", "i4"), ("row", "i8")])


def _index(columns: Mapping[str, npt.NDArray[Any]], number: int, validation: bool) -> npt.NDArray[np.void]:
    kept = (columns["simulation"] >= 0) & (columns["validation"].astype(bool) == validation)
    samples = np.empty(np.count_nonzero(kept), _INDEX)
    for name in ("simulation", "step", "time"):
        samples[name] = columns[name][kept]
    samples["file"], samples["row"] = number, np.flatnonzero(kept)
    return samples


def _windows(steps: npt.NDArray[np.void], window: int, stride: int) -> npt.NDArray[np.int64]:
    """Return the windows of sorted steps: the positions of the steps of each, shape (windows, window)."""
    first = np.arange(len(steps))
    if window == 1 or not len(steps):
        return first.reshape(-1, 1) if window == 1 else np.empty((0, window), np.int64)
    # Far enough apart that no step of one simulation is mistaken for one of the next.
    keys = steps["simulation"] * (int(steps["step"].max()) + (window - 1) * stride + 1) + steps["step"]
    wanted = keys[:, None] + stride * np.arange(window)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    whole: npt.NDArray[np.int64] = places[np.all(keys[places] == wanted, axis=1)]
    return whole


def _check_alike(headers: list[Header], paths: list[Path]) -> None:
    first, last = headers[0], headers[-1]
    where = f"{paths[0]} and {paths[len(headers) - 1]}"
    if first.run != last.run:
        raise StreamError(f"{where} are records of two runs, {first.run} and {last.run}. Put them into two folders.")
    if difference := last.difference(first):
        raise StreamError(
            f"{where} do not belong together: the second one has {difference}. Put them into two folders."
        )


def _read_field(
    dataset: h5py.Dataset, field: Field, row: int, ends: Mapping[str, npt.NDArray[np.int64]]
) -> torch.Tensor:
    shape, each = column_of(field)
    if not field.length:
        return _read(dataset, row, 1, shape, field.dtype)[0]
    first, end = ends[field.length][row : row + 2].tolist()
    values = _read(dataset, first * each, (end - first) * each, shape, field.dtype)
    if field.index and len(values):
        start, after = ends[field.index][row : row + 2].tolist()
        if int(values.min()) < 0 or int(values.max()) >= after - start:
            raise ValueError(f"{field.name} has an index beyond the {after - start} {field.index} of the sample")
    return values.reshape(field.extents({field.length: end - first}))


def _read(dataset: h5py.Dataset, first: int, count: int, shape: tuple[int, ...], dtype: str) -> torch.Tensor:
    array = np.empty((count, *shape), numpy_dtype(dtype))
    if count:
        dataset.read_direct(array, np.s_[first : first + count])
    return tensor_of(valid(array), dtype)
