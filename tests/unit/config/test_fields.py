"""Invalid lengths and indices in the fields of a job file."""

from pathlib import Path

import pytest

from mpidata.config import load_job
from mpidata.errors import JobFileError
from mpidata.run.plan import Field, Length, Plan

JOB = """
trainers: {program: ["true"]}
solvers: {program: ["true"]}
parameters: {count: 4, space: {alpha: [0, 1]}}
fields:
  xy: {shape: [nodes, 2]}
  ends: {shape: [2, edges], dtype: int64, index: nodes, base: 1}
  mean: {shape: []}
lengths: {nodes: {at_most: 6000}}
"""


def load(folder: Path, *overrides: str) -> Plan:
    (folder / "job.yaml").write_text(JOB)
    return Plan.of(load_job(str(folder / "job.yaml"), overrides), folder / "run")


def test_plan_separates_constants_from_step_fields(tmp_path: Path) -> None:
    plan = load(tmp_path, "fields.xy.per=simulation", "fields.ends.per=simulation")
    assert [field.name for field in plan.constants] == ["xy", "ends"]
    assert [field.name for field in plan.step_fields] == ["mean"]
    assert Plan.parse(plan.text()) == plan and "constant xy\n" in plan.text()


def test_plan_contains_lengths_and_indices(tmp_path: Path) -> None:
    plan = load(tmp_path)
    assert plan.lengths == (Length("nodes", 6000), Length("edges"))
    ends = Field("ends", "int64", (2, "edges"), "nodes", 1)
    assert plan.fields == (Field("xy", "float32", ("nodes", 2)), ends, Field("mean", "float32", ()))
    assert Plan.parse(plan.text()) == plan
    assert load(tmp_path, "fields.xy.optional=true", "record={path: samples}").record_path == tmp_path / "samples"
    assert ends.extents({"edges": 7}) == (2, 7) and (ends.row, ends.nbytes) == (2, 16)


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("fields.xy.shape=[nodes, edges]", "'fields.xy.shape' has the names nodes and edges. Only one dimension"),
        ("fields.xy.shape=[2, no such]", "'fields.xy.shape[1]': 'no such' is not a name."),
        ("fields.xy.shape=[time]", "'fields.xy.shape[0]': a field cannot be named 'time'"),
        ("lengths.node={}", "'lengths.node': no field has this length. Did you mean 'nodes'?"),
        ("lengths.nodes.at_most=0", "'lengths.nodes.at_most' is 0. It must be a whole number, at least 1."),
        ("fields.nodes={shape: []}", "'fields.nodes': in a batch 'nodes' is a length. Rename the field or the length."),
        ("fields.edges_offsets={shape: []}", "in a batch 'edges_offsets' is the offsets of 'edges'."),
        ("fields.v={shape: [nodes_offsets]}", "the length 'nodes_offsets' is the offsets of 'nodes' in a batch."),
        (
            "fields.ends.index=node",
            "'fields.ends.index' is 'node', which is not a length of any field. Did you mean 'nodes'?",
        ),
        ("fields.ends.dtype=float32", "'fields.ends.index': indices are int32 or int64, but the field is float32."),
        ("fields.mean={shape: [2], dtype: int64, index: nodes}", "the field's own shape [2] has no length."),
        ("fields.mean={shape: [2], base: 1}", "'fields.mean.base' is only for indices. Give 'index', or remove it."),
        ("fields.ends.statistics=true", "'fields.ends.statistics' is true, but indices have no statistics."),
        ("samples.statistics={ends: 0}", "the field has no statistics, because indices have none. Remove it."),
        ("samples.statistics={xy: 0}", "'samples.statistics.xy' is 0, whose length differs between samples."),
        (
            "fields.ends.per=simulation",
            "'fields.ends' is put once per simulation, but is an index into 'nodes', put in each step.",
        ),
        (
            "fields={u: {shape: [2], per: simulation}}",
            "'fields.u.per': all fields are put once per simulation, none in each step.",
        ),
        ("fields.xy.per=once", "'fields.xy.per' is 'once'. It must be one of step, simulation."),
        ("solvers.carried={ranks: 1}", "'lengths.edges.at_most' is missing: the memory of a carried program is fixed."),
    ],
)
def test_invalid_lengths_and_indices_are_refused(tmp_path: Path, key: str, sentence: str) -> None:
    with pytest.raises(JobFileError) as raised:
        load(tmp_path, key)
    assert sentence in str(raised.value)
