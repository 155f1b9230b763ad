"""Batch scripts, and errors in templates. Needs no Slurm."""

import errno
import os
import re
import signal
import subprocess
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest
from click.testing import CliRunner
from launch_job import write_job
from waiting import wait_until

from mpidata import cli
from mpidata.config import load_job
from mpidata.errors import JobFileError, LaunchError
from mpidata.launch.batch.submit import batch_script
from mpidata.launch.batch.template import render, template_names
from mpidata.launch.starting.named_run import NamedRun
from mpidata.run.folder import RunFolder


def script(folder: Path, *overrides: str) -> str:
    return batch_script(load_job(write_job(folder), overrides), overrides)


def directives(text: str) -> list[str]:
    return [line[len("#SBATCH ") :] for line in text.splitlines() if line.startswith("#SBATCH ")]


def test_homogeneous_script_requests_tasks_and_options(tmp_path: Path) -> None:
    text = script(tmp_path, "slurm.options={partition: cpu, exclusive: true, requeue: false, comment: a b}")
    common = ["--job-name=job", f"--chdir={tmp_path}", "--output=slurm-%j.out", "--open-mode=append"]
    common.append("--signal=B:USR1@90")
    assert directives(text) == [*common, "--ntasks=8", "--partition=cpu", "--exclusive", '--comment="a b"']
    assert text.startswith("#!/bin/bash\n")
    set_value = "slurm.options={partition: cpu, exclusive: true, requeue: false, comment: a b}"
    start = f" run {tmp_path}/job.yaml --set '{set_value}' --as \"slurm-$SLURM_JOB_ID\" --restarts 3"
    assert text.splitlines()[-1].endswith(start)
    text = script(tmp_path, "slurm.nodes=3", "trainers.per_node=1", "slurm.time=1:00:00")
    assert directives(text)[5:] == ["--time=1:00:00", "--nodes=3", "--ntasks-per-node=3"]


def test_gpus_are_requested_for_nodes_with_trainers(tmp_path: Path) -> None:
    gpus = "trainers.gpus_per_rank=2"
    two = script(tmp_path, gpus, "trainers.per_node=1")
    assert directives(two)[5:] == ["--nodes=2", "--ntasks-per-node=4", "--gpus-per-node=2"]
    assert directives(script(tmp_path, gpus))[5:] == ["--nodes=1", "--ntasks-per-node=8", "--gpus-per-node=4"]
    with pytest.raises(LaunchError, match="'slurm.nodes' is 3, and GPUs .* only 2 have trainers.*heterogeneous"):
        script(tmp_path, gpus, "trainers.per_node=1", "slurm.nodes=3")
    own = script(tmp_path, gpus, "trainers.per_node=1", "slurm.nodes=3", "slurm.options={gres: 'gpu:4'}")
    assert directives(own)[5:] == ["--nodes=3", "--ntasks-per-node=3", "--gres=gpu:4"]


def test_heterogeneous_script_has_two_components(tmp_path: Path) -> None:
    options = (
        "slurm={template: heterogeneous, options: {account: a}, trainer_options: {partition: gpu}, nodes: 2, time: 9}"
    )
    text = script(tmp_path, options, "trainers.gpus_per_rank=1", "trainers.per_node=1")
    first, second = (directives(half) for half in text.split("#SBATCH hetjob\n"))
    assert first[3:6] == ["--open-mode=append", "--signal=B:USR1@90", "--time=9"]
    assert first[6:] == ["--nodes=2", "--ntasks-per-node=2", "--gpus-per-node=1", "--account=a", "--partition=gpu"]
    assert second == ["--time=9", "--nodes=2", "--ntasks-per-node=2", "--account=a"]
    halves = script(tmp_path, options, "loaders={ranks: 3, spares: 2}").split("#SBATCH hetjob\n")
    assert "--ntasks-per-node=5" in directives(halves[1])  # two nodes for two groups of two and five loaders
    halves = script(tmp_path, options, "slurm.nodes=~", "loaders={ranks: 3, spares: 2}").split("#SBATCH hetjob\n")
    assert "--ntasks=9" in directives(halves[1])
    assert text.rstrip().endswith("--restarts 3")


