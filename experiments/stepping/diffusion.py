"""Simulations that a small diffusion model generates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from scipy import stats
from torch import nn

from mpidata.sampling.samplers.observations import Observed
from mpidata.sampling.space import Space

__all__ = ["Diffusion"]

Array = npt.NDArray[np.float64]
_LEAST_KNOWN, _WINDOW = 10, 400
_NOISES, _WIDTH, _RATE = 50, 64, 1e-3
_TRAINED, _BATCH = 50, 128  # training steps each time losses arrive, and points per step
_HARD = 3.0  # the requested quantiles have the density 3 q^2


class Diffusion:
    """Draws points that a diffusion model expects to be among the most difficult.

    After OGAS (Learning Where to Simulate: Generative Active Sampling for Online PDE Surrogate Training, arXiv
    2606.09949): a model of the simulated points, given the quantile of their difficulty, is trained while the job runs
    (Ho et al., Denoising Diffusion Probabilistic Models, NeurIPS 2020, with the noise schedule of Nichol and Dhariwal,
    2021), and samples points for high quantiles. A part `uniform` of the simulations is independent and uniform.
    """

    def __init__(self, space: Space, seed: int, uniform: float = 0.3) -> None:
        torch.set_num_threads(1)
        self._space, self._uniform = space, uniform
        self._random, self._torch = np.random.default_rng([seed, 2]), torch.Generator().manual_seed(seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self._model = nn.Sequential(
                nn.Linear(len(space) + 4, _WIDTH), nn.SiLU(), nn.Linear(_WIDTH, _WIDTH), nn.SiLU(),
                nn.Linear(_WIDTH, _WIDTH), nn.SiLU(), nn.Linear(_WIDTH, len(space)),
            )  # fmt: skip
        self._optimizer = torch.optim.Adam(self._model.parameters(), lr=_RATE)
        at = torch.arange(_NOISES + 1) / _NOISES
        kept = torch.cos((at + 0.008) / 1.008 * torch.pi / 2) ** 2
        self._betas = (1 - kept[1:] / kept[:-1]).clamp(max=0.999)
        self._kept = torch.cumprod(1 - self._betas, 0)  # squared factor of the signal
        self._observed = Observed(len(space), _WINDOW)

    def observe(self, simulations: npt.NDArray[np.int64], parameters: Array, losses: dict[str, Array]) -> None:
        """Take the difficulties of simulations and train the model for some steps."""
        self._observed.add(simulations, self._space.unit(parameters), losses["difficulty"])
        if len(self._observed) < _LEAST_KNOWN:
            return
        ranks = (stats.rankdata(self._observed.values) - 0.5) / len(self._observed)
        points = torch.from_numpy(2 * self._observed.points - 1).float()
        quantiles = torch.from_numpy(ranks).float()
        for _ in range(_TRAINED):
            which = torch.randint(len(points), (_BATCH,), generator=self._torch)
            level = torch.randint(_NOISES, (_BATCH,), generator=self._torch)
            noise, kept = self._normal(_BATCH), self._kept[level, None]
            noisy = kept.sqrt() * points[which] + (1 - kept).sqrt() * noise
            self._optimizer.zero_grad()
            (self._noise_in(noisy, level, quantiles[which]) - noise).square().mean().backward()
            self._optimizer.step()

    def sample(self, count: int) -> tuple[Array, list[str], list[int]]:
        """Draw `count` rows."""
        made = self._random.random(count) >= self._uniform
        if len(self._observed) < _LEAST_KNOWN:
            made[:] = False
        points = self._random.random((count, len(self._space)))
        if made.any():
            points[made] = self._make(self._random.beta(_HARD, 1.0, int(made.sum())))
        return self._space.scale(points), np.where(made, "diffusion", "uniform").tolist(), [-1] * count

    def _make(self, quantiles: Array) -> Array:
        wanted = torch.from_numpy(quantiles).float()
        x = self._normal(len(wanted))
        with torch.no_grad():
            for level in reversed(range(_NOISES)):
                beta, kept = self._betas[level], self._kept[level]
                noise = self._noise_in(x, torch.full((len(x),), level), wanted)
                x = (x - beta / (1 - kept).sqrt() * noise) / (1 - beta).sqrt()
                if level:
                    x = x + beta.sqrt() * self._normal(len(x))
        within = 1 - (x.double().numpy() - 1) % 4 / 2  # reflected at the sides of the cube
        return abs(within).clip(0.0, 1.0)

    def _noise_in(self, x: torch.Tensor, level: torch.Tensor, quantiles: torch.Tensor) -> torch.Tensor:
        at = level / _NOISES
        told = torch.stack([at, torch.sin(torch.pi * at), torch.cos(torch.pi * at), 2 * quantiles - 1], dim=1)
        noise: torch.Tensor = self._model(torch.cat([x, told], dim=1))
        return noise

    def _normal(self, count: int) -> torch.Tensor:
        return torch.randn(count, len(self._space), generator=self._torch)
