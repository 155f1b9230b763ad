"""Bad job files: one message for each mistake, with key, value, fix and line, all at once."""

import json
from pathlib import Path

import pytest
from bad_job_files import GOOD, problems

from mpidata.config import load_job
from mpidata.errors import JobFileError


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("buffer.capcity=3", "unknown key 'buffer.capcity'. Did you mean 'capacity'?"),
        ("naem=x", "unknown key 'naem'. Did you mean 'name'?"),
        ("capacity=3", "unknown key 'capacity'. It belongs at 'buffer.capacity'."),
        (
            "trainers.x=3",
            "unknown key 'trainers.x'. The keys here are ranks, program, ranks_per_replica, spares, per_node, ",
        ),
        ("trainers.seed=3", "unknown key 'trainers.seed'. It belongs at 'seed'."),
        ("fields.u.at_most=3", "unknown key 'fields.u.at_most'. It belongs at 'lengths.<name>.at_most'."),
        ("fields.u.shpae=[3]", "unknown key 'fields.u.shpae'. Did you mean 'shape'?"),
        (
            "buffer.policy=resevoir",
            "'buffer.policy' is 'resevoir'. It must be one of fifo, firo, reservoir. Did you mean",
        ),
        ("parameters.sampler=Sobol", "'parameters.sampler' is 'Sobol'. Did you mean 'sobol'?"),
        ("parameters.sampler=magic", "'parameters.sampler' is 'magic'. Choose one of uniform, "),
        ("parameters.sampler='a b:C'", "'parameters.sampler' is 'a b:C'. Write it as \"module:name\""),
        ("solvers={program: [./heat2d], carried: {}, ranks_per_group: 2}", "it is the number of carriers."),
        ("solvers={program: [./heat2d], carried: {ranks: 1}, start: spawn}", "'solvers.start' is 'spawn', but carried"),
        (
            "solvers={program: [./heat2d], lifetime: simulation, carried: {time: t}, case: {folder: .}, "
            "output: {files: '*.npy'}}",
            "'solvers.carried.time' is for ADIOS2, but 'solvers.output' reads files. Remove it.",
        ),
        ("solvers={program: [./heat2d], carried: {ranks: 2, launcher: none}}", "but there are 2. Write 'auto'"),
        (
            "solvers={program: [./heat2d], carried: {launcher: [env, '{rank}']}}",
            "but there is no 'rank'. Did you mean 'ranks'?",
        ),
        (
            "solvers={program: [./heat2d], carried: {launcher: [env, '{ranks']}}",
            "Write '{ranks}', and '{{' for a brace.",
        ),
        (
            "solvers={program: [./heat2d], carried: {launcher: []}}",
            "'solvers.carried.launcher' is []. It must be a list",
        ),
        ("solvers={program: [./heat2d], carried: {launcher: mpirun}}", "It must be auto, none, or a list of texts"),
        (
            "solvers={program: [./heat2d], carried: {launcher: [./no.sh]}}",
            "'solvers.carried.launcher' begins with './no.sh', but {folder}/no.sh does not exist. Correct the name",
        ),
        (
            "solvers={program: [./heat2d], carried: {launcher: [./train.py]}}",
            "begins with './train.py', which is not executable. Run `chmod +x {folder}/train.py`.",
        ),
        ("solvers={function: 'json:loads', carried: {}}", "'solvers.carried' needs 'solvers.program'."),
        ("trainers.ranks=two", "'trainers.ranks' is 'two'. It must be a whole number, at least 1."),
        ("trainers.ranks=true", "'trainers.ranks' is true. It must be a whole number, at least 1."),
        ("trainers.ranks=2.0", "'trainers.ranks' is 2.0. It must be a whole number, at least 1."),
        ("trainers.ranks=", "'trainers.ranks' is empty. It must be a whole number, at least 1."),
        ("trainers.ranks=0", "'trainers.ranks' is 0. It must be a whole number, at least 1."),
        ("solvers.in_flight=0", "'solvers.in_flight' is 0. It must be a whole number, at least 1, at most 1024."),
        ("seed=-1", "'seed' is -1. It must be a whole number, at least 0, at most 9223372036854775807."),
        (f"seed={2**63}", "It must be a whole number, at least 0, at most 9223372036854775807."),
        (f"seed={10**26}", "It must be a whole number, at least 0, at most 9223372036854775807."),
        ("buffer.capacity=1000000000000", "a size like 2 GiB, or a whole number, at least 1, at most 2147483647."),
        (f"parameters.count={10**21}", "It must be a whole number, at least 1, at most 2147483647."),
        (f"solvers.tolerate={2**31}", "It must be a whole number, at least 0, at most 2147483647."),
        ("name=a/b", "'name' is 'a/b'. Use letters, digits, "),
        ("name=..", "'name' is '..'. Use letters, digits, "),
        ("trainers=", "'trainers' is empty. It must be a mapping. For instance: trainers: {program: "),
        ("trainers.program=python train.py", "'trainers.program' is the text 'python train.py'. Write a list"),
        ("trainers.program=[]", "'trainers.program' is []. It must be a list of texts. For instance: program: "),
        ('trainers.program=["a\\nb"]', "'trainers.program[0]' is 'a\\nb'. An argument cannot hold a newline"),
        ("solvers.function=heat", "'solvers.function' is 'heat'. Write it as \"module:name\""),
        ("parameters.count=", "missing key 'parameters.count'. Add the number of simulations"),
        ("parameters.space={}", "missing key 'parameters.space'. Add it"),
        ("parameters.space.alpha=[1, 1]", "'parameters.space.alpha' is [1.0, 1.0]. The first number must be less"),
        ("parameters.space.alpha=[1, 2, 3]", "'parameters.space.alpha' has 3 numbers. Give two: [low, high]."),
        ("parameters.space.alpha=[1, .nan]", "'parameters.space.alpha[1]' is NaN. It must be a finite number."),
        ("parameters.space.alpha=[1, .inf]", "'parameters.space.alpha[1]' is Infinity. It must be a finite number."),
        (
            "parameters.space.alpha=3",
            "'parameters.space.alpha' is 3. It must be a list: [low, high]. For instance: alpha: [0.01, 0.1]. (--set",
        ),
        ("parameters.space.alpha=", "'parameters.space.alpha' has no range. Write it as [low, high] for uniform."),
        ("parameters.space.alpha={values: [1]}", "'parameters.space.alpha' has no range. Write it as [low, high]"),
        ("parameters.space.alpha={integers: [3, 1]}", "'parameters.space.alpha.integers' is [3, 1]. The first number"),
        ("parameters.space.alpha={integers: [1, 2.5]}", "integers[1]' is 2.5. It must be a whole number."),
        ("parameters.space.alpha={choices: [2, 2]}", "'parameters.space.alpha.choices' has the value 2 twice."),
        ("parameters.space.alpha={choices: [1], value: 3}", "'parameters.space.alpha' must have one key: integers, "),
        ("parameters.space.alpha={}", "'parameters.space.alpha' must have one key"),
        (
            "parameters.space.alpha={choice: [1]}",
            "unknown key 'parameters.space.alpha.choice'. Did you mean 'choices'?",
        ),
        ("parameters={count: 1, sampler: breed, space: {a: }}", "'parameters.space.a' has no range."),
        (
            "parameters.breed={start: 1.5}",
            "'parameters.breed.start' is 1.5. It must be a number, at least 0, at most 1",
        ),
        ("parameters.space.2b=[1, 2]", "'parameters.space.2b': '2b' is not a name."),
        ("parameters.space.lambda=[1, 2]", "'parameters.space.lambda': 'lambda' is a Python keyword"),
        ("parameters.space.simulation=[1, 2]", "a parameter cannot be named 'simulation'"),
        ("parameters.sampler=file", "missing key 'parameters.path'. Add the table to read"),
        ("fields.u.shape=[0]", "'fields.u.shape[0]' is 0. It must be at least 1."),
        ("fields.u.shape=[1.5]", "'fields.u.shape[0]' is 1.5. It must be a whole number."),
        ("fields.u.shape=4", "'fields.u.shape' is 4. It must be a list of 0 to 6 whole numbers, each at least 1."),
        ("fields.u.shape=[1,1,1,1,1,1,1]", "'fields.u.shape' is [1, 1, 1, 1, 1, 1, 1]. It must be a list of 0 to 6"),
        ("fields.u.shape=[65536, 32768]", "'fields.u.shape' is [65536, 32768], more than 2147483647 elements."),
        (
            "fields.u.dtype=float",
            "'fields.u.dtype' is 'float'. It must be one of float32, float64, int32, int64, uint8, int8, int16, "
            "uint16, uint32, uint64, bool, float16, bfloat16, complex64, complex128.",
        ),
        ("fields.time={shape: []}", "'fields.time': a field cannot be named 'time'"),
        ("fields.parameters={shape: []}", "'fields.parameters': a field cannot be named 'parameters'"),
        ("fields={}", "'fields' is {}. It must be a mapping from name to field, at least one."),
        ("fields.v=3", "'fields.v' is 3. It must be a mapping, for instance {shape: [64, 64]}."),
        ("solvers.retries=-1", "'solvers.retries' is -1. It must be a whole number, at least 0."),
        ("solvers.retries=1.5", "'solvers.retries' is 1.5. It must be a whole number, at least 0."),
        ("solvers.retires=1", "unknown key 'solvers.retires'. Did you mean 'retries'?"),
        ("solvers.timeout_s=0", "'solvers.timeout_s' is 0. It must be a number, more than 0."),
        ("solvers.timeout_s=true", "'solvers.timeout_s' is true. It must be a number, more than 0."),
        ("solvers.timeout_s=.inf", "'solvers.timeout_s' is Infinity. It must be a finite number."),
        ("solvers.timeout_s=", "'solvers.timeout_s' is empty. It must be a number, more than 0."),
        ("checkpoint=300", "'checkpoint' is 300. It must be a mapping."),
        ("checkpoint.every_s=-0.5", "'checkpoint.every_s' is -0.5. It must be a number, at least 0."),
        ("checkpoint.every_s=5 min", "'checkpoint.every_s' is '5 min'. It must be a number, at least 0."),
        ("checkpoint.within_s=0", "'checkpoint.within_s' is 0. It must be a number, more than 0."),
        ("checkpoint.keep=0", "'checkpoint.keep' is 0. It must be a whole number, at least 1."),
        ("checkpoint.evry_s=3", "unknown key 'checkpoint.evry_s'. Did you mean 'every_s'?"),
        ("checkpoint.in_flight=3", "unknown key 'checkpoint.in_flight'. It belongs at 'solvers.in_flight'."),
        ("checkpoint.x=3", "unknown key 'checkpoint.x'. The keys here are every_s, keep, within_s."),
        ("keep=3", "unknown key 'keep'. It belongs at 'checkpoint.keep'."),
        ("buffer={policy: firo, capacity: 5, watermark: 5}", "'buffer.watermark' is 5. It must be less than"),
        ("buffer={capacity: 5, watermark: 6}", "'buffer.watermark' is 6. It must be at most 'buffer.capacity', 5"),
        ("validation.count=-1", "'validation.count' is -1. It must be a whole number, at least 0."),
        (
            "launch.with=mpirum",
            "'launch.with' is 'mpirum'. It must be one of auto, mpirun, srun. Did you mean 'mpirun'?",
        ),
        ("launch.options=--verbose", "'launch.options' is the text '--verbose'. Write a list"),
        ("trainers.per_node=0", "'trainers.per_node' is 0. It must be a whole number, at least 1."),
        ("slurm.time=1:0", "'slurm.time' is '1:0'. Write minutes, hours:minutes:seconds, or"),
        ("slurm.nods=1", "unknown key 'slurm.nods'. Did you mean 'nodes'?"),
        ("slurm.options={--qos: a}", "'slurm.options.--qos' is not an option of sbatch. Write it without dashes"),
        ("slurm.options={time: 5}", "'slurm.options.time' has a key of its own: set 'slurm.time' instead."),
        ("slurm.options={nodes: 5}", "'slurm.options.nodes' is set by mpidata. Remove it, or"),
        ("slurm.options={mem: [1]}", "'slurm.options.mem' must be a text, a number, true or false."),
        ("slurm.setup=module load gcc", "'slurm.setup' is the text 'module load gcc'. Write a list"),
        ("slurm.values={a-b: 1}", "'slurm.values.a-b': 'a-b' is not a name. Use letters, digits and underscores."),
        ("launch.fault_tolerance=1", "'launch.fault_tolerance' is 1. It must be one of auto, true, false."),
        ("launch.fault_tolerance=", "'launch.fault_tolerance' is None. It must be one of auto, true, false."),
        ("record.when_slow=wait", "'record.when_slow' is 'wait'. It must be one of slow_down, skip."),
        ("record.every=0", "'record.every' is 0. It must be a whole number, at least 1."),
        ("solvers.start=span", "'solvers.start' is 'span'. It must be one of split, spawn. Did you mean 'spawn'?"),
        ("solvers.lifetime=simulation", "'solvers.lifetime' is 'simulation', which needs 'start: spawn'."),
        ("solvers.spares=-1", "'solvers.spares' is -1. It must be a whole number, at least 0."),
        ("solvers.tolerate=all", "'solvers.tolerate' is 'all'. It must be a whole number, at least 0."),
        ("solvers.hosts=node3", "'solvers.hosts' is the text 'node3'. Write a list"),
        ("solvers.hosts=[a b]", "'solvers.hosts[0]' is 'a b'. Write the name of a host"),
        ("solvers.hosts=[]", "'solvers.hosts' is []. It must be a list of texts."),
        ("launch.with_=auto", "unknown key 'launch.with_'. Did you mean 'with'?"),
        ("folder=nowhere", "/nowhere', which is not a folder. Correct or remove it."),
        ("buffer", "'--set buffer' is not a setting. Write key=value"),
        ("seed=[", "'[' is not valid YAML, so 'seed' cannot be set."),
        ("parameters.count.x=1", "'parameters.count' is 8, so 'parameters.count.x' cannot be set."),
    ],
)
def test_each_mistake_gives_one_message(folder: Path, setting: str, sentence: str) -> None:
    (line,) = problems(folder, GOOD, setting)
    assert line.startswith("job.yaml: ") and sentence.replace("{folder}", str(folder)) in line
    assert line.endswith(f"(--set {setting})") or "=" not in setting or "missing key" in line


