"""Azure: Blob Storage (Azurite), Azure OpenAI, and a service that is down for a while."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from apps.extraction.providers import BlobMissing, ServiceError
from apps.extraction.providers.azure_blobs import AzureBlobs
from apps.extraction.tests.conftest import Extraction, pdf, running
from apps.extraction.tests.services import Fault, Services
from tests import azurite
from tests.azurite import ACCOUNT, KEY, Azurite


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    program = azurite.program()
    if program is None:
        pytest.skip("no Azurite: it could not be installed here")
    with azurite.running(program, tmp_path_factory.mktemp("azurite")) as server:
        yield server


def connection(storage: Azurite) -> str:
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={storage.endpoint};"


@pytest.fixture(scope="module")
def app(storage: Azurite, cloud_servers: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Extraction]:
    azure = {
        "EXTRACTION_BLOBS": "azure",
        "EXTRACTION_AZURE_STORAGE_CONNECTION": connection(storage),
        "EXTRACTION_EMBEDDINGS": "azure",
        "EXTRACTION_OPENAI_ENDPOINT": cloud_servers.url,
        "EXTRACTION_OPENAI_MODEL": "our-deployment",
        "EXTRACTION_BREAKER_FAILURES": "2",
    }
    with running(tmp_path_factory.mktemp("azure"), inside=True, settings=cloud_servers.settings | azure) as app:
        yield app


@pytest.mark.contract("X1", "X6")
def test_files_are_stored_in_azure_blob_storage(storage: Azurite, tmp_path: Path) -> None:
    blobs = AzureBlobs(connection(storage), "files", timeout=10)
    file = tmp_path / "file"
    file.write_bytes(b"content")
    with pytest.raises(BlobMissing):
        blobs.get("0123456789abcdef")
    blobs.put("0123456789abcdef", file)
    blobs.put("0123456789abcdef", b"content that is newer")
    assert blobs.get("0123456789abcdef") == b"content that is newer"
    AzureBlobs(connection(storage), "files", timeout=10)._container.upload_blob("Not a blob name.txt", b"x")
    [stored] = blobs.all()
    assert stored.name == "0123456789abcdef"
    assert abs(datetime.now(UTC) - stored.stored_at) < timedelta(minutes=5)
    blobs.remove("0123456789abcdef")
    blobs.remove("0123456789abcdef")
    assert list(blobs.all()) == []
    with pytest.raises(ValueError):
        blobs.get("../escape")


def test_an_unreachable_storage_raises_a_service_error_without_the_key() -> None:
    unreachable = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=YWJj;BlobEndpoint=http://127.0.0.1:9/a;"
    with pytest.raises(ServiceError) as raised:
        AzureBlobs(unreachable, "files", timeout=1).get("0123456789abcdef")
    assert not raised.value.reachable
    assert "YWJj" not in str(raised.value)


@pytest.mark.contract("X1", "X3", "X6")
def test_a_document_is_processed_with_azure_services_only(app: Extraction, cloud: Services, storage: Azurite) -> None:
    content = pdf("First paragraph, about whales.", "Second page, about boats.")
    document = app.ended(app.upload(content))
    assert (document["job"]["status"], len(document["chunks"])) == ("COMPLETED", 2), document["job"]
    assert app.site.http.get(f"/documents/{document['id']}/file").content == content
    blobs = AzureBlobs(connection(storage), "documents", timeout=10)
    assert {stored.name for stored in blobs.all()} == {document["id"]}  # intermediate results are deleted
    assert app.site.http.delete(f"/documents/{document['id']}").status_code == 204
    assert document["id"] not in {stored.name for stored in blobs.all()}


@pytest.mark.contract("X4")
def test_a_failing_service_does_not_use_up_attempts(app: Extraction, cloud: Services) -> None:
    """After two failures the service is not called, so no attempt is used. When it works again, all documents are
    read."""
    cloud.plan("analyze", *[Fault(500)] * 4)
    uploaded = [app.upload(pdf(f"Document {number}.")) for number in range(8)]
    documents = [app.ended(document_id) for document_id in uploaded]
    assert {document["job"]["status"] for document in documents} == {"COMPLETED"}
    # Failed attempts: the calls made before the circuit opened, and one trial call after each pause.
    assert sum(document["job"]["attempts"] for document in documents) == 4
    assert cloud.counts["analyze"] == 12
    assert cloud.counts["billed analyses"] == 8