def test_preemptible_script_requests_requeue_and_a_signal(tmp_path: Path) -> None:
    text = script(tmp_path, "slurm={template: preemptible, time: 1:00:00, setup: [module load gcc]}")
    found = directives(text)
    assert {"--time=1:00:00", "--requeue", "--signal=B:USR1@90", "--open-mode=append"} <= set(found)
    assert "\nmodule load gcc\n" in text
    assert "--signal=B:USR1@40" in script(
        tmp_path, "slurm={template: preemptible, time: 5}", "checkpoint={within_s: 9.5}"
    )


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ("{time: 1}", "'slurm.time' is '1', which is not longer than 'checkpoint.within_s' + 30 s"),
        ("{time: '1:30', signal_s: 90}", "'slurm.signal_s' is 90, which is not less than 'slurm.time', '1:30'"),
        ("{time: '0-0:01:00', signal_s: 60}", "'slurm.signal_s' is 60"),
        ("{options: {array: 0-3}}", "'slurm.options.array': all tasks of an array would run the same simulations"),
    ],
)
def test_unworkable_slurm_settings_are_refused(tmp_path: Path, keys: str, sentence: str) -> None:
    with pytest.raises(JobFileError) as error:
        script(tmp_path, f"slurm={keys}")
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    "keys", ["{time: 0}", "{time: 2}", "{time: '1:00:00', signal_s: 3599}", "{time: 1-0, signal_s: 9999}"]
)
def test_time_limits_with_room_for_a_checkpoint_are_accepted(tmp_path: Path, keys: str) -> None:
    assert "--signal=B:USR1@" in script(tmp_path, f"slurm={keys}")


@pytest.mark.parametrize("template", ["homogeneous", "preemptible"])
@pytest.mark.parametrize(("line", "goes_on"), [("false", False), (". ./set-up.sh", True), ("no-such-program", False)])
def test_failing_setup_line_ends_the_script(tmp_path: Path, template: str, line: str, goes_on: bool) -> None:
    (tmp_path / "set-up.sh").write_text("false\ntrue\n")  # commands inside a sourced file may fail
    lines = f"['{line}', 'echo set up']"
    text = script(tmp_path, f"slurm={{template: {template}, time: 9, setup: {lines}}}")
    command = r"('[^'\n]*|\S*)mpidata'? run"  # in quotes if its path has a blank
    (tmp_path / "script").write_text(re.sub(command, "echo run", text))
    done = subprocess.run(["bash", "script"], cwd=tmp_path, capture_output=True, text=True)
    assert ("set up\n" in done.stdout) == goes_on
    assert goes_on or (done.returncode == 1 and f"this line of slurm.setup failed: {line}." in done.stderr)


