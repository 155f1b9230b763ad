"""MPIStreamDataset: the stream of samples as a torch dataset."""

from __future__ import annotations

import functools
import operator
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, SupportsFloat

import torch
from torch.utils.data import IterableDataset

from mpidata.checkpoint.stream_methods import StreamCheckpoints
from mpidata.errors import StreamError
from mpidata.native.library import check
from mpidata.packing import check_constants
from mpidata.run.plan import Field
from mpidata.trainer import join as job
from mpidata.trainer.batch_count import expected_of_stream
from mpidata.trainer.batches.choice import check_ragged, make_memory
from mpidata.trainer.batches.device_prefetch import choose_device_of_stream, prefetcher_of
from mpidata.trainer.cancel.stream_methods import StreamCancel
from mpidata.trainer.constants import DrawnConstants
from mpidata.trainer.elastic.reducer import make_alike
from mpidata.trainer.field_statistics.stream_methods import StreamScales
from mpidata.trainer.frameworks.callers import fetched_ahead, leave_whole, overfits, overfitting
from mpidata.trainer.frameworks.preparation import teach_accelerate, undivided_stream
from mpidata.trainer.frameworks.steps import asks_for_an_empty_pass, compare_steps
from mpidata.trainer.passes import Refused
from mpidata.trainer.replica.calls import same_call
from mpidata.trainer.replica.passes import constants_of, pass_of
from mpidata.trainer.replica.replica import Replica
from mpidata.trainer.script import picture_of, report_of
from mpidata.trainer.shares.grouping import Grouping, check_even, check_positive
from mpidata.trainer.torch_loaders import Unpicklable, check_skipping, refuse_loader, refuse_pinning, refuse_workers
from mpidata.trainer.validation.request import AskedValidation
from mpidata.trainer.validation.stream_methods import StreamValidation

__all__ = ["MPIStreamDataset"]