@pytest.mark.parametrize("word", ["<", ">", ">>", "<<", "|", "||", "&&", "&", ";", "2>", "2>&1", "&>", "<in", ">out"])
@pytest.mark.parametrize("key", ["solvers.program", "trainers.program", "solvers.carried.launcher"])
def test_shell_operators_in_a_command_are_refused(folder: Path, key: str, word: str) -> None:
    setting = f"{key}=[env, a b, {json.dumps(word)}]"
    more = ("solvers.carried.ranks=1",) if "carried" in key else ()
    (line,) = problems(folder, GOOD, *more, setting)
    assert f"'{key}[2]' is {word!r}, which is for a shell, but no shell reads this command. Write a script, or" in line
    assert f"[sh, -c, {json.dumps(f'env {chr(39)}a b{chr(39)} {word}')}]." in line


@pytest.mark.parametrize(
    "word", ["a<b", "a|b", "x > 0", "3<5", "--a=>b", "a;", "-", "2", "a&b", "print(1 > 0)", "(a|b)"]
)
def test_shell_characters_within_a_word_are_accepted(folder: Path, word: str) -> None:
    (folder / "job.yaml").write_text(GOOD)
    job = load_job(folder / "job.yaml", [f"solvers.program=[env, {json.dumps(word)}]"])
    assert job.solvers.program == ("env", word)


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("{alhpa}", "'solvers.program[1]' is '{alhpa}', but there is no parameter 'alhpa'. Did you mean 'alpha'?"),
        ("{x}", "but there is no parameter 'x'. The names are simulation, alpha."),
        ("a{", "'solvers.program[1]' is 'a{'. Write '{name}' for the value of a parameter, and '{{' for a brace."),
        ("{{a}", "'solvers.program[1]' is '{{a}'. Write '{name}' for the value of a parameter, and '}}' for a brace."),
    ],
)
def test_invalid_placeholders_in_arguments_are_refused(folder: Path, argument: str, sentence: str) -> None:
    setting = f"solvers={{program: [./heat2d, '{argument}'], start: spawn, lifetime: simulation}}"
    (line,) = problems(folder, GOOD, setting)
    assert sentence in line


