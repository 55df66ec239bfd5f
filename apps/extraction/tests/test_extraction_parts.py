"""Parts that need no service: text, passages, highlights, Retry-After, settings, blobs, and the README."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apps.extraction import accuracy, application, settings, vectors
from apps.extraction.analysis import Analysis, Page, Pair, Table
from apps.extraction.chunks import MAX_LENGTH, chunks
from apps.extraction.clean_text import clean, first_line, plain
from apps.extraction.document_store import Passage
from apps.extraction.fields import fields
from apps.extraction.highlights import highlight
from apps.extraction.providers import BlobMissing, ServiceError
from apps.extraction.providers.blobs import LocalBlobs, open_blobs
from apps.extraction.providers.retry_after import retry_after
from apps.extraction.read_pdf import read
from apps.extraction.search import marks, merge_similar, rank, stems
from apps.extraction.tables import DocumentField

from holdfast import InvalidSetting

README = Path(application.__file__).with_name("README.md").read_text("utf-8")
ROOT = Path(application.__file__).parents[2]
NOW = datetime(2031, 4, 17, 12, tzinfo=UTC)


def test_text_is_cleaned_of_characters_that_no_database_stores() -> None:
    assert clean("a\x00b\r\nc\ud800\u202ed\te\u2028f") == "ab\nc\ufffdd\te\nf"
    assert plain("a\x00\n b\u202e  c" + "x" * 50, 8) == "a b cxxx"
    assert first_line("") == ""
    assert first_line("\n one\ntwo") == "one"


def test_passages_have_exact_positions_and_a_maximum_length() -> None:
    text = "A heading\n\n" + "A sentence that says something. " * 60 + "\n\n" + "x" * 3000 + "\n\nThe end."
    found = chunks([Page(number=3, text=text), Page(number=4, text="  \n ")])
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in found)
    assert all(0 < len(chunk.text) <= MAX_LENGTH for chunk in found)
    assert {chunk.page for chunk in found} == {3}
    assert "".join("".join(chunk.text for chunk in found).split()) == "".join(text.split())


def test_hostile_text_is_split_into_passages_quickly() -> None:
    for text in ("." + '"' * 200_000, "\n " * 100_000, "a. " * 100_000, "x" * 1_000_000):
        chunks([Page(number=1, text=text)])


def test_a_repeated_field_is_returned_once_per_page_with_the_higher_confidence() -> None:
    table = Table(page=1, rows=0, columns=2, cells=[])
    pairs = [
        Pair(page=1, name="Due", value="now", confidence=0.4),
        Pair(page=1, name="due:", value="now", confidence=0.9),
        Pair(page=2, name="Due", value="now", confidence=0.4),
        Pair(page=2, name="\x00", value="nothing", confidence=0.4),
    ]
    found = fields(Analysis(pages=[], tables=[table], pairs=pairs))
    assert [(field.name, field.page, field.confidence) for field in found] == [("due", 1, 0.9), ("Due", 2, 0.4)]


def test_fields_are_highlighted_at_their_positions() -> None:
    fields_of_document = [
        DocumentField(number=0, name="Customer", value="Ada & Co", page=1),
        DocumentField(number=1, name="Total", value="12.00 (net)", page=1),
        DocumentField(number=2, name="Missing", value="nowhere", page=1),
        DocumentField(number=3, name="Customer", value="Ada & Co", page=2),
    ]
    shown = highlight(1, "Customer:   Ada &   Co\nTotal:   12.00 (net) EUR", fields_of_document)
    assert [(piece.text, piece.field) for piece in shown.pieces] == [
        ("Customer:   ", None),
        ("Ada &   Co", 0),
        ("\nTotal:   ", None),
        ("12.00 (net)", 1),
        (" EUR", None),
    ]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("2", 2),
        ("0.5", 0.5),
        ("-3", 0),
        ("1e9", 600),
        ("Thu, 17 Apr 2031 12:00:30 GMT", 30),
        ("Thu, 17 Apr 2031 11:00:00 GMT", 0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
    ],
)
def test_a_valid_retry_after_is_followed(header: str, seconds: float | None) -> None:
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert retry_after({"Retry-After": header}, now=NOW) == expected
    assert retry_after(None) is None


def passage(number: int, text: str, nearness: float) -> Passage:
    return Passage(
        document_id="d", name="a.pdf", number=number, page=1, start=0, end=len(text), text=text, nearness=nearness
    )


def test_rare_words_of_the_question_count_more_and_similar_passages_are_merged() -> None:
    near = [passage(n, f"The rent of flat {n} is due on the third working day of a month.", 0.5) for n in range(9)]
    near.append(passage(9, "Otters may be kept in the yard.", 0.45))
    ranked = rank("When is the rent for otters due?", near)
    merged = merge_similar(ranked, limit=5)
    assert {match.passage.number for match in merged} == {0, 9}
    assert [match.alike for match in merged if match.passage.number == 0] == [8]
    assert stems("the OTTERS of the rivers") == {"otter", "river"}
    assert marks("Otters swim", frozenset({"otter"})) == [("Otters", True), (" swim", False)]
    assert merge_similar([], limit=5) == []


def test_vectors_are_read_back_unchanged() -> None:
    original = np.random.default_rng(7).normal(size=(3, 16)).astype(np.float32)
    assert np.array_equal(vectors.unpack(vectors.pack(original.tolist()), dimensions=16), original)
    assert vectors.from_bytes(vectors.to_bytes(original[0])) == original[0].tolist()
    assert np.array_equal(np.array(vectors.from_text(vectors.to_text(original[0])), np.float32), original[0])
    assert np.linalg.norm(vectors.mean(original)) == pytest.approx(1, abs=1e-5)


def test_local_blobs_are_complete_and_partial_files_are_listed(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path / "blobs")
    assert list(blobs.all()) == []
    blobs.put("0123456789abcdef", b"content")
    assert blobs.get("0123456789abcdef") == b"content"
    (tmp_path / "blobs" / "part00000000000000000000").write_bytes(b"cut off")
    (tmp_path / "blobs" / "Not ours.txt").write_bytes(b"x")
    assert {stored.name for stored in blobs.all()} == {"0123456789abcdef", "part00000000000000000000"}
    blobs.remove("0123456789abcdef")
    with pytest.raises(BlobMissing):
        blobs.get("0123456789abcdef")
    for name in ("../../etc/passwd", "a/b/c/d/e/f", "UPPER-CASE", "short"):
        with pytest.raises(ValueError):
            blobs.put(name, b"")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ServiceError, match="could not be stored"):
        LocalBlobs(tmp_path / "file").put("0123456789abcdef", b"content")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"EMBEDDINGS": "azure", "OPENAI_KEY": "sk-secret"}, "EXTRACTION_OPENAI_ENDPOINT"),
        ({"BLOBS": "azure"}, "EXTRACTION_AZURE_STORAGE_CONNECTION"),
        ({"ANALYSIS": "azure", "AZURE_DOCUMENTS_KEY": "sk-secret"}, "EXTRACTION_AZURE_DOCUMENTS_ENDPOINT"),
        ({"DIMENSIONS": "32"}, "the local model has 256 dimensions"),
        ({"THRESHOLD": "0"}, "EXTRACTION_THRESHOLD"),
        ({"MAX_ATTEMPTS": "many"}, "EXTRACTION_MAX_ATTEMPTS"),
        ({"COLOUR": "red"}, "there is no such setting"),
    ],
)
def test_an_invalid_setting_is_named_without_revealing_a_secret(variables: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSetting) as invalid:
        settings.Settings.load({f"EXTRACTION_{name}": value for name, value in variables.items()})
    assert message in str(invalid.value)
    assert "sk-secret" not in str(invalid.value)


def test_an_invalid_connection_string_is_not_shown_in_the_error() -> None:
    loaded = settings.Settings.load({"EXTRACTION_BLOBS": "azure", "EXTRACTION_AZURE_STORAGE_CONNECTION": "sk-secret"})
    with pytest.raises(InvalidSetting) as invalid:
        open_blobs(loaded)
    assert "sk-secret" not in str(invalid.value)


def test_the_readme_and_the_pages_have_the_current_accuracy() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "apps.extraction.accuracy"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout in README
    scored = accuracy.scores()
    assert scored["all"].recall == pytest.approx(accuracy.RECALL, abs=0.005)
    assert scored["all"].precision == pytest.approx(accuracy.PRECISION, abs=0.005)


def test_fields_are_found_after_clause_numbers() -> None:
    analysis = read((accuracy.SAMPLES / "contract.pdf").read_bytes(), most_pages=9, most_characters=99_999)
    assert {field.name: field.value for field in fields(analysis)} == {
        "Client": "Lighthouse Trust of Skarholm",
        "Contractor": "Vik Marine Works AS",
        "Start": "1 June 2031",
        "End": "31 August 2031",
        "Fee": "18,400.00 EUR",
    }


def test_the_docs_say_that_no_test_uses_the_cloud() -> None:
    pages = [README, (ROOT / "docs" / "contracts.md").read_text("utf-8"), (ROOT / "README.md").read_text("utf-8")]
    promised = next(line for line in pages[1].splitlines() if line.startswith("| X6 |")).split("|")[2]
    for words in ("Azurite", "emulator", "local servers that speak the"):
        assert words in promised
        assert words in " ".join(README.split())
    assert not [page for page in pages if "real endpoint" in page]


def test_the_readme_has_every_setting_with_its_default() -> None:
    missing = []
    for name, setting in settings.Settings.model_fields.items():
        default: Any = setting.default
        shown = f"{default.total_seconds():g}" if isinstance(default, timedelta) else str(default).lower()
        row = next((line for line in README.splitlines() if line.startswith(f"| `EXTRACTION_{name.upper()}` |")), "")
        documented = row.split("|")[2].strip().strip("`").replace(",", "").lower() if row else None
        if documented != ("" if default is None else shown) and name != "folder":
            missing.append((name, shown, documented))
    assert missing == []
