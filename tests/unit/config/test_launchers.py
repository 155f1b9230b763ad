"""A launcher as a trainer's program is refused by name, however it is written; other programs are accepted."""

import pytest

from mpidata.config.checks.launchers import check_no_launcher, launcher_of

AT = ("trainers", "program")


@pytest.mark.parametrize(
    ("command", "name", "instead"),
    [
        (["torchrun", "--nproc-per-node=2", "train.py", "--lr", "1"], "torchrun", "2 [python, train.py, --lr, 1]"),
        (["torchrun", "--nproc_per_node", "4", "a/b.py"], "torchrun", "4 [python, a/b.py]"),
        (["/opt/env/bin/torchrun", "train.py"], "torchrun", "[python, train.py]"),
        (["python", "-m", "torch.distributed.run", "t.py"], "torchrun", "[python, t.py]"),
        (["python3.12", "-u", "-m", "torch.distributed.launch", "t.py"], "torch.distributed.launch", "[python, t.py]"),
        (["accelerate", "launch", "--num_processes", "2", "t.py"], "accelerate launch", "2 [python, t.py]"),
        (["python", "-m", "accelerate.commands.launch", "t.py"], "accelerate launch", "[python, t.py]"),
        (["mpirun", "-np", "3", "python", "t.py"], "mpirun", "3 [python, t.py]"),
        (["srun", "--ntasks=2", "python", "-u", "t.py"], "srun", "2 [python, t.py]"),
        (["deepspeed", "--num_gpus", "2", "t.py"], "deepspeed", "2 [python, t.py]"),
        (["env", "OMP_NUM_THREADS=1", "torchrun", "t.py"], "torchrun", "[python, t.py]"),
        (["numactl", "-N", "0", "mpiexec", "-n", "2", "./program"], "mpiexec", "2 [python, train.py]"),
        (["timeout", "100", "nice", "torchrun", "t.py"], "torchrun", "[python, t.py]"),
        (["sh", "-c", "cd here && OMP_NUM_THREADS=1 torchrun t.py"], "torchrun", "[python, t.py]"),
        (["bash", "-lc", "module load x; exec srun python t.py"], "srun", "[python, t.py]"),
    ],
)
def test_launchers_as_trainer_programs_are_refused(command: list[str], name: str, instead: str) -> None:
    ((location, sentence),) = check_no_launcher(AT, command)
    assert location == AT and sentence.startswith(f"'trainers.program' is {name}, which starts processes of its own")
    count, _, program = instead.rpartition(" [")
    ranks = f"'trainers.ranks: {count}' and " if count else ""
    assert f"Instead of {name}, write {ranks}'program: [{program.removeprefix('[')}'" in sentence


@pytest.mark.parametrize(
    "command",
    [
        ["python", "train.py"],
        ["python", "train.py", "torchrun"],
        ["python", "-m", "train"],
        ["python", "-m"],
        ["./srun", "train.py"],
        ["accelerate", "config"],
        ["sh", "-c", "echo torchrun; python train.py"],
        ["sh", "-c", "echo 'unclosed"],
        ["env", "A=1", "python", "train.py"],
        ["numactl", "-N", "0", "python", "train.py", "mpirun"],
        ["./train"],
    ],
)
def test_programs_that_are_not_launchers_are_accepted(command: list[str]) -> None:
    assert launcher_of(command) is None and not list(check_no_launcher(AT, command))


@pytest.mark.parametrize("program", [None, "torchrun train.py", [1, 2], []])
def test_launcher_check_ignores_invalid_commands(program: object) -> None:
    assert not list(check_no_launcher(AT, program))
