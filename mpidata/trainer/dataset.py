"""MPIStreamDataset: the stream of samples as a torch dataset."""

from __future__ import annotations

import functools
import operator
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, SupportsFloat

import torch
from torch.utils.data import IterableDataset

from mpidata.checkpoint.of_stream import StreamCheckpoints
from mpidata.errors import StreamError
from mpidata.native.library import check
from mpidata.packing import check_constants
from mpidata.run.plan import Field
from mpidata.trainer import join as job
from mpidata.trainer.batches.choice import check_ragged, make_memory
from mpidata.trainer.batches.on_device import choose_device_of_stream, prefetcher_of
from mpidata.trainer.cancel.of_stream import StreamCancel
from mpidata.trainer.constants import DrawnConstants
from mpidata.trainer.elastic.reducer import make_alike
from mpidata.trainer.expected import expected_of_stream
from mpidata.trainer.field_statistics.of_stream import StreamScales
from mpidata.trainer.frameworks.callers import fetched_ahead, leave_whole, overfits, overfitting
from mpidata.trainer.frameworks.preparation import teach_accelerate, undivided_stream
from mpidata.trainer.frameworks.steps import asks_for_an_empty_pass, compare_steps
from mpidata.trainer.passes import Refused
from mpidata.trainer.replica.passes import constants_of, pass_of
from mpidata.trainer.replica.replica import Replica
from mpidata.trainer.script import picture_of, report_of
from mpidata.trainer.shares.grouping import Grouping, check_even, check_positive
from mpidata.trainer.torch_loaders import NotCopied, check_skipping, refuse_loader, refuse_pinning, refuse_workers
from mpidata.trainer.validation.of_stream import StreamValidation
from mpidata.trainer.validation.request import AskedValidation

__all__ = ["MPIStreamDataset"]