@pytest.mark.parametrize(
    ("solvers", "space", "sentence"),
    [
        ("{function: 'json:loads'}", "{a: [0, 1], group: [0, 1]}", "'group' is the function's group. Rename"),
        (
            "{program: [./heat2d], carried: {}}",
            "{alpha: [0, 1], Alpha: [0, 1]}",
            "'parameters.space.Alpha' and 'alpha' are both MPIDATA_PARAM_ALPHA to the program. Rename one of them.",
        ),
        (
            "{program: [./heat2d], carried: {}, lifetime: simulation, case: {folder: case, fill: [in.txt]}}",
            "{ranks: [0, 1]}",
            "'ranks' is what a filled file can name. Rename the parameter.",
        ),
    ],
)
def test_conflicting_parameter_names_are_refused(folder: Path, solvers: str, space: str, sentence: str) -> None:
    (folder / "case").mkdir()
    (folder / "case" / "in.txt").write_text("{{ranks}}")
    (line,) = problems(folder, GOOD, f"solvers={solvers}", f"parameters.space={space}")
    assert sentence in line


def test_aliases_that_expand_to_a_huge_file_are_refused(folder: Path) -> None:
    levels = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 11))
    (folder / "job.yaml").write_text(f"a0: &a0 [1]\n{levels}\n")
    with pytest.raises(JobFileError, match="more than 1000000 values"):
        load_job(folder / "job.yaml")


