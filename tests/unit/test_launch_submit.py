"""Batch scripts, and what is wrong with a template. Needs no Slurm."""

import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from mpidata import cli
from mpidata.config import load_job
from mpidata.errors import LaunchError
from mpidata.launch.begun import Begun
from mpidata.launch.submit import batch_script
from mpidata.launch.template import render, template_names
from mpidata.run_folder import RunFolder

sys.path.insert(0, str(Path(__file__).parent))
from launch_job import write_job  # noqa: E402


def script(folder: Path, *overrides: str) -> str:
    return batch_script(load_job(write_job(folder), overrides), overrides)


def directives(text: str) -> list[str]:
    return [line[len("#SBATCH ") :] for line in text.splitlines() if line.startswith("#SBATCH ")]


def test_a_homogeneous_job(tmp_path: Path) -> None:
    text = script(tmp_path, "slurm.options={partition: cpu, exclusive: true, requeue: false, comment: a b}")
    common = ["--job-name=job", f"--chdir={tmp_path}", "--output=slurm-%j.out"]
    assert directives(text) == [*common, "--ntasks=8", "--partition=cpu", "--exclusive", '--comment="a b"']
    assert text.startswith("#!/bin/bash\n")
    assert text.splitlines()[-1].endswith(f"mpidata run {tmp_path}/job.yaml --set '{_last_set(text)}'")
    text = script(tmp_path, "slurm.nodes=3", "trainers.per_node=1", "trainers.gpus_per_rank=2")
    assert directives(text)[3:] == ["--nodes=3", "--ntasks-per-node=3", "--gpus-per-node=2"]


def _last_set(text: str) -> str:
    return text.splitlines()[-1].partition("--set '")[2].rstrip("'")


def test_a_heterogeneous_job(tmp_path: Path) -> None:
    options = "slurm={template: heterogeneous, options: {account: a}, trainer_options: {partition: gpu}, nodes: 2}"
    text = script(tmp_path, options, "trainers.gpus_per_rank=1", "trainers.per_node=1")
    first, second = (directives(half) for half in text.split("#SBATCH hetjob\n"))
    assert first[3:] == ["--nodes=2", "--ntasks-per-node=2", "--gpus-per-node=1", "--account=a", "--partition=gpu"]
    assert second == ["--nodes=2", "--ntasks-per-node=2", "--account=a"]
    assert text.rstrip().endswith("--restarts 3")


def test_a_preemptible_job(tmp_path: Path) -> None:
    text = script(tmp_path, "slurm={template: preemptible, time: 1:00:00, setup: [module load gcc]}")
    found = directives(text)
    assert {"--time=1:00:00", "--requeue", "--signal=B:USR1@90", "--open-mode=append"} <= set(found)
    assert "\nmodule load gcc\n" in text
    assert "--signal=B:USR1@40" in script(
        tmp_path, "slurm={template: preemptible, time: 5}", "checkpoint={within_s: 9.5}"
    )


def test_a_template_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "my.sbatch").write_text(
        "#!/bin/bash\n#SBATCH -p {{ queue }}\n{{options}}\nfor i in ${a}; do {{run}}; done\n"
    )
    text = script(tmp_path, "slurm={template: my.sbatch, values: {queue: long}}")
    assert text.startswith("#!/bin/bash\n#SBATCH -p long\nfor i in ${a}; do ") and text.endswith("; done\n")


def test_what_is_wrong_with_a_template_is_said_at_once(tmp_path: Path) -> None:
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


def test_a_line_goes_only_where_nothing_is_left_of_it() -> None:
    assert render("a\n{{x}}\n\n{{y}}b", {"x": "", "y": ""}, {}, "t") == "a\n\nb"


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, run = str(write_job(tmp_path)), CliRunner()
    for name in ("trainer", "solver"):  # so that nothing but sbatch is looked for on PATH
        program = tmp_path / f"{name}.sh"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        (tmp_path / "job.yaml").write_text(
            (tmp_path / "job.yaml").read_text().replace(f"sh, {name}.sh", f"./{name}.sh")
        )
    printed = run.invoke(cli.main, ["submit", job, "--print", "--set", "seed=3"])
    assert printed.exit_code == 0 and printed.output.endswith("job.yaml --set seed=3\n")
    for name in template_names():
        shown = run.invoke(cli.main, ["submit", "--show-template", name])
        (tmp_path / "copy.sbatch").write_text(shown.output)
        values = ["--set", "slurm.time=5", "--print"]
        whole = run.invoke(cli.main, ["submit", job, *values, "--template", name])
        copied = run.invoke(cli.main, ["submit", job, *values, "--template", "copy.sbatch"])
        assert whole.exit_code == 0 and whole.output == copied.output
    assert run.invoke(cli.main, ["submit"]).exit_code == 2
    missing = run.invoke(cli.main, ["submit", job, "--template", "preemptible"])
    assert missing.exit_code == 2 and "{{time}}" in missing.stderr
    sbatch = tmp_path / "bin" / "sbatch"
    sbatch.parent.mkdir()
    monkeypatch.setenv("PATH", str(sbatch.parent))
    assert "no sbatch on PATH" in run.invoke(cli.main, ["submit", job]).stderr
    sbatch.write_text(f'#!/bin/sh\nwhile read -r line; do echo "$line"; done >{tmp_path}/given\necho "41;cluster"\n')
    sbatch.chmod(0o755)
    done = run.invoke(cli.main, ["submit", job, "--set", "seed=3"])
    assert done.output == f"Submitted job as job 41. Its output: {tmp_path}/slurm-41.out\n"
    assert (tmp_path / "given").read_text() == printed.output
    sbatch.write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2; exit 1\n")
    refused = run.invoke(cli.main, ["submit", job])
    assert refused.exit_code == 2 and "sbatch refused the job: sbatch: error: invalid partition" in refused.stderr


def test_a_run_that_was_begun(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path))
    run = RunFolder(tmp_path / "runs" / "job" / "1")
    run.private.mkdir(parents=True)
    with closing(Begun(job, "slurm-7")) as begun:
        assert begun.run is None
        with pytest.raises(LaunchError, match="Another `mpidata run --as slurm-7` is just starting"):
            Begun(job, "slurm-7")
        begun.note(run)
    with closing(Begun(job, "slurm-7")) as begun:
        assert begun.run is None  # it had nothing yet
    run.plan.touch()
    with closing(Begun(job, "slurm-7")) as begun, closing(Begun(job, "slurm-8")) as other:
        assert begun.run == run and other.run is None
        begun.note(RunFolder(run.path.with_name("elsewhere")))  # a shorter path leaves nothing of a longer one
    with pytest.raises(LaunchError, match="'a/b' is no name"):
        Begun(job, "a/b")