class MPIStreamDataset(
    StreamScales,
    StreamValidation,
    StreamCancel,
    StreamCheckpoints,
    NotCopied,
    IterableDataset[dict[str, torch.Tensor]],
):
    """The samples that the job's solvers stream to this trainer.

    To be created in a program that `mpidata run` has started as a trainer, or that `mpidata try` runs; it finds the job
    by itself.

    Parameters
    ----------
    batch_size : int, optional
        Samples in a batch. With it, iteration gives ready batches, to be used as they are (or through
        ``DataLoader(stream, batch_size=None)``). Without it, iteration gives single samples, for
        ``DataLoader(stream, batch_size=B)``.
    global_batch_size : int, optional
        In place of `batch_size`: samples that all trainers together draw with a batch each, also when some have died.
        Where it cannot be shared evenly, some have one sample more, in turn; `mpidata.DistributedDataParallel` gives
        gradients their weights.
    batches_per_epoch : int, optional
        End each pass after this many batches; the next pass goes on where the last one stopped. Needs batches.
    pin_memory : bool
        Put batches into page-locked memory, for fast copies to a GPU; without CUDA this changes nothing.
    steps_per_simulation : int, optional
        Makes `expected_batches` known from the start; nothing else depends on it.
    ragged : {'packed', 'padded', 'nested'}
        How samples share a batch along a length that each has for itself. The others than 'packed' need batches;
        'nested' needs torch 2.4, and no windows.
    pad : float, optional
        With ``ragged='padded'``: the value behind the samples in real fields; 0 if it is left out.
    constants : str
        Where fields with ``per: simulation`` are. ``"apart"``: a batch has none of them, `constants` gives views
        without a copy, and single samples have views. ``"batch"``: they are copied into batches like the other fields.
    device : str, torch.device or int, optional
        Where batches are to be, ``"cuda"`` for example: copied while the loop works on those before. Needs batches.
    device_prefetch : int
        With `device`: how many batches are copied before the loop asks for them, 1 or 2.

    Raises
    ------
    StreamError
        Not in a job; another batch size than this process's first dataset has; a wrong argument.
    LibraryError
        The job cannot be joined, or the buffer or the number of trainers does not suit the batch size.

    Notes
    -----
    A batch is a dict of tensors in CPU memory: one per field, ``[B, *shape]`` in the declared dtype; ``parameters``,
    ``[B, n]`` float64, in the job file's order; ``time``, ``[B]`` float64; ``step``, ``[B]`` int64, from 0;
    ``simulation``, ``[B]`` int64, from 0; with ``parameters.weights`` ``weight``, ``[B]`` float32. A single sample
    has the same without the leading dimension. With ``samples.window`` W of 2 or more, fields are ``[B, W, *shape]``,
    ``time`` and ``step`` ``[B, W]``. A field whose
    shape has a name, ``[nodes, 2]``, is packed: the samples are joined along it, ``[sum, 2]``, and the batch has
    ``nodes``, ``[B]`` int64, and ``nodes_offsets``, ``[B + 1]`` int64, where each begins; values of `index` fields
    count along the joined samples. Padded, it is ``[B, longest, 2]`` (``[B, W, longest, 2]``), with `pad`, 0, False, or
    -1 for `index` fields behind the values of each sample. Nested, it is a `torch.nested` tensor of jagged layout,
    ``[B, nodes, 2]``. Both have ``nodes`` without offsets, and `index` values as each sample has them. An optional
    field has ``<name>_given``, ``[B]`` bool, and zeros where it was not put. A single sample has its own
    ``[nodes, 2]``, and ``nodes``. Tensors may be kept and changed: their memory is used again only when nothing refers
    to it any more. With `device` all of them are there.

    All trainers get the same number of batches. A pass over a stream that is over ends at once. A loop may be left
    early (`break`): the next pass continues with the samples that follow. If the script ends before the stream, or
    calls `close`, the whole job stops in order. Ctrl-C raises KeyboardInterrupt in the loop. An uncaught exception ends
    the job as failed.

    Creating the first dataset is collective over all ranks of the job, initialises MPI, and sleeps until they have
    come. Iteration sleeps while it waits for samples. One thread at a time may iterate. Several datasets of one process
    share one stream: each sample goes to one of them.
    """

    def __init__(
        self,
        batch_size: int | None = None,
        *,
        global_batch_size: int | None = None,
        batches_per_epoch: int | None = None,
        pin_memory: bool = False,
        steps_per_simulation: int | None = None,
        ragged: str = "packed",
        pad: float | None = None,
        constants: Literal["apart", "batch"] = "apart",
        device: str | torch.device | int | None = None,
        device_prefetch: int = 1,
    ) -> None:
        super().__init__()
        check_positive("batch_size", batch_size)
        check_positive("global_batch_size", global_batch_size)
        check_positive("batches_per_epoch", batches_per_epoch)
        grouping = Grouping(batch_size, global_batch_size)
        if batches_per_epoch is not None and grouping.most is None:
            raise StreamError(
                f"batches_per_epoch={batches_per_epoch} needs batch_size: a stream of single samples does not know how "
                "many make a batch. Give batch_size here, and batch_size=None to a DataLoader around it."
            )
        check_positive("steps_per_simulation", steps_per_simulation)
        check_ragged(grouping, ragged, pad)
        check_constants(constants)
        self._device = choose_device_of_stream(grouping, device, device_prefetch, pin_memory=pin_memory)
        refuse_workers()
        teach_accelerate(MPIStreamDataset, undivided_stream)
        self.batch_size, self.global_batch_size, self._grouping = batch_size, global_batch_size, grouping
        self.batches_per_epoch = batches_per_epoch
        self.ragged = ragged
        self._steps = steps_per_simulation
        self._trainer = job.join()
        check_even(grouping, self._trainer.replica)
        self._trainer.start(grouping)
        plan = self._trainer.plan
        asked = {"device": str(device), "device_prefetch": device_prefetch, "ragged": ragged, "pad": pad}
        self._prefetcher = prefetcher_of(self._trainer, self._device, asked | {"constants": constants})
        device_pins = self._device is not None and self._device.draws_page_locked
        self._pinned = pinned = device_pins or (pin_memory and torch.cuda.is_available())
        self._gathers = constants == "batch" and bool(plan.constants)
        self._make_memory = functools.partial(make_memory, plan, grouping, ragged, pad, pinned=pinned)
        self._gathered = {field.name for field in plan.constants if self._gathers}
        self._memory = self._make_memory(gathers=self._gathered)
        self._drawn = DrawnConstants(self._trainer, grouping.most, views=not self._gathers) if plan.constants else None
        self._given_back: deque[dict[str, torch.Tensor]] = deque()
        self._validation = AskedValidation(self._trainer, gathers=self._gathers)

    @property
    def fields(self) -> dict[str, Field]:
        """The job's fields by name, in the job file's order; each has `name`, `dtype` and `shape`."""
        return {field.name: field for field in self._trainer.plan.fields}

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the columns of ``parameters``."""
        return self._trainer.plan.told

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        """Begin a pass; raises StreamError if a DataLoader around it, or where a framework resumed, does not suit."""
        if overfits():
            return Refused(overfitting())
        plan = self._trainer.plan
        refuse_loader(self, self._grouping, plan.trainers, [length.name for length in plan.lengths])
        refuse_pinning(self._device is not None)
        self._trainer.begin_pass(warn=not asks_for_an_empty_pass() and not self._given_back)
        try:
            check_skipping(compare_steps(self._trainer))
        except StreamError as error:  # Lightning puts an error of its own in the place of one of `iter`
            self._trainer.end_pass()
            return Refused(error)
        ahead = fetched_ahead() if self._trainer.members is None else 0
        rest = self._memory, self.batches_per_epoch, self._drawn, self._given_back, ahead, self._prefetcher
        return pass_of(self._trainer, self._pinned, self._gathers)(self._trainer, *rest)

    @property
    def replica(self) -> Replica:
        """The place of this process among the copies of the model, as `mpidata.replica` gives it."""
        return self._trainer.replica

    def set_epoch(self, epoch: int) -> None:
        """Do nothing, as a stream has no epochs; for frameworks that tell their datasets.

        Notes
        -----
        Within accelerate's loaders, each trainer goes on with its own samples, undivided.
        """
        leave_whole(dealt=True)

    def constants(self, simulation: int) -> dict[str, torch.Tensor]:
        """View the fields with ``per: simulation`` of a simulation, without a copy.

        Parameters
        ----------
        simulation : int
            Its id, of a sample that this trainer holds: of a batch that is still in use, for example.

        Returns
        -------
        dict of str to torch.Tensor
            By field, in its own shape; an optional one has ``<name>_given``, and zeros if it was not put. The values
            stay as long as a tensor refers to them. Do not change them: all samples of the simulation share them.

        Raises
        ------
        StreamError
            The job has no such fields, or this trainer holds no sample of the simulation.

        Notes
        -----
        Any thread; not collective; does not block. If a simulation was tried again, and the tries put different values,
        these are those of the newest try; ``constants="batch"`` gives each sample those of its own try.
        """
        if not self._trainer.plan.constants:
            raise StreamError("The job has no field with 'per: simulation'. Add the key to a field in the job file.")
        try:
            number = operator.index(simulation)
        except TypeError:
            raise StreamError(f"constants({simulation!r:.100}): give the id of a simulation, a whole number.") from None
        held = constants_of(self._trainer, number) if number in range(1 << 63) else None
        if held is None:
            raise StreamError(
                f"This trainer holds no sample of simulation {number}. Ask for the constants of a batch while "
                "the batch is in use."
            )
        return held

    def make_alike(self, tensors: Sequence[torch.Tensor]) -> None:
        """Have tensors that follow from the statistics of a batch as trainer 0 has them; for `Normalizer`.

        The others may know a little more or less about the time when a trainer dies. Collective in a job with
        ``trainers.elastic``, else nothing.
        """
        if (members := self._trainer.members) is not None:
            make_alike(tensors, members, "mpidata.Normalizer")

    def _gather(self, names: Collection[str]) -> None:
        """Have batches of the next pass on have these fields with ``per: simulation``, too; for `graphs`."""
        wanted = {field.name for field in self._trainer.plan.constants if field.name in names}
        if wanted - self._gathered:
            self._gathered |= wanted
            self._memory = self._make_memory(gathers=self._gathered)

    def report(self, **values: SupportsFloat) -> None:
        """Report values, a loss say, for the progress display and the summary.

        Parameters
        ----------
        **values : float
            Or what converts to one: a tensor of one element, a NumPy scalar. NaN and infinity are allowed.

        Raises
        ------
        StreamError
            A name is no identifier or longer than 63 characters, or a value is no number.

        Notes
        -----
        Any thread; not collective; does not block.
        """
        report_of(self._trainer, values)

    def picture(self, name: str, picture: Any) -> None:
        """Give a picture for the report and the loggers, for example a prediction beside the truth.

        Parameters
        ----------
        name : str
            An identifier of at most 63 characters.
        picture : figure, tensor or array
            A figure of matplotlib; real numbers of shape (height, width), drawn with colours from their least to their
            greatest value, the first row at the top; or of shape (height, width, 3) or (height, width, 4), red, green,
            blue and opacity, uint8 from 0 to 255 or floats from 0 to 1. At most 4,096 points along a side.

        Raises
        ------
        StreamError
            The name is no identifier, the picture is none of these, or matplotlib is missing.

        Notes
        -----
        Any thread; not collective. Draws and writes ``pictures/NAME-BATCH.png`` in the run folder, with the number of
        batches that this trainer has drawn, before it returns; if several trainers give a picture of one name and
        batch, the last one stays. If the file cannot be written, a line on standard error says so. The further ranks of
        a replica write none.
        """
        picture_of(self._trainer, name, picture)

    def losses(self, batch: Mapping[str, Any], values: Any) -> None:
        """Tell the losses of a batch's samples, to be kept by simulation: in losses.csv, and for samplers that learn.

        Parameters
        ----------
        batch : mapping
            As the stream gave it; only ``simulation``, [B] int64, is looked at.
        values : tensor or array, shape [B]
            Loss of each sample, before their mean is taken. Any real dtype, any device. A value that is not finite, or
            beyond 1e150, is counted as such, and goes into nothing else.

        Raises
        ------
        StreamError
            The batch has no ids, or other ones than the job's, or there is not one value for each sample.

        Notes
        -----
        Any thread; not collective. Waits for the device that the values are on, for nothing else. The scheduler is told
        once a second, and at the end, of the sums of each simulation.
        """
        check(self._trainer.library, self._trainer.losses.take(batch, values))

    @property
    def over(self) -> bool:
        """Whether no batch is left: true when the stream has ended, was stopped, or is closed.

        Notes
        -----
        Not collective, but the same on all trainers that have drawn as many batches. Sleeps until it is known: as long
        as the next batch would take. For loops over epochs: ``while not stream.over:``.
        """
        return not (self._given_back or (self._prefetcher and self._prefetcher.waiting)) and self._trainer.is_over()

    @property
    def stopped(self) -> bool:
        """Whether the loop was ended before the stream was over: by a signal to the job, or as another trainer left.

        Notes
        -----
        True from the end of the loop on. Any thread; not collective; does not block.
        """
        return self._trainer.is_stopped()

    @property
    def expected_batches(self) -> int | None:
        """Number of batches (or single samples) of the whole stream, those before a resume included; None: not known.

        Notes
        -----
        Known for fifo and firo, and with `buffer.repeats`, from the start where `steps_per_simulation` was given, else
        as soon as a simulation is complete (to one trainer perhaps before another), while all have the same number of
        steps. Fewer come where simulations fail or are cancelled. Not known where a resume has changed the number of
        trainers, or one has died. Does not block.
        """
        return expected_of_stream(self._trainer, self._steps)

    def close(self) -> None:
        """Draw no more samples; stops the whole job if the stream is not over.

        Notes
        -----
        Does not block: the script may continue for any time, and the job ends when all scripts have ended. Validation
        samples stay.
        """
        self._given_back.clear()
        if self._prefetcher:
            self._prefetcher.clear()
        self._trainer.leave_stream()