def test_all_mistakes_are_reported_together_in_file_order(folder: Path) -> None:
    text = """\
trainers: {ranks: 0, program: [./nothing]}
solvers: {program: [./heat2d], function: "a:b", groups: x, start: span}
parameters:
  count: 8
  sampler: sobul
  space: {alpha: [2, 1], b: [1, x]}
fields: {u: {shap: []}}
buffer: {policy: firo, capacity: 3, watermark: 3}
bufer: 1
"""
    lines = problems(folder, text, "validation.count=-1")
    expected = [
        ("'trainers.ranks' is 0", "(line 1)"),
        ("/nothing does not exist", "(line 1)"),
        ("'solvers.groups' is 'x'", "(line 2)"),
        ("'solvers.start' is 'span'", "(line 2)"),
        ("there is no module 'a'", "(line 2)"),
        ("'parameters.sampler' is 'sobul'", "(line 5)"),
        ("'parameters.space.alpha' is [2.0, 1.0]", "(line 6)"),
        ("'parameters.space.b[1]' is 'x'. It must be a number.", "(line 6)"),
        ("missing key 'fields.u.shape'", "(line 7)"),
        ("unknown key 'fields.u.shap'", "(line 7)"),
        ("'buffer.watermark' is 3", "(line 8)"),
        ("unknown key 'bufer'. Did you mean 'buffer'?", "(line 9)"),
        ("'validation.count' is -1", "(--set validation.count=-1)"),
    ]
    assert len(lines) == len(expected)
    for line, (part, where) in zip(lines, expected, strict=True):
        assert part in line and line.endswith(where)


