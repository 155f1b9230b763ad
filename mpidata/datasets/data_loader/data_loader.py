"""DataLoader: torch's DataLoader, with the job's loaders as workers."""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.utils.data
from torch.utils.data import Sampler, default_collate, default_convert

from mpidata.datasets.data_loader.arguments import refuse, say_without_effect
from mpidata.datasets.data_loader.dataset_placeholder import DatasetPlaceholder
from mpidata.datasets.data_loader.epoch import Epoch, Settings, derived_seed
from mpidata.datasets.data_loader.epoch_settings import EpochSettings
from mpidata.datasets.data_loader.index_pass import IndexPass, PassBatches
from mpidata.datasets.data_loader.remote_dataset import Order, Remote
from mpidata.datasets.data_loader.request import Asked
from mpidata.datasets.data_loader.samplers import UserSampler, is_stateful
from mpidata.datasets.data_loader.share import ShareBatches, ShareSampler
from mpidata.datasets.data_loader.standalone_loader import StandaloneLoader
from mpidata.datasets.epochs.accelerate_pass import AcceleratePass
from mpidata.datasets.epochs.position import Position
from mpidata.datasets.epochs.random_states import States, continue_in, of_process
from mpidata.datasets.epochs.share_assignment import Dealing, Living
from mpidata.datasets.epochs.share_assignment import share as deal
from mpidata.device.prefetch import choose_prefetcher
from mpidata.errors import StreamError
from mpidata.loading.definition import Definition, pack_definition
from mpidata.loading.figures import Tally
from mpidata.run.job_environment import in_job
from mpidata.trainer import loader_access as job
from mpidata.trainer.frameworks.callers import overfits, validates
from mpidata.trainer.frameworks.processes import check_processes

__all__ = ["DataLoader"]

_numbers = itertools.count()
_KINDS = {"samples": "a dataset of length", "global_batch": "a batch size times trainers of", "trainers": "trainers:"}


