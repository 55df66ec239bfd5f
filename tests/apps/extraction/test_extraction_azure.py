"""Azure as a whole: Blob Storage by Azurite, Azure OpenAI, and a service that is dead for a while."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from apps.extraction.providers import BlobMissing, Trouble
from apps.extraction.providers.azure_blobs import AzureBlobs
from tests import azurite
from tests.apps.extraction.conftest import Extraction, pdf, running
from tests.apps.extraction.services import Fault, Services
from tests.azurite import ACCOUNT, KEY, Azurite


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    found = azurite.program()
    if found is None:
        pytest.skip("no Azurite: npm is not here or may not install it")
    with azurite.running(found, tmp_path_factory.mktemp("azurite")) as server:
        yield server


def connection(storage: Azurite) -> str:
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={storage.endpoint};"


@pytest.fixture(scope="module")
def app(storage: Azurite, services_here: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extraction]:
    azure = {
        "EXTRACTION_BLOBS": "azure",
        "EXTRACTION_AZURE_STORAGE_CONNECTION": connection(storage),
        "EXTRACTION_EMBEDDINGS": "azure",
        "EXTRACTION_OPENAI_ENDPOINT": services_here.url,
        "EXTRACTION_OPENAI_MODEL": "our-deployment",
        "EXTRACTION_BREAKER_FAILURES": "2",
    }
    with running(tmp_path_factory.mktemp("azure"), inside=True, settings=services_here.settings | azure) as found:
        yield found


@pytest.mark.contract("X1", "X6")
def test_files_are_kept_in_azure_blob_storage(storage: Azurite, tmp_path: Path) -> None:
    blobs = AzureBlobs(connection(storage), "files", timeout=10)
    file = tmp_path / "file"
    file.write_bytes(b"content")
    with pytest.raises(BlobMissing):
        blobs.get("0123456789abcdef")
    blobs.put("0123456789abcdef", file)
    blobs.put("0123456789abcdef", b"content that is newer")
    assert blobs.get("0123456789abcdef") == b"content that is newer"
    AzureBlobs(connection(storage), "files", timeout=10)._container.upload_blob("Not of ours.txt", b"x")
    [kept] = blobs.all()
    assert kept.name == "0123456789abcdef"
    assert abs(datetime.now(UTC) - kept.at) < timedelta(minutes=5)
    blobs.remove("0123456789abcdef")
    blobs.remove("0123456789abcdef")
    assert list(blobs.all()) == []
    with pytest.raises(ValueError):
        blobs.get("../escape")


def test_a_storage_that_is_away_is_told_as_trouble() -> None:
    nobody = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=YWJj;BlobEndpoint=http://127.0.0.1:9/a;"
    with pytest.raises(Trouble) as trouble:
        AzureBlobs(nobody, "files", timeout=1).get("0123456789abcdef")
    assert not trouble.value.alive
    assert "YWJj" not in str(trouble.value)


@pytest.mark.contract("X1", "X3", "X6")
def test_a_document_goes_through_azure_from_end_to_end(app: Extraction, cloud: Services, storage: Azurite) -> None:
    content = pdf("First paragraph, about whales.", "Second page, about boats.")
    document = app.ended(app.upload(content))
    assert (document["job"]["status"], len(document["chunks"])) == ("COMPLETED", 2), document["job"]
    assert app.site.http.get(f"/documents/{document['id']}/file").content == content
    blobs = AzureBlobs(connection(storage), "documents", timeout=10)
    assert {kept.name for kept in blobs.all()} == {document["id"]}  # the rest is in the tables now
    assert app.site.http.delete(f"/documents/{document['id']}").status_code == 204
    assert document["id"] not in {kept.name for kept in blobs.all()}


@pytest.mark.contract("X4")
def test_a_dead_service_does_not_use_up_attempts(app: Extraction, cloud: Services) -> None:
    """After two failures it is left alone: no call is made, no attempt is used; when it is back, all is read."""
    cloud.plan("analyze", *[Fault(500)] * 4)
    documents = [app.ended(one) for one in [app.upload(pdf(f"Document {number}.")) for number in range(8)]]
    assert {document["job"]["status"] for document in documents} == {"COMPLETED"}
    # Those that had asked before it was known count, and one a pause that tries whether it is back.
    assert sum(document["job"]["attempts"] for document in documents) == 4
    assert cloud.counts["analyze"] == 12
    assert cloud.counts["billed analyses"] == 8
