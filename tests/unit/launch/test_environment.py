import os

import pytest

from mpidata.errors import LaunchError
from mpidata.launch.starting.environment import Place, find_place, leave_step


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, None),
        ({"SLURM_PROCID": "0", "SLURM_JOB_ID": "7"}, None),  # a batch script
        (
            {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "7", "PMIX_NAMESPACE": "prterun-vm-5@1"},
            Place(2, 7, "prterun-vm-5@1"),
        ),
        ({"PMIX_RANK": "2", "PMIX_NAMESPACE": "a/b c"}, Place(2, None, "a_b_c")),
        (
            {
                "PMIX_RANK": "2",
                "PMIX_NAMESPACE": "slurm.pmix.7.0",
                "SLURM_STEP_ID": "0",
                "SLURM_STEP_NUM_TASKS": "9",
            },
            Place(2, 9, "slurm.pmix.7.0"),
        ),
        ({"PMI_RANK": "1", "PMI_SIZE": "3", "PMI_JOBID": "77"}, Place(1, 3, "77")),
        (
            {"PMI_RANK": "1", "PMI_SIZE": "3", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "2"},
            Place(1, 3, "slurm-7.2"),
        ),
        (
            {"SLURM_PROCID": "4", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "9", "SLURM_JOB_ID": "7"},
            Place(4, 9, "slurm-7.0"),
        ),
    ],
)
def test_place_is_found_from_launcher_variables(environ: dict[str, str], place: Place | None) -> None:
    assert find_place(environ) == place


def test_ranks_of_a_job_without_a_name_agree_on_one() -> None:
    first = find_place({"PMI_RANK": "0", "PMI_SIZE": "2"})
    second = find_place({"PMI_RANK": "1", "PMI_SIZE": "2"})
    assert first is not None and second is not None and first.job == second.job != ""


@pytest.mark.parametrize(
    "environ",
    [{"FLUX_TASK_RANK": "0"}, {"OMPI_COMM_WORLD_RANK": "x"}, {"PMI_RANK": "0", "PMI_SIZE": "-3"}],
)
def test_unknown_or_invalid_launcher_variables_are_refused(environ: dict[str, str]) -> None:
    with pytest.raises(LaunchError, match=r"launcher.*Use .*mpirun.* or srun\."):
        find_place(environ)


SHELL = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NODELIST": "n1",
    "SLURM_JOB_CPUS_PER_NODE": "8",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "1",
    "SLURM_PROCID": "0",
    "SLURM_NTASKS": "1",
    "SLURM_PTY_PORT": "40000",
}
PMIX = {"PMIX_RANK": "0", "PMIX_NAMESPACE": "slurm.pmix.7.0", "PMIX_MCA_psec": "native"}
PMI = {"PMI_RANK": "0", "PMI_SIZE": "1", "PMI_FD": "11"}


@pytest.mark.parametrize("more", [{}, PMIX, PMI])
def test_srun_shell_is_not_a_rank_and_is_treated_like_salloc(more: dict[str, str]) -> None:
    environ = {**SHELL, **more}
    assert find_place(environ) is None
    leave_step(environ)
    assert environ.pop("PMIX_MCA_psec", None) == more.get("PMIX_MCA_psec")
    kept = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_JOB_CPUS_PER_NODE")
    assert environ == {**{name: SHELL[name] for name in kept}, "SLURM_OVERLAP": "1"}


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "2", "SLURM_STEP_ID": "1"}, Place(2, 3, "slurm-7.1")),  # srun
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3", "PMIX_NAMESPACE": "p@1"}, Place(1, 3, "p@1")),
        ({"PMI_RANK": "1", "PMI_SIZE": "3"}, Place(1, 3, "slurm-7.0")),  # the mpirun of MPICH
        ({"SLURM_STEP_NUM_TASKS": "3", "SLURM_TASK_PID": str(os.getpid())}, Place(0, 3, "slurm-7.0")),  # srun --pty
    ],
)
def test_process_launched_in_a_srun_shell_is_a_rank(more: dict[str, str], place: Place) -> None:
    environ = {**SHELL, **more}
    assert find_place(environ) == place
    before = dict(environ)
    leave_step(environ)
    assert environ == before