class MPIStreamDataset(
    StreamScales,
    StreamValidation,
    StreamCancel,
    StreamCheckpoints,
    Unpicklable,
    IterableDataset[dict[str, torch.Tensor]],
):
    """The samples that the job's solvers stream to this trainer.

    Create it in a program that `mpidata run` has started as a trainer, or that `mpidata try` runs. It finds the job by
    itself.

    Parameters
    ----------
    batch_size : int, optional
        Number of samples in a batch. With it, iteration yields complete batches; use them directly, or through
        ``DataLoader(stream, batch_size=None)``. Without it, iteration yields single samples, for
        ``DataLoader(stream, batch_size=B)``.
    global_batch_size : int, optional
        Instead of `batch_size`: number of samples in the batches of all trainers together. It stays the same when
        trainers die. If it is not divisible by the number of trainers, some get one more sample, in turn;
        `mpidata.DistributedDataParallel` weights the gradients accordingly.
    batches_per_epoch : int, optional
        End each pass after this many batches; the next pass continues from there. Needs batches.
    pin_memory : bool
        Put batches into page-locked memory, for fast copies to a GPU. No effect without CUDA.
    steps_per_simulation : int, optional
        Number of steps of each simulation. Makes `expected_batches` known from the start; it has no other effect.
    ragged : {'packed', 'padded', 'nested'}
        Layout of fields with a length in a batch. 'padded' and 'nested' need batches; 'nested' needs torch 2.4, and
        does not support windows.
    pad : float, optional
        With ``ragged='padded'``: the value after the samples in fields of a float or complex dtype; the default is 0.
    constants : str
        Where fields with ``per: simulation`` are. ``"apart"``: batches do not contain them, `constants` returns views
        without a copy, and single samples contain views. ``"batch"``: they are copied into batches like other fields.
    device : str, torch.device or int, optional
        Device of the batches, for example ``"cuda"``. They are copied while the loop works on earlier ones. Needs
        batches.
    device_prefetch : int
        With `device`: number of batches that are copied before the loop asks for them, 1 or 2.

    Raises
    ------
    StreamError
        The process is not in a job, an argument is invalid, or the batch size differs from that of this process's first
        dataset.
    LibraryError
        The job cannot be joined, or the buffer or the number of trainers does not fit the batch size.

    Notes
    -----
    A batch is a dict of tensors in CPU memory: one for each field, ``[B, *shape]`` in the declared dtype;
    ``parameters``, ``[B, n]`` float64, in the job file's order; ``time``, ``[B]`` float64; ``step``, ``[B]`` int64,
    from 0; ``simulation``, ``[B]`` int64, from 0; with ``parameters.weights`` also ``weight``, ``[B]`` float32. A
    single sample is the same without the leading dimension. With ``samples.window`` W of 2 or more, fields are
    ``[B, W, *shape]``, and ``time`` and ``step`` are ``[B, W]``. With `device` all tensors are on that device. Tensors
    may be kept and changed: their memory is reused only when nothing refers to it.

    A field whose shape contains a name, ``[nodes, 2]``, is packed: the samples are joined along that dimension,
    ``[sum, 2]``. The batch has ``nodes``, ``[B]`` int64, and ``nodes_offsets``, ``[B + 1]`` int64, the start of each
    sample. Values of `index` fields count along the joined samples. Padded, the field is ``[B, longest, 2]``
    (``[B, W, longest, 2]``), with `pad` after the values of each sample; integer and bool fields have 0 or False there,
    `index` fields -1. Nested, the field is a `torch.nested` tensor of jagged layout, ``[B, nodes, 2]``. Both have
    ``nodes`` without offsets, and `index` values count within each sample. An optional field has ``<name>_given``,
    ``[B]`` bool, and zeros if it was not put. A single sample has its own ``[nodes, 2]``, and ``nodes``.

    All trainers get the same number of batches. A pass over a stream that is over ends at once. A loop may be left
    early (`break`): the next pass continues with the samples that follow. If the script ends before the stream, or
    calls `close`, the whole job stops normally. Ctrl-C raises KeyboardInterrupt in the loop. An uncaught exception ends
    the job as failed.

    Creating the first dataset is collective over all ranks of the job. It initializes MPI, and sleeps until all have
    joined. Iteration sleeps while it waits for samples. One thread at a time may iterate. Several datasets of one
    process share one stream: each sample goes to one of them.
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
        refuse_workers()
        self._trainer = job.join()  # before the checks, so that the job learns of refused arguments
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
        teach_accelerate(MPIStreamDataset, undivided_stream)
        self.batch_size, self.global_batch_size, self._grouping = batch_size, global_batch_size, grouping
        self.batches_per_epoch = batches_per_epoch
        self.ragged = ragged
        self._steps = steps_per_simulation
        check_even(grouping, self._trainer.replica)
        given = {"batches_per_epoch": batches_per_epoch, "ragged": ragged, "pad": pad, "constants": constants}
        sizes = {"batch_size": batch_size, "global_batch_size": global_batch_size}
        same_call(self._trainer, "MPIStreamDataset", **sizes, **given)
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
        """Start a pass; raises StreamError if a DataLoader around it, or the step of a resumed framework, is wrong."""
        if overfits():
            return Refused(overfitting())
        plan = self._trainer.plan
        refuse_loader(self, self._grouping, plan.trainers, [length.name for length in plan.lengths])
        refuse_pinning(self._device is not None)
        self._trainer.begin_pass(warn=not asks_for_an_empty_pass() and not self._given_back)
        try:
            check_skipping(compare_steps(self._trainer))
        except StreamError as error:  # Lightning replaces an error of `iter` by its own
            self._trainer.end_pass()
            return Refused(error)
        ahead = fetched_ahead() if self._trainer.members is None else 0
        rest = self._memory, self.batches_per_epoch, self._drawn, self._given_back, ahead, self._prefetcher
        return pass_of(self._trainer, self._pinned, self._gathers)(self._trainer, *rest)

    @property
    def replica(self) -> Replica:
        """The position of this process among the copies of the model, as `mpidata.replica` returns it."""
        return self._trainer.replica

    def set_epoch(self, epoch: int) -> None:
        """Do nothing, because a stream has no epochs; for frameworks that call this on their datasets.

        Notes
        -----
        Within accelerate's loaders, each trainer keeps its own samples, undivided.
        """
        leave_whole(dealt=True)

    def constants(self, simulation: int) -> dict[str, torch.Tensor]:
        """Return views of the fields with ``per: simulation`` of a simulation, without a copy.

        Parameters
        ----------
        simulation : int
            The id of the simulation. This trainer must hold a sample of it, for example in a batch that is in use.

        Returns
        -------
        dict of str to torch.Tensor
            The fields by name, in their own shapes; an optional one has ``<name>_given``, and zeros if it was not put.
            The tensors stay valid while they are referenced. Do not change them: all samples of the simulation share
            them.

        Raises
        ------
        StreamError
            The job has no such fields, or this trainer holds no sample of the simulation.

        Notes
        -----
        Any thread; not collective; does not block. If several tries of a simulation put different values, these are
        those of the newest try; with ``constants="batch"`` each sample has those of its own try.
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
        """Set tensors that depend on the statistics of a batch to those of trainer 0; for `Normalizer`.

        About the time of a trainer's death, the statistics of the others may differ slightly. Collective in a job with
        ``trainers.elastic``, otherwise no effect.
        """
        if (members := self._trainer.members) is not None:
            make_alike(tensors, members, "mpidata.Normalizer")

    def _gather(self, names: Collection[str]) -> None:
        """Include these fields with ``per: simulation`` in batches, from the next pass on; for `graphs`."""
        wanted = {field.name for field in self._trainer.plan.constants if field.name in names}
        if wanted - self._gathered:
            self._gathered |= wanted
            self._memory = self._make_memory(gathers=self._gathered)

    def report(self, **values: SupportsFloat) -> None:
        """Report values, for example a loss, for the progress display and the summary.

        Parameters
        ----------
        **values : float
            Floats, or values that convert to one: a tensor of one element, a NumPy scalar. NaN and infinity are
            allowed.

        Raises
        ------
        StreamError
            A name is not an identifier or is longer than 63 characters, or a value is not a number.

        Notes
        -----
        Any thread; not collective; does not block.
        """
        report_of(self._trainer, values)

    def picture(self, name: str, picture: Any) -> None:
        """Write a picture for the report and the loggers, for example a prediction next to the truth.

        Parameters
        ----------
        name : str
            An identifier of at most 63 characters.
        picture : figure, tensor or array
            A figure of matplotlib. Or real numbers of shape (height, width), drawn with colors from the minimum to the
            maximum, the first row at the top. Or (height, width, 3) or (height, width, 4): red, green, blue and
            opacity, uint8 from 0 to 255 or floats from 0 to 1. At most 4,096 points along a side.

        Raises
        ------
        StreamError
            The name is not an identifier, the picture is none of these, or matplotlib is missing.

        Notes
        -----
        Any thread; not collective. Draws and writes ``pictures/NAME-BATCH.png`` in the run folder before it returns;
        BATCH is the number of batches that this trainer has drawn. If several trainers write a picture of the same name
        and batch, the last one stays. If the file cannot be written, one line is printed to stderr. The mates of a
        replica write no pictures.
        """
        picture_of(self._trainer, name, picture)

    def losses(self, batch: Mapping[str, Any], values: Any) -> None:
        """Pass the losses of a batch's samples, to keep them by simulation: in losses.csv, and for samplers that learn.

        Parameters
        ----------
        batch : mapping
            A batch of the stream; only ``simulation``, [B] int64, is used.
        values : tensor or array, shape [B]
            Loss of each sample, before the mean is taken. Any real dtype, any device. Values that are not finite, or
            beyond 1e150, are only counted.

        Raises
        ------
        StreamError
            The batch has no ids, or ids that the job does not have, or there is not one value for each sample.

        Notes
        -----
        Any thread; not collective. Waits only for the device of the values. The trainer sends the sums of each
        simulation to the scheduler once per second, and at the end.
        """
        check(self._trainer.library, self._trainer.losses.take(batch, values))

    @property
    def over(self) -> bool:
        """Whether no batch is left: true when the stream has ended, was stopped, or is closed.

        Notes
        -----
        Not collective, but the same on all trainers that have drawn the same number of batches. Sleeps until this is
        known, as long as the next batch would take. For loops over epochs: ``while not stream.over:``.
        """
        return not (self._given_back or (self._prefetcher and self._prefetcher.waiting)) and self._trainer.is_over()

    @property
    def stopped(self) -> bool:
        """Whether the loop was ended before the end of the stream: by a signal, or because another trainer left.

        Notes
        -----
        True from the end of the loop on. Any thread; not collective; does not block.
        """
        return self._trainer.is_stopped()

    @property
    def expected_batches(self) -> int | None:
        """Number of batches (or single samples) of the whole stream, including those before a resume; None if unknown.

        Notes
        -----
        Known for fifo and firo, and with `buffer.repeats`: from the start if `steps_per_simulation` was given,
        otherwise once a simulation is complete (perhaps on one trainer before another), as long as all simulations have
        the same number of steps. Simulations that fail or are cancelled make the actual number smaller. Unknown if a
        resume has changed the number of trainers, or a trainer has died. Does not block.
        """
        return expected_of_stream(self._trainer, self._steps)

    def close(self) -> None:
        """Draw no more samples; stops the whole job if the stream is not over.

        Notes
        -----
        Does not block: the script may continue for any time, and the job ends when all scripts have ended. Validation
        samples stay usable.
        """
        self._given_back.clear()
        if self._prefetcher:
            self._prefetcher.clear()
        self._trainer.leave_stream()
