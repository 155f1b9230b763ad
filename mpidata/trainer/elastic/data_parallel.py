"""mpidata.DistributedDataParallel: training continues when a trainer dies."""

from __future__ import annotations

from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as TorchDistributedDataParallel

from mpidata.errors import StreamError
from mpidata.run.job_environment import in_job
from mpidata.trainer import join as job
from mpidata.trainer.elastic.reducer import Reducer, bytes_of, make_alike
from mpidata.trainer.process_group import init_process_group
from mpidata.trainer.shares.share import Share
from mpidata.trainer.shares.weights import Weights, check_weight

__all__ = ["DistributedDataParallel"]

_IGNORED = {"find_unused_parameters", "static_graph", "gradient_as_bucket_view", "bucket_cap_mb", "broadcast_buffers"}


class DistributedDataParallel(TorchDistributedDataParallel):
    """torch's DistributedDataParallel, with training that continues when a trainer dies.

    In a job with ``trainers.elastic`` the trainers agree at the end of each backward pass whether all of them have the
    mean of the gradients. If a trainer died before, the others compute the mean again from their own gradients. So all
    living trainers make each step, once, with the same gradients. Without ``trainers.elastic`` this is torch's class,
    with gradients that are weighted if the trainers' shares are uneven or `weight` is set.

    Parameters
    ----------
    module : torch.nn.Module
        The same on all trainers. With ``trainers.elastic`` its parameters must be dense and in CPU memory. All trainers
        get the values of trainer 0.
    **options
        Those of torch's class. With ``trainers.elastic`` they have no effect: unused parameters are always detected,
        and after each step all trainers have the buffers of trainer 0.

    Attributes
    ----------
    weight : float or None
        Weight of this trainer's gradients in the mean; None: the number of samples that it has drawn.

    Raises
    ------
    StreamError
        The parameters differ between trainers, some are not in CPU memory, or an option is unknown.

    Notes
    -----
    The constructor and the backward pass are collective over the living trainers; they sleep while they wait. One
    instance for each script; for one thread. If `init_process_group` is needed and was not called, the constructor
    calls it.
    """

    def __init__(self, module: torch.nn.Module, **options: Any) -> None:
        trainer = job.join() if in_job() else None
        self._share = trainer.share if trainer is not None else Share()
        self._share.weighed = True
        self._weight: float | None = None
        self._weighs = False
        if trainer is not None and trainer.apart is not None:
            raise StreamError(
                "mpidata.DistributedDataParallel: this script already uses mpidata.LocalSGD or ParameterServer, with "
                "which the trainers run apart. Use only one of them."
            )
        if trainer is not None and "process_group" not in options:
            trainer.replica.refuse("mpidata.DistributedDataParallel averages over all trainers")
        members = trainer.members if trainer is not None else None
        self._sums: Reducer | None = None
        if members is None:
            if not dist.is_initialized():
                init_process_group()
            super().__init__(module, **options)
            return
        torch.nn.Module.__init__(self)
        if others := sorted(options.keys() - _IGNORED):
            raise StreamError(
                f"mpidata.DistributedDataParallel does not support {', '.join(others)} with 'trainers.elastic'. Leave "
                "it out."
            )
        self.module = module
        self.require_backward_grad_sync = True
        self.broadcast_buffers = True
        self.device, self.device_ids, self.output_device, self.dim = torch.device("cpu"), None, None, 0
        self._members = members
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        everything = [*module.parameters(), *module.buffers()]
        _check(trained, everything)
        make_alike(everything, members, "mpidata.DistributedDataParallel")
        members.giving.model = lambda: bytes_of(everything)
        self._sums = Reducer(trained, list(module.buffers()), members, self._own_weight)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        if self._sums is None:
            if torch.is_grad_enabled() and self._share.is_uneven(dist.get_world_size()):
                self._weigh()
            return super().forward(*inputs, **kwargs)  # type: ignore[no-untyped-call]
        if torch.is_grad_enabled():
            self._members.tell()
            self._sums.check()
            self._sums.on = self.require_backward_grad_sync
        return self.module(*inputs, **kwargs)

    @property
    def weight(self) -> float | None:
        """Weight of this trainer's gradients in the next means; None: the number of samples that it has drawn.

        If the loss is a mean over something other than the samples, set the weight to their number, on all trainers
        before each backward pass. With 0 the gradients add nothing.
        """
        return self._weight

    @weight.setter
    def weight(self, weight: Any) -> None:
        self._weight = check_weight(weight)
        if self._sums is None:
            self._weigh()

    def _own_weight(self) -> float:
        drawn = self._share.take()
        return drawn if self._weight is None else self._weight

    def _weigh(self) -> None:
        """Make torch's class compute weighted means from now on."""
        if self._weighs:
            return
        self._weighs = True
        weights = Weights(self.process_group, self._own_weight)
        try:
            super().register_comm_hook(None, lambda _, bucket: weights.sum(bucket))
        except RuntimeError as error:
            raise StreamError(
                f"mpidata.DistributedDataParallel: a model with a comm hook cannot weight gradients: {error}. Remove "
                "the hook, or use a global_batch_size that divides evenly among the trainers, and no weight."
            ) from None

    def train(self, mode: bool = True) -> DistributedDataParallel:
        """Put the module into training mode."""
        if self.__dict__.get("_sums") is None:
            super().train(mode)  # type: ignore[no-untyped-call]
        else:
            torch.nn.Module.train(self, mode)
        return self

    def register_comm_hook(self, *_: Any, **__: Any) -> None:
        """Raise StreamError in a job with 'trainers.elastic', where gradients cannot be summed in another way."""
        if self._sums is None:
            super().register_comm_hook(*_, **__)
            return
        self._refuse("register_comm_hook")

    def join(self, *_: Any, **__: Any) -> Any:
        """Raise StreamError in a job with 'trainers.elastic', where uneven numbers of batches are not supported."""
        return super().join(*_, **__) if self._sums is None else self._refuse("join")

    @staticmethod
    def _refuse(what: str) -> NoReturn:
        raise StreamError(
            f"DistributedDataParallel.{what} cannot be used with 'trainers.elastic'. Remove the call, or the key."
        )


def _check(trained: list[torch.nn.Parameter], everything: list[Any]) -> None:
    """Raise StreamError if the parameters cannot be trained together."""
    if not trained:
        raise StreamError("mpidata.DistributedDataParallel: no parameter of the module requires a gradient.")
    if elsewhere := sorted({str(tensor.device) for tensor in everything if tensor.device.type != "cpu"}):
        raise StreamError(
            f"mpidata.DistributedDataParallel: a parameter is on {elsewhere[0]}. 'trainers.elastic' supports only "
            "models in CPU memory. Leave the model there, or remove 'trainers.elastic'."
        )