def test_empty_mapping_reports_the_four_missing_sections(folder: Path) -> None:
    lines = problems(folder, "{}")
    assert [line.split("'")[1] for line in lines] == ["trainers", "solvers", "parameters", "fields"]


def test_fields_without_solvers_and_zero_loaders_are_refused(folder: Path) -> None:
    lines = problems(folder, "trainers: {program: [python, train.py]}\nloaders: {}\nfields: {u: {shape: [4]}}\n")
    assert lines == [
        "job.yaml: 'fields' is for the samples of solvers, but there are none. Remove it, or add 'solvers'. (line 3)"
    ]
    (line,) = problems(folder, GOOD, "loaders={ranks: 0}")
    assert "'loaders.ranks' is 0. It must be a whole number, at least 1." in line


def test_a_grid_needs_values(folder: Path) -> None:
    (line,) = problems(folder, GOOD, "parameters.sampler=grid")
    assert "'parameters.space.alpha' has no list of values. Write it as {values: [...]} for a grid." in line
    (line,) = problems(folder, GOOD, "parameters={sampler: grid, space: {a: {values: [1, 2, 1]}}}")
    assert "'parameters.space.a.values' has the value 1 twice. Remove one of them." in line


def test_a_solver_needs_a_program_or_a_function_but_not_both(folder: Path) -> None:
    assert "missing key 'solvers.program'" in problems(folder, GOOD, "solvers={groups: 2}")[0]
    (folder / "heat.py").write_text("def simulate(): yield")
    assert "are both given. Remove one of them." in problems(folder, GOOD, "solvers.function=heat:simulate")[0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it holds nothing. Begin with"),
        ("- 1", "it holds [1], not keys."),
        ("a: [1", "not valid YAML: expected ',' or ']', but got '<stream end>'. Correct it (line 1, column 6)."),
        ("a: 1\n--- \nb: 1", "not valid YAML: "),
        ("a: !!python/name:os.system x", "not valid YAML: could not determine a constructor"),
        ("a: &x [*x]", "not valid YAML: a value that contains itself"),
        ("a: \x01", "not valid YAML: "),
        ("[" * 5000, "not valid YAML: "),
    ],
)
def test_content_that_is_not_a_job_file_is_refused(folder: Path, text: str, sentence: str) -> None:
    (line,) = problems(folder, text)
    assert line.startswith(f"job.yaml: {sentence}")


def test_duplicate_key_is_refused(folder: Path) -> None:
    lines = problems(folder, GOOD + "seed: 1\nseed: 2\n")
    assert lines == ["job.yaml: the key 'seed' occurs twice, in lines 7 and 8. Remove one of them. (line 8)"]


def test_keys_that_are_not_strings_are_refused(folder: Path) -> None:
    (line,) = problems(folder, GOOD + "1: 2\n")
    assert "unknown key '1'" in line
    (line,) = problems(folder, GOOD.replace("{alpha:", "{1: [0, 1], alpha:"))
    assert "'parameters.space.1': '1' is not a name." in line
    (line,) = problems(folder, GOOD + "? [1, 2]\n: 2\n")
    assert "job.yaml: not valid YAML: found unhashable key" in line


def test_unreadable_job_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        JobFileError, match="cannot read .*none.yaml: No such file or directory. Give the path of a job"
    ):
        load_job(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9")
    with pytest.raises(JobFileError, match="latin.yaml: not UTF-8 at byte 9"):
        load_job(tmp_path / "latin.yaml")