class DataLoader(torch.utils.data.DataLoader[Any]):
    """Batches of a map-style dataset, fetched and collated by the job's loaders.

    Create it in a program that `mpidata run` has started as a trainer, in a job with ``loaders:``. The arguments are
    those of torch's DataLoader, with the same meaning except as described here. Outside a job this is torch's
    DataLoader with ``num_workers=0``; with `share` the processes of torch.distributed get shares.

    Parameters
    ----------
    dataset : Dataset or str
        A map-style dataset. cloudpickle sends it to each loader once, when this object is created; the loaders do not
        see later changes, see `refresh`. Or ``"module:function"``, a function that creates the dataset on the loaders.
    batch_size : int or None
        Number of samples in a batch of one trainer. None: single samples, not collated.
    shuffle : bool, optional
        Use a different order in each epoch, determined by the seed of `generator` and the number of the epoch.
    sampler, batch_sampler : optional
        As in torch; they run in the trainer. Not with `share`.
    num_workers, multiprocessing_context, persistent_workers : optional
        No effect; they raise a warning.
    collate_fn, worker_init_fn : callable, optional
        Run on the loaders; `worker_init_fn` before a loader's first batch.
    pin_memory : bool
        Put batches into page-locked memory. No effect without CUDA.
    drop_last : bool
        Drop the samples that do not fill a batch; with `share`, those that do not fill a batch on all trainers.
    timeout : float
        Longest time to wait for a batch, in seconds; 0: no limit.
    generator : torch.Generator, optional
        Only provides the seed, ``initial_seed()``. Without it: the job's seed with `share`, otherwise torch's.
    prefetch_factor : int, optional
        Number of batches requested from each loader in advance. The default is 2; for batches smaller than 4 MB it is
        the number that fits into 8 MB, at most 16.
    in_order : bool
        As in torch.
    share : bool
        Divide each epoch among the trainers, like a DistributedSampler, but exactly: each index goes to one trainer
        once, and the last global batch is divided evenly. After ``accelerator.prepare`` the last batches have the same
        size, padded from the beginning of the epoch. Without `share`, each trainer gets everything that it requests.
    device : str, torch.device or int, optional
        Device of the batches' tensors, for example ``"cuda"``. They are copied while the loop works on earlier batches.
    device_prefetch : int
        With `device`: number of batches that are copied before the loop asks for them, 1 or 2.

    Raises
    ------
    StreamError
        The job has no loaders, the dataset cannot be sent, an argument is invalid, or with `share` there are fewer
        samples than trainers.
    ValueError, TypeError
        As in torch.

    Notes
    -----
    Each iteration is the next epoch, from 0, unless `set_epoch` selects another one. A batch arrives exactly once, also
    if the loader that made it dies. An exception of the dataset on a loader is raised here, with the loader's
    traceback.

    Before each batch a loader seeds random, numpy and torch from (seed, epoch, batch number, trainer). Random numbers
    in the dataset are therefore reproducible for the same batch size and number of trainers.

    Creating the first object in a process joins the job, which is collective; nothing else here is. Iteration sleeps
    while it waits for batches. A batch is one block of memory, which is freed when nothing refers to any part of it.
    """

    def __new__(cls, *_: Any, **__: Any) -> Any:
        """Create an `_OutsideLoader` outside a job."""
        return super().__new__(_OutsideLoader if cls is DataLoader and not in_job() else cls)

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        share: bool = False,
        device: str | torch.device | int | None = None,
        device_prefetch: int = 1,
    ) -> None:
        self._place = job.place()  # first, so that the job learns of refused arguments
        self._prefetcher = choose_prefetcher("DataLoader", device, device_prefetch, pin_memory=pin_memory)
        sampled = sampler is not None or batch_sampler is not None
        refuse(dataset, batch_size, prefetch_factor, share, sampled, generator)
        given = {"batch_size": batch_size, "shuffle": shuffle, "drop_last": drop_last, "share": share}
        given |= {"sampled": sampled, "in_order": in_order, "prefetch_factor": prefetch_factor}
        self._place.same_call("DataLoader", **given, device=device is not None, device_prefetch=device_prefetch)
        say_without_effect(num_workers, multiprocessing_context, persistent_workers)
        batched = batch_size is not None or batch_sampler is not None
        collate_fn = (default_collate if batched else default_convert) if collate_fn is None else collate_fn
        self._definition = Definition(dataset, collate_fn, worker_init_fn, batched)
        self.generator, self.share, self._prepared = generator, share, False
        self._seed: int | None = None
        self._living: Living | None = None
        self._begun: Callable[[], Epoch | None] = lambda: None  # the newest iteration
        several = share and self._place.trainers > 1
        self._asked = Asked(self._place, batch_size, bool(shuffle), drop_last) if several else None
        self._remote: Remote | None = self._send()
        self._told_epochs = EpochSettings(dataset)
        self._tally = Tally(self._place.report, self._place.trainer == 0)
        self._place.when_leaving(self._tally.flush)
        self._position = Position("DataLoader")
        self._process: States | None = None
        self._order = torch.Generator()
        dataset = DatasetPlaceholder(self._remote) if isinstance(dataset, str) else dataset
        rest: dict[str, Any] = {"collate_fn": collate_fn, "pin_memory": pin_memory, "timeout": timeout}
        if share:
            assert batch_size is not None
            here, n = self._place, len(dataset)
            shares = ShareBatches(
                n, Dealing(n, batch_size, here.trainer, here.trainers, drop_last), bool(shuffle),
                lambda: (self._seed_of_all(), self._position.next_epoch), self._index_pass, self._position.set_epoch,
            )  # fmt: skip
            self._living = deal(here.members, self._position, shares.dealing, when_anew=self._draw_anew)
            super().__init__(dataset, batch_sampler=shares, worker_init_fn=worker_init_fn, **rest)
            # torch sets other values if it gets batch_sampler
            self.__dict__.update(
                batch_size=batch_size, drop_last=drop_last, sampler=ShareSampler(shares, self._position.set_epoch)
            )
        else:
            super().__init__(
                dataset, batch_size, shuffle, sampler, batch_sampler, drop_last=drop_last,
                worker_init_fn=worker_init_fn, generator=self._order, **rest,
            )  # fmt: skip
        self._place.hold(f"mpidata.DataLoader {next(_numbers)}", self)
        self._position.is_of_job("DataLoader")
        self.generator, self.in_order, self.prefetch_factor = generator, in_order, prefetch_factor
        self._draws = UserSampler.of(None if sampler is None and batch_sampler is None else self)
        self._drawn_from = self._index_sampler
        if batch_sampler is None and batch_size is not None and not share:
            # After its __init__, torch refuses ordinary assignment.
            self.__dict__["batch_sampler"] = PassBatches(
                self.sampler, batch_size, drop_last, self._index_pass, self._position.set_epoch
            )

    def __iter__(self) -> Any:
        """Start the next epoch, or the one that was set, or continue from a loaded state."""
        check_processes(self._place.trainers)
        if overfits():
            self._position.repeat()
        place = self._position.begin()
        epoch, seed, trainer = self._position.epoch, self._seed_of_all(), self._place.trainer
        indices, remote, told = self._indices(seed, epoch), self._on_loaders(), self._told_epochs.now()
        timeout_s = self.timeout if self._place.asks else 0.0  # only the first rank of a replica checks the time
        pinned = self.pin_memory and torch.cuda.is_available()
        settings = Settings(self.prefetch_factor, self.in_order, timeout_s, pinned)

        def ask(batch: int, chosen: Any) -> Order:
            return remote.order(batch, chosen, derived_seed(seed, epoch, batch, trainer), told)

        self._tally.begin(epoch)
        shares, left = self.batch_sampler, lambda: 0
        if isinstance(shares, ShareBatches):
            left = functools.partial(shares.dealing.left, self._position)
        turn = self._place.turns.begin(self.share, self._living, validates(), left, self._position.text)
        rest = self._accelerate_pass(), self._living and self._living.end, self._prefetcher(self._living is not None)
        begun = Epoch(remote, indices, ask, settings, self.__len__, place, self._tally, turn, *rest)
        self._begun = weakref.ref(begun)
        return begun

    def _draw_anew(self) -> None:
        """Make the current iteration request its remaining batches anew."""
        if (begun := self._begun()) is not None:
            begun.begin_anew(self._indices(self._seed_of_all(), self._position.epoch))

    def _index_pass(self) -> IndexPass:
        """Start an epoch at its first batch for another reader of the samples, which counts the batches itself."""
        self._position.set_whole_epoch()
        place = self._position.begin()
        self._tally.begin(self._position.epoch)
        turn = self._place.turns.begin(self.share, self._living)
        indices = self._indices(self._seed_of_all(), self._position.epoch)
        return IndexPass(indices, self.__len__, place, self._tally, turn, self._accelerate_pass())

    def set_epoch(self, epoch: int) -> None:
        """Make this the epoch of the next iteration. A position within this epoch, from a loaded state, is kept.

        Raises StreamError if the job was resumed within another epoch.
        """
        self._position.set_epoch(epoch)

    @property
    def _is_accelerate_prepared(self) -> bool:
        """Keep accelerate from wrapping this: it would fetch the samples itself, with a DataLoader of torch."""
        if not self.share and self._place.trainers > 1:
            raise StreamError(
                "accelerator.prepare divides batches among all processes, which mpidata.DataLoader does itself: give "
                "share=True."
            )
        return True

    @_is_accelerate_prepared.setter
    def _is_accelerate_prepared(self, value: bool) -> None:
        """Set by accelerate's prepare; its metrics and gradient accumulation then need to know the last batch."""
        self._prepared = value
        if isinstance(self.batch_sampler, ShareBatches):
            self.batch_sampler.even_batches = value

    def _accelerate_pass(self) -> AcceleratePass | None:
        if not self._prepared:
            return None
        return AcceleratePass(self.batch_sampler.remainder() if isinstance(self.batch_sampler, ShareBatches) else 0)

    def refresh(self) -> None:
        """Send the current dataset to the loaders again; iterations that have started continue with the former one."""
        self._remote = None

    @property
    def resumed(self) -> tuple[int, int]:
        """Epoch and batch number from which a loaded state continues; (0, 0) if none was loaded."""
        return self._position.resumed

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the epochs, after the last batch that was returned; a few numbers.

        Notes
        -----
        Like a StatefulDataLoader of torchdata. With a custom sampler or batch sampler, which may draw from them, the
        state also has the states of the process's random generators (random, numpy and torch), about 20 KB. The next
        iteration of a loader that has loaded the state restores them. The state also has the sampler's own state_dict,
        or without one the states of the generators from before the sampler drew this epoch's indices.

        Raises
        ------
        StreamError
            A custom sampler has neither a state_dict nor a length.
        """
        if self._draws is not None:
            self._draws.check_resumable()
        state = {**self._position.state(), "seed": self._seed_of_all(), **self._kind()}
        if isinstance(self.batch_sampler, ShareBatches):
            state |= self.batch_sampler.dealing.dealt(self._position.epoch, self._living is not None)
        if self._draws is None:
            return state
        state["process"] = of_process()
        if (owner := self._stateful()) is not None:
            begun = state.pop("random", None)
            if not state["batches"] and not state["ahead"]:  # an epoch that was started is drawn once more
                state["process"] = begun or state["process"]
                state["sampler"] = copy.deepcopy(owner.state_dict()) if state["sampler"] is None else state["sampler"]
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a `state_dict()` with the next iteration.

        Raises
        ------
        StreamError
            The argument is not such a state, or the dataset, the batch size or the number of trainers differs. With
            `share` the number of trainers may differ if `batch_size` times trainers is the same.
        """
        if not isinstance(state_dict, Mapping) or not isinstance(state_dict.get("seed"), int):
            raise StreamError(
                "load_state_dict: this is not a state of an mpidata.DataLoader. Give what its state_dict() returned."
            )
        state, kind = dict(state_dict), self._kind()
        if self._living is not None or len(state.get("dealt", ())) > 1:
            kind.pop("global_batch", None)
        for key, what in _KINDS.items():
            if key in kind and state.get(key) != kind[key] and (key != "trainers" or state.get("batches")):
                raise StreamError(
                    f"load_state_dict: the state is of {what} {state.get(key)}, but this DataLoader has {kind[key]}. "
                    "Load the state with the settings and the dataset that it was made with."
                )
        if isinstance(self.batch_sampler, ShareBatches):
            self.batch_sampler.dealing.take(state)
        self._position.load(state, "an mpidata.DataLoader", self._length(state.get("epoch")))
        self._seed, self._process = state["seed"], state.get("process")

    def _kind(self) -> dict[str, int]:
        """Return what must be the same when a state is loaded."""
        kind = {"trainers": self._place.trainers}
        if isinstance(self.batch_sampler, ShareBatches):
            kind = {"global_batch": self.batch_sampler.dealing.global_batch}
        return kind | ({"samples": len(self.dataset)} if hasattr(self.dataset, "__len__") else {})

    def _stateful(self) -> Any:
        """Return the sampler or batch sampler that has its own state, or None."""
        return next((s for s in (self.batch_sampler, self.sampler) if is_stateful(s)), None)

    def _length(self, epoch: Any) -> int | None:
        if isinstance(self.batch_sampler, ShareBatches) and isinstance(epoch, int):
            return self.batch_sampler.dealing.batches(epoch)
        try:
            return len(self)
        except TypeError:  # the sampler has no length
            return None

    def _seed_of_all(self) -> int:
        if self._seed is None:
            own = self._place.seed if self.share else torch.initial_seed()
            self._seed = self.generator.initial_seed() if self.generator is not None else own
        return self._seed

    def _on_loaders(self) -> Remote:
        if self._remote is None:
            self._remote = self._send()
        return self._remote

    def _send(self) -> Remote:
        """Send the loaders the dataset, and the arguments that all trainers must agree on."""
        dataset, seed = self._definition.dataset, self.generator and self.generator.initial_seed()
        agreement = self._asked.agreement(dataset, seed) if self._asked is not None else b""
        return Remote(self._place, pack_definition(self._definition), agreement)

    def _indices(self, seed: int, epoch: int) -> Iterator[tuple[int, Any]]:
        """Return the numbered batches of indices of the current iteration."""
        first = self._position.batches
        if isinstance(self.batch_sampler, ShareBatches):
            return self._position.numbered(self.batch_sampler.batches(seed, epoch, first), None)
        self._order.manual_seed(derived_seed(seed, epoch))
        owner, place = self._stateful(), self._position
        process, self._process = self._process, None
        if owner is not None:
            if place.sampler is not None:
                owner.load_state_dict(place.sampler)
                first = 0
            before = place.sampler if place.sampler is not None else copy.deepcopy(owner.state_dict())
            continue_in(process)
            place.draw_with(before, of_process(), lambda: (copy.deepcopy(owner.state_dict()), None))
            drawn = iter(self._drawn_from)
        elif (draws := self._draws) is not None:
            drawn, states = draws.batches(place.random, process)
            place.draw_with(None, states, lambda: (None, draws.after()))
        else:
            drawn = iter(self._drawn_from)
        indices = itertools.islice(drawn, first, None)
        return self._position.numbered(indices, owner.state_dict if owner is not None else None)


class _OutsideLoader(StandaloneLoader, DataLoader):
    """What ``mpidata.DataLoader(...)`` makes outside a job."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(super(StandaloneLoader, self).__init__).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        sampled = given["sampler"] is not None or given["batch_sampler"] is not None
        batch_size, share, generator = given["batch_size"], given["share"], given["generator"]
        refuse(given["dataset"], batch_size, given["prefetch_factor"], share, sampled, generator)
        StandaloneLoader.__init__(self, given)
