"""The committed reference page matches the models."""

import re
from pathlib import Path

from mpidata.config.job import Job
from mpidata.config.reference import page

PAGE = Path(__file__).parents[3] / "docs" / "job-file.md"


def test_the_committed_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "Run `python -m mpidata.config.reference > docs/job-file.md`."


def test_every_key_documents_its_meaning_and_values() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", page(), re.MULTILINE)
    assert {row[0] for row in rows} >= {*Job.model_fields, "ranks", "in_flight", "shape", "watermark", "with", "values"}
    for _, takes, default, meaning in rows:
        assert "typing" not in takes and "Undefined" not in default and meaning[0].isupper() | (meaning[0] == "`")