def _takes_signals(pid: int) -> bool:
    """Return whether a process handles SIGUSR1 and SIGTERM."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return all(caught >> (number - 1) & 1 for number in (signal.SIGUSR1, signal.SIGTERM))


def told(folder: Path) -> int:
    """Return how many signals the job has received; -1 before it has started."""
    return len((folder / "told").read_text()) if (folder / "told").exists() else -1


@pytest.mark.parametrize(
    ("signals", "status", "requeued"),
    [("USR1", 75, True), ("TERM", 75, False), ("USR1 TERM", 75, False), ("USR1", 1, False), ("", 75, False)],
)
def test_only_a_stop_by_sigusr1_requeues_the_job(tmp_path: Path, signals: str, status: int, requeued: bool) -> None:
    programs = {
        "mpidata": f"""
            told=0
            trap 'told=$((told + 1)); echo >>{tmp_path}/told' USR1 TERM
            touch {tmp_path}/told
            while [ $told -lt {len(signals.split())} ]; do sleep 0.02; done
            exit {status}""",
        "scontrol": f"echo $* >{tmp_path}/requeued",
    }
    for name, lines in programs.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{lines}\n")
        (tmp_path / name).chmod(0o755)
    text = script(tmp_path, "slurm={template: preemptible, time: 9}")
    start = next(line for line in text.splitlines() if " run " in line and "mpidata" in line)
    (tmp_path / "script").write_text(text.replace(start.partition(" run ")[0], f"{tmp_path}/mpidata"))
    path = f"{tmp_path}:{os.environ['PATH']}"
    process = subprocess.Popen(["bash", "script"], cwd=tmp_path, env={**os.environ, "PATH": path, "SLURM_JOB_ID": "41"})
    try:
        for count, name in enumerate(signals.split()):
            wait_until(lambda count=count: told(tmp_path) >= count and _takes_signals(process.pid), alive=process)
            process.send_signal(getattr(signal, f"SIG{name}"))
        assert process.wait(20) == status
    finally:
        process.kill()
    assert (tmp_path / "requeued").exists() == requeued
    assert not requeued or (tmp_path / "requeued").read_text() == "requeue 41\n"


def test_custom_template_is_filled(tmp_path: Path) -> None:
    (tmp_path / "my.sbatch").write_text(
        "#!/bin/bash\n#SBATCH -p {{ queue }}\n{{options}}\nfor i in ${a}; do {{run}}; done\n"
    )
    text = script(tmp_path, "slurm={template: my.sbatch, values: {queue: long}}")
    assert text.startswith("#!/bin/bash\n#SBATCH -p long\nfor i in ${a}; do ") and text.endswith("; done\n")


def test_all_mistakes_of_a_template_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "my.sbatch").write_text("#SBATCH -t {{time}}\n#SBATCH {{optoins}} {{queue}}\n")
    with pytest.raises(LaunchError) as error:
        script(tmp_path, "slurm.template=my.sbatch")
    time, options, queue, known = str(error.value).splitlines()
    assert f"{tmp_path}/my.sbatch, line 1: {{{{time}}}} has no value. Set 'slurm.time'" in time
    assert "line 2: unknown placeholder {{optoins}}. Did you mean 'options'?" in options
    assert "line 2: unknown placeholder {{queue}}. Give it a value with the key slurm.values" in queue
    assert known.startswith("The placeholders that have a value are cpus, folder, ") and "resources" in known
    with pytest.raises(LaunchError, match="no template 'preemptable'.*Did you mean 'preemptible'"):
        script(tmp_path, "slurm.template=preemptable")


def test_template_line_is_dropped_only_if_it_becomes_empty() -> None:
    assert render("a\n{{x}}\n\n{{y}}b", {"x": "", "y": ""}, {}, "t") == "a\n\nb"


def test_submit_command_prints_submits_or_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, run = str(write_job(tmp_path)), CliRunner()
    for name in ("trainer", "solver"):  # so that only sbatch is searched on PATH
        program = tmp_path / f"{name}.sh"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        (tmp_path / "job.yaml").write_text(
            (tmp_path / "job.yaml").read_text().replace(f"sh, {name}.sh", f"./{name}.sh")
        )
    printed = run.invoke(cli.main, ["submit", job, "--print", "--set", "seed=3"])
    assert printed.exit_code == 0 and " --set seed=3 --as " in printed.output
    for name in template_names():
        shown = run.invoke(cli.main, ["submit", "--show-template", name])
        (tmp_path / "copy.sbatch").write_text(shown.output)
        values = ["--set", "slurm.time=5", "--print"]
        whole = run.invoke(cli.main, ["submit", job, *values, "--template", name])
        copied = run.invoke(cli.main, ["submit", job, *values, "--template", "copy.sbatch"])
        assert whole.exit_code == 0 and whole.output == copied.output
    assert run.invoke(cli.main, ["submit"]).exit_code == 2
    missing = run.invoke(cli.main, ["submit", job, "--template", "preemptible"])
    assert missing.exit_code == 2 and "{{time}}" in missing.output
    sbatch = tmp_path / "bin" / "sbatch"
    sbatch.parent.mkdir()
    monkeypatch.setenv("PATH", str(sbatch.parent))
    assert "no sbatch on PATH" in run.invoke(cli.main, ["submit", job]).output
    sbatch.write_text(f'#!/bin/sh\nwhile read -r line; do echo "$line"; done >{tmp_path}/given\necho "41;cluster"\n')
    sbatch.chmod(0o755)
    done = run.invoke(cli.main, ["submit", job, "--set", "seed=3"])
    assert done.output == f"Submitted job as job 41. Its output: {tmp_path}/slurm-41.out\n"
    assert (tmp_path / "given").read_text() == printed.output
    assert run.invoke(cli.main, ["submit", job, "--parsable"]).output == "41;cluster\n"
    (tmp_path / "my.sbatch").write_text("#!/bin/sh\n#SBATCH -J a --output=logs/%x-%j.txt\n{{run}}\n")
    done = run.invoke(cli.main, ["submit", job, "--template", "my.sbatch"])
    assert done.output.endswith(f" Its output: {Path.cwd()}/logs/a-41.txt\n")
    done = run.invoke(cli.main, ["submit", job, "--set", "slurm.options={output: mine.txt}"])
    assert done.output.endswith(f" Its output: {tmp_path}/mine.txt\n")
    (tmp_path / "array.sbatch").write_text("#!/bin/sh\n#SBATCH -a 0-3\n{{run}}\n")
    done = run.invoke(cli.main, ["submit", job, "--template", "array.sbatch"])
    assert done.exit_code == 2 and "All tasks of the array 0-3 would run the same" in done.output
    with monkeypatch.context() as context:
        context.setenv("SBATCH_ARRAY_INX", "1-9")
        assert "the array 1-9 would" in run.invoke(cli.main, ["submit", job]).output
    seeds = '#!/bin/sh\n#SBATCH --array=0-3\n{{run}} --set seed="$SLURM_ARRAY_TASK_ID"\n'
    (tmp_path / "array.sbatch").write_text(seeds)
    assert run.invoke(cli.main, ["submit", job, "--template", "array.sbatch"]).exit_code == 0
    (tmp_path / "file").write_text("")
    for output, why in (
        ("file", "file is not a folder"),
        ("file/runs", "file is not a folder"),
        ("/proc/runs", "no folder can be created in /proc"),
    ):
        done = run.invoke(cli.main, ["submit", job, "--set", f"output={output}"])
        assert done.exit_code == 2 and why in done.output and "'output'" in done.output, done.output
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.TemporaryFile", Mock(side_effect=OSError(errno.EROFS, "Read-only file system")))
        done = run.invoke(cli.main, ["submit", job])
    assert done.exit_code == 2 and "Cannot write" in done.output and "key 'output'" in done.output, done.output
    for says, sentence in (
        ("printf 'odd \\377' >&2; exit 1", "sbatch refused the job: odd \ufffd. See the script"),
        ("kill -9 $$", "sbatch refused the job: SIGKILL. See the script"),
        ("echo", "printed '', which has no job number. Check with squeue"),
        ("echo queue is full", "printed 'queue is full', which has no job number. Check with squeue"),
    ):
        sbatch.write_text(f"#!/bin/sh\n{says}\n")
        refused = run.invoke(cli.main, ["submit", job])
        assert refused.exit_code == 2 and sentence in refused.output
    sbatch.write_text("#!/bin/sh\necho welcome; echo 42\n")
    assert run.invoke(cli.main, ["submit", job, "--parsable"]).stdout == "42\n"
    for template, sentence in (("/dev/zero", "it is not a regular file"), (str(tmp_path), "Is a directory")):
        refused = run.invoke(cli.main, ["submit", job, "--template", template])
        assert refused.exit_code == 2 and f"{sentence}. Key 'slurm.template'." in refused.output
    sbatch.write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2; exit 1\n")
    refused = run.invoke(cli.main, ["submit", job])
    assert refused.exit_code == 2 and "sbatch refused the job: sbatch: error: invalid partition" in refused.output


def test_named_run_is_found_once_it_has_a_plan(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path))
    run = RunFolder(tmp_path / "runs" / "job" / "1")
    run.private.mkdir(parents=True)
    with closing(NamedRun(job, "slurm-7")) as named:
        assert named.run is None
        with pytest.raises(LaunchError, match="Another `mpidata run --as slurm-7` is just starting"):
            NamedRun(job, "slurm-7")
        named.note(run)
    with closing(NamedRun(job, "slurm-7")) as named:
        assert named.run is None  # the run had no plan yet
    run.plan.touch()
    with closing(NamedRun(job, "slurm-7")) as named, closing(NamedRun(job, "slurm-8")) as other:
        assert named.run == run and other.run is None
        named.note(RunFolder(run.path.with_name("elsewhere")))  # a shorter path overwrites a longer one completely
    with pytest.raises(LaunchError, match="'a/b' is not a valid name"):
        NamedRun(job, "a/b")
