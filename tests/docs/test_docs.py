"""The names, links, options, keys and messages on the pages exist, and their code compiles."""

import difflib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from pages import CONTRIBUTING, PAGES, README, ROOT, Block, blocks, files, prose, spans, table

import mpidata.cli
from mpidata.config import load_job
from mpidata.native.structures import LOSSES
from mpidata.scheduler.figures.summary import Conclusion, Figures
from mpidata.scheduler.simulations import Simulations

HEAT = ROOT / "examples" / "heat2d"
RUNNING = ROOT / "docs" / "running.md"
OPTIONS_OF_OTHERS = {
    *("--batch", "--mem", "--mem-per-cpu", "--mpi", "--oversubscribe", "--requeue", "--signal"),
    *("--bind", "--cap-add", "--pid", "--shm-size"),  # of containers
}
FOLDERS = "benchmarks|c_api|docs|examples|fortran_api|launch|mpidata|packaging|slurm_templates|tests|tools"

C_PRELUDE = """
#include <math.h>
#include <mpidata.h>
extern int64_t rows, columns, row, column;
extern double time, energy, block[];
extern float u[], next[];
extern void advance(const float *, float *);
extern void *stream;
extern void launch_step(float *, void *);
extern void fragment(void);
void fragment(void) {
    do {
        %s
%s
    } while (energy > 0);
}
"""
CPP_PRELUDE = """
#include <mpidata_carried.h>
#include <mpidata.hpp>
struct cell { double pressure, volume; };
extern double mass;
extern std::size_t nodes;
extern int first_row;
extern std::vector<std::array<float, 64>> inner;
extern std::vector<cell> cells;
extern void advance(mpidata::simulation &);
extern mpidata::job job;
extern mpidata::simulation &simulation;
void fragment();
void fragment() {
%s
}
"""
FORTRAN_PRELUDE = """
subroutine fragment(nx, first, last)
  use mpidata
  implicit none (type, external)
  integer :: nx, first, last, group, simulation, step, ierror
  integer, parameter :: MPI_COMM_WORLD = 0
  double precision :: alpha, u(%s)
  %s
end subroutine
"""


def ids(found: list[Block]) -> dict[str, object]:
    return {"argvalues": found, "ids": [str(block) for block in found]}


def test_every_code_block_has_a_tested_language() -> None:
    """Blocks that are not tested are marked `text`."""
    languages = {"c", "cmake", "cpp", "diff", "fortran", "python", "sh", "text", "yaml"}
    assert [str(block) for block in blocks() if block.language not in languages] == []
    nameless = [str(b) for b in blocks("c", "cmake", "cpp", "fortran", "python") if b.name is None]
    assert nameless == [], "say its file's name, or `fragment`, after the language"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_link_targets_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings], target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_in_prose_exist(page: Path) -> None:
    for span in spans(page):
        if re.fullmatch(rf"(?:{FOLDERS})/[\w./*-]*", span):
            assert list(ROOT.glob(span.rstrip("/"))), span


def test_the_page_of_examples_has_all_job_files() -> None:
    page = (ROOT / "docs" / "examples.md").read_text()
    for path in (ROOT / "examples").glob("*/*.yaml"):
        assert f"(../examples/{path.parent.name})" in page and f"mpidata run {path.name}`" in page, path


def test_each_question_is_answered_by_a_folder_and_at_most_three_files() -> None:
    rows = re.findall(r"^\| (.+) \| `([\w/]+)` \| (.+) \|$", CONTRIBUTING.read_text(), re.MULTILINE)
    assert len(rows) > 20
    for what, folder, answer in rows:
        files = re.findall(r"`([\w/]+\.\w+)`", answer)
        assert (ROOT / folder).is_dir() and 1 <= len(files) <= 3, what
        assert [file for file in files if not (ROOT / file).is_file()] == [], what


