"""accelerate with a DataLoader: metrics count each sample once, accumulation ends at epochs, batches are skipped."""

import accelerate
import pytest
import torch
from accelerate.state import AcceleratorState, GradientState

from mpidata.datasets.data_loader.data_loader import DataLoader
from mpidata.errors import StreamError


@pytest.fixture(autouse=True)
def _state_of_the_process():
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


def batches_of(job, n, size, trainers, **arguments):
    """Return each trainer's batches of an epoch, from loaders that accelerate prepared, and the last remainder."""
    batches, remainders = [], set()
    for trainer in range(trainers):
        job.be(trainer)
        loader = DataLoader(range(n), size, share=True, **arguments)
        loader._is_accelerate_prepared = True
        state, epoch = GradientState(), []
        for batch in loader:
            epoch.append(batch.tolist())
            assert state.end_of_dataloader == (len(epoch) == len(loader))
            remainder = state.remainder
        assert not state.in_dataloader
        assert len(loader.sampler) == sum(map(len, epoch))
        batches.append(epoch)
        remainders.add(remainder)
    assert len(remainders) == 1
    return batches, remainders.pop()


@pytest.mark.parametrize(
    ("n", "size", "trainers"), [(21, 4, 2), (17, 4, 2), (16, 4, 2), (5, 4, 3), (13, 2, 5), (7, 3, 1)]
)
@pytest.mark.parametrize("shuffle", [False, True])
def test_samples_gathered_for_metrics_contain_each_sample_once(job_of, n, size, trainers, shuffle):
    job = job_of(1, trainers)
    batches, remainder = batches_of(job, n, size, trainers, shuffle=shuffle)
    gathered = []
    for step, together in enumerate(zip(*batches, strict=True)):
        assert len({len(batch) for batch in together}) == 1  # accelerate's gather requires it
        rows = sum(together, [])
        gathered += rows[:remainder] if step == len(batches[0]) - 1 else rows
    assert sorted(gathered) == list(range(n))
    assert shuffle or gathered == list(range(n))


def test_drop_last_neither_pads_nor_truncates_the_gathered_batches(job_of):
    batches, remainder = batches_of(job_of(1, 2), 21, 4, 2, drop_last=True)
    assert sum((sum(pair, []) for pair in zip(*batches, strict=True)), [])[-8:][:remainder] == list(range(8, 16))


def test_loaders_without_accelerate_yield_each_sample_once(job_of):
    job = job_of(1, 2)
    rows = []
    for trainer in range(2):
        job.be(trainer)
        rows += [row for batch in DataLoader(range(21), 4, share=True) for row in batch.tolist()]
    assert sorted(rows) == list(range(21))


def steps_of(accelerator, loader, model, epochs):
    """Return where the optimizer steps, as pairs of epoch and batch."""
    accelerator.step, steps = 0, []
    for epoch in range(epochs):
        for number, x in enumerate(loader):
            with accelerator.accumulate(model):
                model(x.float().reshape(-1, 1)).sum().backward()
                if accelerator.sync_gradients:
                    steps.append((epoch, number))
    return steps


@pytest.mark.parametrize("share", [True, False])
def test_gradients_of_two_epochs_are_not_accumulated_together(job_of, share):
    job_of()
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=4)
    model = torch.nn.Linear(1, 1)
    loader = DataLoader(range(20), 2, share=share)
    assert accelerator.prepare(loader) is loader
    assert steps_of(accelerator, loader, model, 2) == [(0, 3), (0, 7), (0, 9), (1, 3), (1, 7), (1, 9)]


def test_nested_and_left_validation_loops_do_not_confuse_accelerate(job_of):
    job_of()
    accelerator = accelerate.Accelerator(cpu=True)
    training, validation = accelerator.prepare(DataLoader(range(6), 2, share=True), DataLoader(range(4), 2, share=True))
    ends = []
    for _ in training:
        for _ in validation:
            break
        ends.append(accelerator.gradient_state.end_of_dataloader)
        for _ in validation:
            pass
        ends.append(accelerator.gradient_state.end_of_dataloader)
    assert ends == [False, False, False, False, True, True]
    assert not accelerator.gradient_state.in_dataloader


SKIPPED = {
    "in turn": lambda: DataLoader(range(30), 4),
    "shuffled": lambda: DataLoader(range(30), 4, shuffle=True, generator=torch.Generator().manual_seed(3)),
    "shared": lambda: DataLoader(range(30), 4, shuffle=True, share=True),
    "sampler": lambda: DataLoader(range(30), 4, sampler=list(range(29, -1, -1))),
}


@pytest.mark.parametrize("make", SKIPPED.values(), ids=SKIPPED)
@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.filterwarnings("ignore:The batch_sampler of this mpidata.DataLoader")
def test_batches_after_skip_first_batches_match_an_uninterrupted_run(job_of, make, prepared):
    job_of()
    loader = make()
    epochs = [[batch.tolist() for batch in loader] for _ in range(4)]
    state = None
    for resumed in (False, True):
        again = make()
        if resumed:  # at another position, which the caller's count ignores
            again.load_state_dict(state)
        else:
            again.set_epoch(1)
        again._is_accelerate_prepared = prepared
        rest, ends = [], []
        for batch in accelerate.skip_first_batches(again, 3):
            rest.append(batch.tolist())
            ends.append(GradientState().end_of_dataloader)
        assert rest == epochs[1][3:]
        assert ends == [False] * 4 + [prepared]
        following = iter(again)
        assert [next(following).tolist() for _ in range(5)] == epochs[2][:5]
        assert [batch.tolist() for batch in again] == epochs[3]
        running = make()
        running.set_epoch(1)
        left = iter(running)
        next(left)
        state = running.state_dict()


def test_skip_first_batches_warns_that_this_process_reads_the_samples(job_of):
    job_of()
    with pytest.warns(UserWarning, match="reads the samples in this process, not on the loaders"):
        next(iter(accelerate.skip_first_batches(DataLoader(range(30), 4), 3)))
    with pytest.raises(StreamError, match="skip_first_batches cannot read it; resume in mid-epoch with .*load_state_d"):
        _ = DataLoader("fractions:Fraction", 4).dataset[0]
