"""The parameters in the report are those of the job file, whatever other columns the table has."""

from pathlib import Path

from made_run import MadeRun

from mpidata.reporting.reading.run_snapshot import look_at


def test_columns_after_the_parameters_are_not_parameters(tmp_path: Path) -> None:
    run = MadeRun(tmp_path)
    lines = [
        "simulation,alpha,beta,weight,rule,parent,state",
        "1,0.5,2.0,1.5,sobol,-1,cancelled",
        "0,0.25,1.0,1,sobol,-1,",
    ]
    (run.path / "parameters.csv").write_text("\n".join([*lines, ""]))
    look = look_at(run.path)
    assert look.names == ["alpha", "beta"] and look.parameters.tolist() == [[0.25, 1.0], [0.5, 2.0]]


def test_parameters_may_have_the_names_of_other_columns(tmp_path: Path) -> None:
    run = MadeRun(tmp_path)
    job = run.path / "job.yaml"
    job.write_text(
        job.read_text().replace("{alpha: [0, 1], beta: [1, 2]}", "{rule: [0, 9], alpha: [0, 9], state: [0, 9]}")
    )
    (run.path / "parameters.csv").write_text("simulation,rule,alpha,state\n0,1,2,3\n1,4,5,6\n")
    look = look_at(run.path)
    assert look.names == ["rule", "alpha", "state"] and look.parameters.tolist() == [[1, 2, 3], [4, 5, 6]]