def test_every_room_is_described() -> None:
    rooms = {
        f"{path.relative_to(ROOT)}" for top in ("mpidata", "launch", "c_api/src") for path in (ROOT / top).iterdir()
    }
    code = {room for room in rooms if any((ROOT / room).glob("*.c")) or (ROOT / room / "__init__.py").exists()}
    assert len(code) > 15
    assert code <= set(table(CONTRIBUTING, "## Where things are"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_and_targets_exist(page: Path) -> None:
    commands = ("run", "check", "config", "doctor", "submit", "scale", "list", "try", "report", "advise", "watch")
    helps = {c: CliRunner().invoke(mpidata.cli.main, [c, "--help"]).output for c in commands}
    known = {command: set(re.findall(r"--[a-z-]+", text)) for command, text in helps.items()}
    code = [*spans(page), *(line for block in blocks("sh", "text", page=page) for line in block.text.splitlines())]
    for line in code:
        for command, rest in re.findall(rf"mpidata ({'|'.join(commands)})\b([^)#]*)", line):
            assert set(re.findall(r"--[a-z-]+", rest)) <= known[command], line
        if line.startswith("--") and line != "--":
            assert re.split("[ =]", line)[0] in set.union(*known.values()) | OPTIONS_OF_OTHERS, line
        for target in re.findall(r"^make ([\w-]+)", line):
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line


@pytest.mark.parametrize("block", **ids(blocks("yaml")))
def test_job_files_load(block: Block, tmp_path: Path) -> None:
    for name, text in {**files(README), **files(block.page)}.items():
        (tmp_path / name).write_text(text)
    for name in ("solver", "heat2d"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "net.pt").write_text("")
    (tmp_path / "case").mkdir()
    for name in ("input.dat", "mesh"):
        (tmp_path / "case" / name).write_text("")
    job = yaml.safe_load(block.text)
    if block.name == "fragment":
        job = {**yaml.safe_load(files(README)["job.yaml"]), **job}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    assert load_job(tmp_path / "job.yaml").world_size >= 2


@pytest.mark.parametrize("block", **ids(blocks("python")))
def test_python_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec")


@pytest.mark.parametrize("block", **ids([block for block in blocks("c") if block.name == "fragment"]))
def test_c_fragments_compile(block: Block, tmp_path: Path, require) -> None:
    shape = "" if "shape[]" in block.text else "const int64_t shape[] = {64, 64}; (void)shape;"
    (tmp_path / "piece.c").write_text(C_PRELUDE % (shape, block.text))
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT / 'c_api' / 'include'}"]
    run(require("mpicc"), *flags, "piece.c", cwd=tmp_path)


@pytest.mark.parametrize("block", **ids([block for block in blocks("cpp") if block.name == "fragment"]))
def test_cpp_fragments_compile(block: Block, tmp_path: Path, require) -> None:
    prelude = CPP_PRELUDE if "simulation" in block.text else "#include <mpidata_carried.h>\n#include <mpidata.hpp>\n%s"
    (tmp_path / "piece.cpp").write_text(prelude % block.text)
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT / 'c_api' / 'include'}"]
    run(require("g++"), *flags, "piece.cpp", cwd=tmp_path)


@pytest.mark.parametrize("block", **ids([block for block in blocks("fortran") if block.name == "fragment"]))
def test_fortran_fragments_compile(block: Block, tmp_path: Path, require) -> None:
    declared = "nx, 64" if "u(1:nx," in block.text else "64"
    (tmp_path / "piece.f90").write_text(FORTRAN_PRELUDE % (declared, block.text))
    module = ROOT / "fortran_api" / "mpidata.f90"
    run(require("gfortran"), "-std=f2018", "-fsyntax-only", module, "piece.f90", cwd=tmp_path)


def run(*command: str | Path, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_readme_diff_matches_the_example() -> None:
    plain, stream = ((HEAT / f"ddp_{name}.py").read_text().splitlines() for name in ("plain", "stream"))
    changes = [line[0] + line[2:] for line in difflib.ndiff(plain, stream) if line[0] in "+-" and line[2:].strip()]
    (shown,) = blocks("diff", page=README)
    assert shown.text.splitlines() == changes
    assert sum(line[0] == "+" for line in changes) <= 5


def test_picture_matches_its_script(tmp_path: Path) -> None:
    run(sys.executable, ROOT / "docs" / "picture.py", tmp_path / "picture.svg", cwd=tmp_path)
    assert (tmp_path / "picture.svg").read_bytes() == (ROOT / "docs" / "picture.svg").read_bytes()


def keys(value: dict[str, object], above: str = "") -> set[str]:
    found: set[str] = set()
    for key, inner in value.items():
        found |= keys(inner, f"{above}{key}.") if isinstance(inner, dict) and inner else {f"{above}{key}"}
    return found


def test_keys_of_summary_and_progress_are_documented() -> None:
    figures, simulations = Figures(trainers=1, capacity=1), Simulations(2, trainers=1)
    conclusion: Conclusion = {"status": "", "error": None, "reason": None, "log": "", "died": True, "in_order": True}
    figures.loaders.update(joined=0, lost=0)
    figures.inference.update(joined=0, lost=0)
    figures.learner.update(joined=0, lost=0)
    figures.excess, figures.draws, figures.span, figures.handed_over = 1, [0, 1], 2, 1
    figures.lost_trainers.append(1)
    figures.run_again = 1
    figures.joined_trainers.append(2)
    figures.retired_trainers.append(1)
    simulations.restore({0: 2}, {}, [], [1])
    figures.losses.add(np.ones(1, LOSSES))
    figures.servers, figures.replicas, figures.record = 1, (1, 2), {"samples": 1, "skipped": 1, "slowed_s": 1}
    figures.loaded.take(0, "epoch", 0)
    figures.loaded.take(0, "untrained", 1)
    for name in ("parts", "counted", "read"):
        figures.loaded.take(0, name, 1)
    summary = figures.summary(Path("/runs/rod/1"), conclusion, simulations, None, 1.0)
    assert set(table(RUNNING, "`summary.json`:")) == keys(summary)
    assert set(table(RUNNING, "`progress.json`:")) == keys(figures.progress(simulations, 1.0))


def test_all_events_are_documented() -> None:
    sources = [path.read_text() for room in ("mpidata", "launch") for path in (ROOT / room).rglob("*.py")]
    written = set(re.findall(r'\b_?(?:note|write|of_numbers)\("(\w+)"', "".join(sources)))
    of_all = set(re.findall(r'_note\(f"\{self.kind\}_(\w+)"', "".join(sources)))
    written |= {f"{kind}_{what}" for kind in ("loader", "inference", "learner") for what in of_all}
    assert set(table(RUNNING, "`events.jsonl`:")) == written


def test_quoted_messages_exist_in_the_code() -> None:
    sources = [
        p
        for d, s in (("mpidata", "py"), ("launch", "py"), ("launch", "c"), ("c_api", "c"))
        for p in (ROOT / d).rglob(f"*.{s}")
    ]
    code = re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text() for path in sources))
    quoted = table(RUNNING, "## Errors and what they mean")
    assert len(quoted) > 10
    assert [words for words in quoted if words not in code] == []


