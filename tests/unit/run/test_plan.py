"""The plan: from a job, as text and back, and the roles of its ranks."""

import sys
from pathlib import Path

import pytest

from mpidata.config import load_job
from mpidata.config.programs import find_launcher, find_program
from mpidata.errors import LaunchError, MpidataError
from mpidata.run.plan import Field, Plan, Program
from mpidata.run_module import module_command

JOB = """\
seed: 7
trainers: {ranks: 2, program: [python, train.py, --note, "two words"]}
solvers: {groups: 4, ranks_per_group: 3, program: [./heat2d, train.py]}
parameters: {sampler: grid, space: {alpha: {values: [1, 2]}, left: {values: [1, 2, 3]}}}
validation: {count: 2}
fields: {temperature: {shape: [2, 64]}, scalar: {dtype: float64, shape: []}}
buffer: {policy: firo, capacity: 20, watermark: 3, tail: repeat}
"""

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").touch()
    (tmp_path / "heat2d").touch(mode=0o755)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def test_plan_contains_the_settings_of_the_job(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    plan = Plan.of(load_job(folder / "job.yaml"), folder / "runs" / "job" / "1")
    assert (
        plan.text()
        == f"""\
mpidata-plan 1
run {folder}/runs/job/1
folder {folder}
seed 7
start split
lifetime pool
world 15
trainers 2
groups 4
spares 0
ranks_per_group 3
in_flight 8
retries 2
timeout_s 60.0
start_timeout_s 600.0
join_timeout_s 600.0
tolerate -1
fault_tolerance none
simulations 6
validation 2
policy firo
capacity 20
watermark 3
tail repeat
checkpoint 0
attempt 1
checkpoint_every_s 0.0
checkpoint_keep 2
checkpoint_within_s 60.0
ranges [[1.0, 2.0], [1.0, 3.0]]
parameter alpha
parameter left
whole alpha
whole left
field temperature float32 2 2 64
field scalar float64 0
program scheduler
argument {sys.executable}
argument {ROOT}/mpidata/run_module.py
argument {folder}
argument mpidata.scheduler
program trainer
argument {sys.executable}
argument train.py
argument --note
argument two words
environment OMP_NUM_THREADS=1
program solver
argument {folder}/heat2d
argument train.py
environment OMP_NUM_THREADS=1
"""
    )
    assert Plan.parse(plan.text()) == plan
    assert plan.fields == (Field("temperature", "float32", (2, 64)), Field("scalar", "float64", ()))


@pytest.mark.parametrize(("timeout_s", "start_timeout_s"), [(30, 600.0), (700, 700.0)])
def test_start_timeout_is_at_least_the_timeout_of_a_step(folder: Path, timeout_s: int, start_timeout_s: float) -> None:
    keys = f"timeout_s: {timeout_s}, program"
    (folder / "job.yaml").write_text(JOB.replace("ranks_per_group: 3, program", f"ranks_per_group: 3, {keys}"))
    assert Plan.of(load_job(folder / "job.yaml"), folder / "run").start_timeout_s == start_timeout_s


def test_plan_contains_fault_tolerance_checkpoint_and_record_settings(folder: Path) -> None:
    text = "spares: 2, retries: 3, timeout_s: 1.5, start_timeout_s: 4, tolerate: 4, hosts: [a, b], program"
    keys = "checkpoint: {every_s: 5, keep: 3, within_s: 7}\nrecord: {path: samples, every: 2, when_slow: skip}\n"
    (folder / "job.yaml").write_text(JOB.replace("ranks_per_group: 3, program", f"ranks_per_group: 3, {text}") + keys)
    plan = Plan.of(load_job(folder / "job.yaml"), folder / "run", fault_tolerance="ulfm", checkpoint=12, attempt=2)
    lines = plan.text().splitlines()
    for line in (
        "world 21",
        "spares 2",
        "retries 3",
        "timeout_s 1.5",
        "start_timeout_s 4.0",
        "tolerate 4",
        "fault_tolerance ulfm",
        "checkpoint 12",
        "attempt 2",
        "checkpoint_every_s 5.0",
        "checkpoint_keep 3",
        "checkpoint_within_s 7.0",
    ):
        assert line in lines
    for line in (f"record_path {folder}/samples", "record_every 2", "record_when_slow skip", "host a", "host b"):
        assert line in lines
    assert Plan.parse(plan.text()) == plan
    plan = Plan.of(load_job(folder / "job.yaml", ["record={}"]), folder / "run")
    assert plan.record_path == folder / "run" / "record"


@pytest.mark.parametrize("solvers", [False, True])
def test_servers_are_the_last_ranks(folder: Path, solvers: bool) -> None:
    keys = "loaders: {ranks: 1}\nservers: {ranks: 2}\n"
    (folder / "job.yaml").write_text((JOB if solvers else "trainers: {program: [python, train.py]}\n") + keys)
    job = load_job(folder / "job.yaml")
    plan = Plan.of(job, folder / "run")
    assert job.layout.endswith("1 loader and 2 servers")
    assert {"servers 2", "argument mpidata.server"} <= set(plan.text().splitlines())
    assert Plan.parse(plan.text()) == plan
    first = 16 if solvers else 3
    assert plan.world == first + 2 and list(plan.server_ranks) == [first, first + 1]
    assert [plan.role_of(first - 1 + i) for i in range(3)] == [("loader", 0, 0), ("server", 0, 0), ("server", 1, 0)]
    with pytest.raises(MpidataError, match="The plan lacks program server"):
        Plan.parse(plan.text().replace("program server", "program trainer"))


@pytest.mark.parametrize("solvers", [False, True])
def test_plan_contains_loaders_and_their_ranks(folder: Path, solvers: bool) -> None:
    keys = "loaders: {ranks: 4, spares: 1, retries: 3, timeout_s: 2, start_timeout_s: 5, tolerate: 6}\n"
    (folder / "job.yaml").write_text((JOB if solvers else "trainers: {program: [python, train.py]}\n") + keys)
    plan = Plan.of(load_job(folder / "job.yaml"), folder / "run")
    lines = plan.text().splitlines()
    said = "loaders 4|loader_spares 1|loader_start split|loader_retries 3|loader_timeout_s 2.0|loader_tolerate 6"
    assert {*said.split("|"), "loader_start_timeout_s 5.0", "argument mpidata.loader"} <= set(lines)
    assert ("program solver" in lines, plan.has_stream, plan.world) == (solvers, solvers, 20 if solvers else 7)
    assert Plan.parse(plan.text()) == plan
    first = 15 if solvers else 2
    assert [plan.role_of(first + i) for i in range(5)] == [("loader", i, 0) for i in range(5)]
    assert [plan.rank_of_loader(i) for i in (0, 4, 5)] == [first, first + 4, None]
    with pytest.raises(MpidataError, match="The plan lacks program loader"):
        Plan.parse(plan.text().replace("program loader", "program trainer"))


@pytest.mark.parametrize(
    ("elements", "ranks", "given", "in_flight"),
    [(1 << 17, 1, "", 8), ((1 << 17) + 1, 1, "", 4), (1 << 18, 2, "", 8), (1 << 18, 1, "", 4), (1 << 18, 1, "2", 2)],
)
def test_fewer_large_samples_are_in_flight(folder: Path, elements: int, ranks: int, given: str, in_flight: int) -> None:
    changes = [f"fields={{u: {{shape: [{elements}]}}}}", f"solvers.ranks_per_group={ranks}"]
    if given:
        changes.append(f"solvers.in_flight={given}")
    assert Plan.of(load_job(folder / "job.yaml", changes), folder).in_flight == in_flight


def test_thread_count_set_by_the_user_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    plan = Plan.of(load_job(folder / "job.yaml"), folder)
    assert plan.programs["trainer"].environment == plan.programs["solver"].environment == {}


def test_solver_function_is_run_by_an_mpidata_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    (folder / "heat.py").write_text("def simulate(): yield")
    plan = Plan.of(load_job(folder / "job.yaml", ["solvers={function: 'heat:simulate'}"]), folder)
    command = module_command("mpidata.solver.function", "heat:simulate", folder=folder)
    assert plan.programs["solver"].arguments == command and command[2:] == (str(folder), *command[3:])
    assert int(plan.programs["solver"].environment["OMP_NUM_THREADS"]) >= 1


def test_only_executables_of_the_folder_are_made_absolute(folder: Path) -> None:
    assert find_program(["heat2d", "heat2d"], folder) == (f"{folder}/heat2d", "heat2d")
    assert find_program(["../" + folder.name + "/heat2d"], folder) == (f"{folder}/heat2d",)
    assert find_program(["mpiexec", "x"], folder) == ("mpiexec", "x")
    assert find_program(["/bin/sh"], folder) == ("/bin/sh",)
    assert find_program(["python3"], folder) == (sys.executable,)


def plan_of(**changes: object) -> Plan:
    programs = {role: Program(("x",)) for role in ("scheduler", "trainer", "solver")}
    keys = dict(seed=0, world=9, trainers=2, groups=3, ranks_per_group=2, in_flight=4, simulations=1, validation=0)
    keys |= dict(capacity=1, watermark=0)
    more = dict(policy="fifo", tail="drop", parameters=("a",), fields=(Field("u", "uint8", (3,)),), programs=programs)
    return Plan(**{"run": Path("/run"), "folder": Path("/folder"), **keys, **more, **changes})  # type: ignore[arg-type]


def test_unusual_arguments_survive_a_round_trip() -> None:
    arguments = ("a b", "", " ", "é=\u2028", "tab\t", "r\r", "program solver")
    plan = plan_of(programs=dict.fromkeys(("scheduler", "trainer", "solver"), Program(arguments, {"A": "=b c"})))
    assert Plan.parse(plan.text()) == plan


def test_a_plan_is_read_from_its_file(tmp_path: Path) -> None:
    plan = plan_of(programs=dict.fromkeys(("scheduler", "trainer", "solver"), Program(("r\r",))))
    (tmp_path / "plan").write_bytes(plan.text().encode())
    assert Plan.read(tmp_path / "plan") == plan
    with pytest.raises(MpidataError, match="Cannot read the plan .*none: .*Start the job with `mpidata run`"):
        Plan.read(tmp_path / "none")


def test_an_argument_with_a_newline_is_refused() -> None:
    plan = plan_of(programs=dict.fromkeys(("scheduler", "trainer", "solver"), Program(("a\nb",))))
    with pytest.raises(MpidataError, match="newline"):
        plan.text()


def test_roles_follow_the_order_of_the_world() -> None:
    plan = plan_of()
    roles = [plan.role_of(rank) for rank in range(9)]
    assert roles[:3] == [("scheduler", 0, 0), ("trainer", 0, 0), ("trainer", 1, 0)]
    assert roles[3:] == [("solver", group, rank) for group in range(3) for rank in range(2)]
    for rank in (-1, 9):
        with pytest.raises(LaunchError, match=f"There is no rank {rank} in this job of 9 ranks. Start it with -n 9."):
            plan.role_of(rank)


def test_spares_have_ranks_and_spawned_groups_have_none() -> None:
    plan = plan_of(world=13, spares=2)
    assert plan.role_of(12) == ("solver", 4, 1) and plan.groups_in_world == 5
    assert [plan.rank_of(group, 1) for group in (0, 3, 4, 5)] == [4, 10, 12, None]
    plan = plan_of(world=3, start="spawn")
    assert plan.groups_in_world == 0 and plan.rank_of(0, 0) is None
    with pytest.raises(LaunchError, match="There is no rank 3 in this job of 3 ranks."):
        plan.role_of(3)


def test_launcher_in_the_job_folder_is_found_from_any_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = folder / "{odd}"
    odd.mkdir()
    for name in ("fan.sh", "sub/fan.py", "{odd}/fan.sh"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("exec $@")
        (folder / name).chmod(0o755)
    carried = "solvers.carried={ranks: 2, launcher: [./fan.sh, '{ranks}', sub/fan.py, fan.sh, sub/none]}"
    job = load_job(folder / "job.yaml", [carried, "solvers.ranks_per_group=1"])
    monkeypatch.chdir("/")
    arguments = Plan.of(job, folder).programs["solver"].arguments
    assert arguments[1:3] == ("2", "5")
    assert arguments[3:8] == (str(folder / "fan.sh"), "2", str(folder / "sub" / "fan.py"), "fan.sh", "sub/none")
    assert find_launcher(["python", "fan.py", "x"], folder / "sub")[1:] == (str(folder / "sub" / "fan.py"), "x")
    assert find_launcher(["fan.sh"], odd) == (f"{folder}/{{{{odd}}}}/fan.sh",)
    assert find_launcher(["sh", "fan.sh", "fan.sh"], folder) == ("sh", str(folder / "fan.sh"), "fan.sh")
    assert find_launcher(["mpirun", "-n"], odd) == ("mpirun", "-n")


def test_carried_program_receives_the_name_of_the_time_variable(folder: Path) -> None:
    for more, told in (("", "{t}"), ("lifetime: simulation, ", "{{t}}")):  # doubled if placeholders are filled in
        solvers = f"solvers={{program: [./heat2d, a], {more}carried: {{time: '{{t}}'}}}}"
        arguments = Plan.of(load_job(folder / "job.yaml", [solvers]), folder).programs["solver"].arguments
        assert arguments[3:] == ("env", f"MPIDATA_ADIOS2_TIME={told}", str(folder / "heat2d"), "a")


def test_braces_in_the_folder_name_are_not_placeholders(folder: Path) -> None:
    odd = folder / "{odd}"
    odd.mkdir()
    for name in ("job.yaml", "heat2d", "train.py"):
        if (folder / name).is_file():
            (folder / name).rename(odd / name)
    (odd / "solver.py").touch()
    (odd / "case").mkdir()
    carried = "carried: {ranks: 1}, lifetime: simulation, case: {folder: case}"
    written = f"{folder}/{{{{odd}}}}"
    for program, arguments in (
        ("[./heat2d, '{alpha}']", (f"{written}/heat2d", "{alpha}")),
        ("[python, solver.py]", (sys.executable, f"{written}/solver.py")),
    ):
        job = load_job(odd / "job.yaml", [f"solvers={{program: {program}, {carried}}}"])
        assert Plan.of(job, folder).programs["solver"].arguments[3:] == arguments
