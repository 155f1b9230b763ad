"""The programs on the pages run as jobs, and their commands work, in a folder made as a reader would."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jobs import JobFolder, environment
from pages import PAGES, README, ROOT, Block, blocks, files

from mpidata.config import load_job

CPP = ROOT / "docs" / "cpp.md"
SOLVER = ROOT / "docs" / "solver.md"
RECORDING = ROOT / "docs" / "recording.md"
SITES = ROOT / "docs" / "sites.md"
FILES = ROOT / "docs" / "files.md"
TRAINING = ROOT / "docs" / "training.md"
SMALL = ["--set", "name=job", "--set", "parameters.count=8"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[JobFolder]:
    """Yield a folder with all files of the README."""
    for name, text in files(README).items():
        (tmp_path / name).write_text(text)
    job_folder = JobFolder(tmp_path)
    yield job_folder
    job_folder.end()


def shell(folder: Path, commands: str) -> str:
    if " " in sys.prefix:  # as in docs/solver.md
        commands = re.sub(r"^.*\$\((?:mpidata config|pkg-config) .*$", r'eval "\g<0>"', commands, flags=re.MULTILINE)
    variables = environment() | {"ROOT": str(ROOT)}
    done = subprocess.run(
        ["sh", "-eu", "-c", commands], cwd=folder, env=variables, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, commands + done.stdout + done.stderr
    return done.stdout + done.stderr


def harmless(line: str) -> str:
    """Return a fast version of a command: make only looks up targets, and jobs are only prepared, also in loops."""
    words = shlex.split(line, comments=True) or [""]
    if words[0] == "make":
        return f'make -n -C "$ROOT" {shlex.join(words[1:])}'
    line = re.sub(r"(^|do )mpidata run(?!.*--dry-run)", r"\1mpidata run --dry-run", line)
    return re.sub(r"(^|do )mpidata submit(?!.*--show-template)", r"\1mpidata submit --print --set slurm.time=60", line)


def commands(page: Path) -> list[Block]:
    """Return the blocks of commands; blocks with a name are scripts of batch systems."""
    return [block for block in blocks("sh", page=page) if block.name is None]


TUTORIAL = ROOT / "docs" / "tutorial.md"  # test_tutorial.py runs all of it


@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page) and page != TUTORIAL], ids=lambda page: page.name
)
def test_commands_on_the_page_work(folder: JobFolder, page: Path, require: Callable[[str], str]) -> None:
    for name, text in files(page).items():
        (folder.path / name).write_text(text)
    shell(folder.path, "mpicc -Wall -Wextra -Werror solver.c -o solver $(mpidata config --cflags --libs)")
    for block in commands(page):
        for program in ("gfortran", "pkg-config"):
            if f"{program} " in block.text:
                require(program)
        shell(folder.path, "\n".join(map(harmless, block.text.splitlines())))


PBS = {"PBS_O_WORKDIR": ".", "PBS_JOBID": "41.server", "PBS_NODEFILE": "nodes"}
LSF = {"LSB_JOBID": "41", "LSB_DJOB_HOSTFILE": "nodes"}


@pytest.mark.parametrize(("script", "variables"), [("job.pbs", PBS), ("job.lsf", LSF)])
@pytest.mark.parametrize("status", [0, 75])
def test_batch_system_scripts_pass_hosts_and_requeue_the_job(
    folder: JobFolder, script: str, variables: dict[str, str], status: int
) -> None:
    """The scripts name the hosts in the form of `mpidata run`, and requeue the job after a checkpoint."""
    path, name = folder.path, f"{script[-3:]}-41"
    told = f'printf "%s\\n" "$0" "$@" "$PRTE_MCA_plm_ssh_agent" >>{path}/told'
    for program, ending in {"mpidata": status, "qsub": 0, "pbs_tmrsh": 0, "blaunch": 0}.items():
        (path / program).write_text(f"#!/bin/sh\n{told}\nexit {ending}\n")
        (path / program).chmod(0o755)
    (path / script).write_text(files(SITES)[script])
    shutil.copy("/bin/true", path / "solver")
    (path / "nodes").write_text("n2\nn1.site\nn2\nn3\nn2\n")
    done = subprocess.run(["bash", script], cwd=path, env=environment() | {"PATH": f"{path}:/usr/bin:/bin"} | variables)
    assert done.returncode == status
    agent = "pbs_tmrsh" if script == "job.pbs" else "blaunch"
    hosts = "launch.hosts=[n2:3, n1.site:1, n3:1]"
    run = [f"{path}/mpidata", "run", "job.yaml", "--set", hosts, "--as", name, "--restarts", "3", agent]
    again = [f"{path}/qsub", "-v", f"name={name}", "job.pbs", agent] if script == "job.pbs" and status == 75 else []
    assert (path / "told").read_text().splitlines() == [*run, *again]
    assert load_job(path / "job.yaml", [hosts]).launch.hosts == ("n2:3", "n1.site:1", "n3:1")
    assert (path / f"{name}.out").exists()
    assert ("#BSUB -Q 75" in files(SITES)[script]) == (script == "job.lsf")


@pytest.mark.parametrize("compiler", ["mpicxx", "mpicc -x c++"])
def test_readme_solver_compiles_as_cplusplus(folder: JobFolder, compiler: str, require: Callable[[str], str]) -> None:
    require("g++")
    (folder.path / "solver.cpp").write_text(files(README)["solver.c"])
    shell(folder.path, f"{compiler} -Wall -Wextra -Werror solver.cpp -o solver $(mpidata config --cflags --libs)")
    assert "started outside a job" in shell(folder.path, "./solver")


def test_cplusplus_exception_of_the_solver_is_printed_with_status_1(
    folder: JobFolder, require: Callable[[str], str]
) -> None:
    """The exception's text is printed and the status is 1, both in the scope of the job and in its constructor."""
    require("g++")
    thrown = 'void solve(mpidata::job &job) {\n    if (job.group()) throw std::runtime_error("no mesh");'
    text = files(CPP)["solver.cpp"].replace("void solve(mpidata::job &job) {", thrown)
    (folder.path / "solver.cpp").write_text(text)
    shell(folder.path, blocks("sh", page=CPP)[0].text)
    for more, sentence in (({}, "no mesh\n"), ({"MPIDATA_CARRIER": "1"}, "Link it with libmpidata_carried")):
        variables = environment() | more
        done = subprocess.run(["./solver"], cwd=folder.path, env=variables, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and sentence in done.stderr, done.stderr


def test_project_of_the_solver_page_builds_with_cmake(folder: JobFolder, require: Callable[[str], str]) -> None:
    require("cmake")
    (folder.path / "CMakeLists.txt").write_text(files(SOLVER)["CMakeLists.txt"])
    shell(folder.path, "cmake -S . -B build -DCMAKE_PREFIX_PATH=$(mpidata config --prefix) && cmake --build build")
    assert "started outside a job" in shell(folder.path, "build/solver")


@pytest.mark.parametrize("solver", ["c", "c++", "carried c++", "fortran", "python"])
def test_readme_job_trains(folder: JobFolder, solver: str, require: Callable[[str], str]) -> None:
    (folder.path / "solver.f90").write_text(files(SOLVER)["solver.f90"])
    overrides = ["solvers.groups=2"]
    if solver == "c":
        shell(folder.path, "mpicc solver.c -o solver $(mpidata config --cflags --libs)")
    if "c++" in solver:
        require("g++")
        for name, text in files(CPP).items():
            (folder.path / name).write_text(text)
        shell(folder.path, blocks("sh", page=CPP)["carried" in solver].text)
    if solver == "carried c++":
        overrides += ["solvers.program=[./carried]", "solvers.carried={}"]
    if solver == "fortran":
        require("gfortran")
        (lines,) = [b.text for b in blocks("sh", page=SOLVER) if "gfortran" in b.text]
        shell(folder.path, lines)
        overrides += ["solvers.program=[./solver_f]"]
    if solver == "python":
        overrides += ["solvers.program=[python, solver.py]"]
    result = folder.run(*SMALL, *(word for override in overrides for word in ("--set", override)), timeout=100)
    assert result.status == 0, result.logs()
    assert result.summary["status"] == "complete"
    assert result.summary["samples"]["received"] == (8 if solver == "carried c++" else 800)
    if solver != "carried c++":  # the program computes nothing
        loss = result.summary["training"]["training_loss"]
        assert loss["last"] < loss["first"]


def test_job_of_the_files_page_runs(folder: JobFolder) -> None:
    for name, text in files(FILES).items():
        (folder.path / name).write_text(text)
    (folder.path / "files.yaml").rename(folder.path / "job.yaml")
    result = folder.run(timeout=100)
    assert result.status == 0, result.logs()
    assert result.log("trainer").splitlines() == ["epoch 0: 1000 samples", "epoch 1: 1000 samples"]


def test_record_of_the_readme_job_trains_offline(folder: JobFolder) -> None:
    (folder.path / "offline.py").write_text(files(RECORDING)["offline.py"])
    record = ["--set", "record={path: samples}", "--set", "solvers={groups: 1, program: [python, solver.py]}"]
    result = folder.run(*SMALL, *record, timeout=100)
    assert result.status == 0, result.logs()
    assert result.summary["record"] == {"samples": 800.0, "skipped": 0.0, "slowed_s": 0.0}
    said = shell(folder.path, "python offline.py")
    assert "800 samples of ['temperature'] and ('alpha',)" in said
    losses = [float(line.split()[-1]) for line in said.splitlines() if line.startswith("epoch")]
    assert len(losses) == 2 and losses[1] < losses[0]


def test_fragments_of_the_training_page_run(folder: JobFolder) -> None:
    def piece(part: str) -> str:
        [text] = [block.text for block in blocks("python", page=TRAINING) if part in block.text]
        return text

    told = "".join(f"        {line}\n" for line in piece("stream.losses(").splitlines())
    epochs = piece("stream.over").replace("batches_per_epoch=100", "batches_per_epoch=3").replace("        ...\n", told)
    prelude = (
        "import torch\nimport mpidata\nmodel = torch.nn.Linear(1, 64)\n"
        "schedule = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(model.parameters()), 1)\n"
    )
    end = "print('drawn', stream._trainer.drawn, 'share', len(validation))\nstream.report(share=len(validation))\n"
    stream = "stream = mpidata.MPIStreamDataset(batch_size=16)\n"
    after = piece("for batch in stream:\n    ...")
    parallel = piece("torch.nn.parallel.DistributedDataParallel")
    script = prelude + parallel + stream + piece("validation()") + epochs + after + end
    (folder.path / "tracker.py").write_text(piece("class Tracker"))
    (folder.path / "train.py").write_text(script)
    (folder.path / "rod.py").write_text(files(SOLVER)["rod.py"])
    job = (folder.path / "job.yaml").read_text()
    (folder.path / "job.yaml").write_text(job.replace("program: [./solver]", 'function: "rod:simulate"'))
    changes = ["trainers.ranks=2", "solvers.groups=1", "validation.count=1", "buffer={policy: fifo, capacity: 100}"]
    changes.append("log=['tracker:Tracker']")
    result = folder.run(*SMALL, *(word for change in changes for word in ("--set", change)), timeout=100)
    assert result.status == 0, result.logs()
    for trainer in range(2):
        assert "drawn 25 share 50" in result.log("trainer", trainer), result.logs()
    assert result.summary["losses"]["count"] > 0
    assert result.run is not None
    curves = (result.run / "curves.csv").read_text().splitlines()
    assert [line.split(",")[1:] for line in curves] == [["25", "share", "50.0"]] * 2