def test_table_of_calls_lists_all_calls_of_the_header() -> None:
    header = (ROOT / "c_api" / "include" / "mpidata.h").read_text()
    calls = set(re.findall(r"^(?:int|const char \*) ?(mpidata_\w+)\(", header, re.MULTILINE))
    assert set(table(ROOT / "docs" / "solver.md", "reference of each")) == calls - {
        "mpidata_strerror",
        "mpidata_last_error",
    }


def test_the_table_of_cpp_has_all_calls() -> None:
    """The table has the calls of mpidata.hpp without their `try_` twins, and the C calls that they replace."""
    header = (ROOT / "c_api" / "include" / "mpidata.hpp").read_text()
    page = (ROOT / "docs" / "cpp.md").read_text().partition("## Arrays")[0]
    twins = set(re.findall(r"\bint try_(\w+)\(", header))
    assert len(twins) > 10
    assert [name for name in twins if not re.search(rf"\.{name}\(", page)] == []
    named = re.search(r"The puts, (.*?) have two forms", re.sub(r"\n \* ", " ", header))
    assert named and set(re.findall(r"\w+", named[1])) - {"and", "question"} == {t for t in twins if "put" not in t}
    calls = set(table(ROOT / "docs" / "solver.md", "reference of each")) - {"mpidata_map_free"}
    assert [name for name in calls if f"`{name}`" not in page] == []


def test_the_constants_named_exist() -> None:
    code = [*(ROOT / "c_api").rglob("*.[chm]*"), *(ROOT / "launch").rglob("*.[ch]"), *(ROOT / "mpidata").rglob("*.py")]
    sources = "\n".join(path.read_text() for path in code)
    named = {word for page in PAGES for span in spans(page) for word in re.findall(r"\bMPIDATA_[A-Z_]+[A-Z]", span)}
    assert len(named) > 5
    assert [word for word in named if word not in sources] == []


def test_batch_keys_and_dataset_arguments_are_documented() -> None:
    from mpidata.trainer.dataset import MPIStreamDataset

    text = (ROOT / "docs" / "training.md").read_text()
    assert {"parameters", "time", "step", "simulation", "weight"} == set(
        table(ROOT / "docs" / "training.md", "## Batches")
    )
    for name in [*inspect.signature(MPIStreamDataset).parameters, "validation", "report", "close", "fields"]:
        assert name in text


def test_speeds_in_the_readme_match_the_benchmark_results() -> None:
    results = (ROOT / "benchmarks" / "results" / "stream.md").read_text().split("## Thousands")[0]

    def measured(row: str) -> list[float]:
        cells = re.findall(r"\| ([\d.]+) \(", re.search(rf"^\| {row} \|.*", results, re.MULTILINE)[0])
        return [float(cells[i]) for i in (1, 2, 4)]  # 8 KB, 64 KB, 1 MB

    rows = {name: measured(name) for name in ("mpidata fifo", "Redis", "ADIOS2 SST", "HDF5 files")}
    text = " ".join(README.read_text().split())
    assert f"reservoir {', '.join(f'{figure:.0f}' for figure in measured('mpidata reservoir'))}; fifo" in text
    for figures in rows.values():
        assert ", ".join(f"{figure:.0f}" for figure in figures) + " |" in text
