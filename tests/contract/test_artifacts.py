"""Artifacts: where they lie, that they are whole, that a valid one is not made again and a stale worker's never."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast import (
    Artifact,
    ArtifactCorrupt,
    ArtifactNotFound,
    Context,
    DepotUnavailable,
    Holdfast,
    InvalidArguments,
    InvalidSetting,
    LeaseLost,
    RunNotFound,
    TooLarge,
    Worker,
    artifacts,
    settings,
)
from holdfast.depots import open_depot
from holdfast.depots.base import PARTS, Measured
from holdfast.testing import FakeClock, Fault, Faults, Manual

if TYPE_CHECKING:
    from tests.conftest import Database

CONTENT = b"content"
CHECKSUM = hashlib.sha256(CONTENT).hexdigest()


def lying_in(hf: Holdfast) -> set[str]:
    """The addresses of all files in the depot, unfinished ones too."""
    depot: Any = hf.depot
    if depot.path("x") is None:
        return {each["path"] for page in depot._obstore.list(depot._store) for each in page}
    folder = Path(depot.url)
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def overwrite(hf: Holdfast, artifact: Artifact, content: bytes | None) -> None:
    """What a bad disk, or a person, does to a file."""
    depot: Any = hf.depot
    if artifact.path is None:
        depot._obstore.put(depot._store, artifact.address, content) if content is not None else depot.remove(
            [artifact.address]
        )
    elif content is None:
        artifact.path.unlink()
    else:
        artifact.path.write_bytes(content)


@pytest.mark.contract("L8")
@pytest.mark.parametrize("kind", ["bytes", "text", "file", "function"])
def test_an_artifact_is_kept_with_its_size_and_checksum_where_its_run_and_name_say(
    keeping: Holdfast, hands: Manual, tmp_path: Path, kind: str
) -> None:
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    content: Any = {
        "bytes": CONTENT,
        "text": CONTENT.decode(),
        "file": source,
        "function": lambda path: path.write_bytes(CONTENT),
    }[kind]
    made: list[Artifact] = []

    @keeping.job(name="work")
    def work(ctx: Context) -> Any:
        made.append(ctx.artifact("out.txt", content))
        return made[0]

    run = work.submit()
    hands.run_all()

    assert [(made[0].name, made[0].size, made[0].sha256)] == [("out.txt", 7, CHECKSUM)]
    assert made[0].read() == CONTENT
    told = run.result(timeout=1)
    assert (told["name"], told["size"], told["sha256"], told["run_id"]) == ("out.txt", 7, CHECKSUM, run.id)
    [kept] = keeping.artifacts.of(run.id)
    assert kept == made[0] == keeping.artifacts.get(run.id, "out.txt")
    assert lying_in(keeping) == {f"{run.id[-2:]}/{run.id}/out.txt"}, "at its place, and nothing beside it"
    with keeping.artifacts.open(run.id, "out.txt", verify=True) as file:
        assert file.read() == CONTENT
    assert source.exists()


@pytest.mark.contract("L8")
def test_a_valid_output_is_recognised_and_a_missing_or_corrupt_one_is_made_again(
    keeping: Holdfast, hands: Manual, clock: FakeClock
) -> None:
    calls: list[int] = []

    @keeping.job(name="work", max_attempts=9)
    def work(ctx: Context) -> None:
        def make(path: Path) -> None:
            calls.append(ctx.attempt)
            path.write_bytes(CONTENT)

        ctx.artifact("out.txt", make)
        raise ValueError("again")

    run = work.submit()

    def attempt() -> Artifact:
        hands.run_all()
        clock.advance(3600)
        return keeping.artifacts.get(run.id, "out.txt")

    first = attempt()
    assert (attempt(), calls) == (first, [1]), "recognised"
    for damage in (None, b"konnten", b"contents", b""):
        overwrite(keeping, first, damage)
        before = len(calls)
        again = attempt()
        assert len(calls) == before + 1, f"{damage!r} was made again"
        assert again.read() == CONTENT
    assert attempt() == again


@pytest.mark.contract("L8")
def test_a_later_attempt_keeps_other_content_under_the_same_name(
    keeping: Holdfast, hands: Manual, clock: FakeClock
) -> None:
    @keeping.job(name="work", max_attempts=2)
    def work(ctx: Context) -> None:
        ctx.artifact("out.txt", f"attempt {ctx.attempt}")
        if ctx.attempt == 1:
            raise ValueError

    run = work.submit()
    hands.run_all()
    clock.advance(600)
    hands.run_all()

    [kept] = keeping.artifacts.of(run.id)
    assert (kept.attempt, kept.read()) == (2, b"attempt 2")
    assert lying_in(keeping) == {kept.address}


@pytest.mark.contract("L8", "L5")
@pytest.mark.parametrize("since", ["requeued", "made by another"])
def test_a_stale_workers_artifact_is_refused_and_leaves_nothing(
    keeping: Holdfast, hands: Manual, clock: FakeClock, since: str
) -> None:
    """It sleeps past its lease in the middle of making it."""

    @keeping.job(name="work")
    def work(ctx: Context) -> None:
        def make(path: Path) -> None:
            path.write_bytes(b"of attempt %d" % ctx.attempt)
            if ctx.attempt == 1:
                clock.advance(2 * keeping.settings.lease)
                hands.orchestrate()
                if since == "made by another":
                    hands.run_all()

        with pytest.raises(LeaseLost) if ctx.attempt == 1 else contextlib.nullcontext():
            ctx.artifact("called.txt", make)
        with pytest.raises(LeaseLost) if ctx.attempt == 1 else contextlib.nullcontext():
            ctx.artifact("given.txt", b"of attempt %d" % ctx.attempt)

    run = work.submit()
    [claim] = hands.worker("sleeper").claim()
    with pytest.raises(LeaseLost):
        hands.worker("sleeper").work(claim)

    kept = {found.address: (found.attempt, found.read()) for found in keeping.artifacts.of(run.id)}
    assert set(kept.values()) == ({(2, b"of attempt 2")} if since == "made by another" else set())
    assert lying_in(keeping) == kept.keys()


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden", "-x", "a\x00b", "x" * 121, "a b", "..\\x", "é"]
)
def test_a_name_can_not_leave_its_folder(hf: Holdfast, manual: Manual, database: Database, name: str) -> None:
    called: list[Path] = []

    @hf.job(name="work")
    def work(ctx: Context, by_function: bool) -> None:
        ctx.artifact(name, called.append if by_function else b"content")

    for run in (work.submit(by_function=False), work.submit(by_function=True)):
        manual.run_all()
        assert (run.refresh().state, run.snapshot.failure_type) == ("failed", "ERROR")
        assert "InvalidArguments" in str(run.snapshot.error)
    assert called == []
    assert database.count("artifacts") == 0
    assert lying_in(hf) == set()


@pytest.mark.contract("L8", "S4")
@pytest.mark.parametrize(
    "text", ["..", ".", "../..", "/etc", "a/b", "a\\b", "~", "", "x" * 500, "é\u202e", "%2E", "@", "a@1"]
)
def test_whatever_a_stage_or_a_segment_is_called_its_folder_stays_inside(text: str) -> None:
    folder = artifacts._folder(text)
    assert "/" not in folder
    assert "\\" not in folder
    assert not folder.startswith(".")
    assert 0 < len(folder) <= 80
    assert folder.isascii()


def test_different_texts_have_different_folders() -> None:
    texts = [
        "a",
        "A",
        "",
        "~",
        "%7E",
        "a b",
        "a+b",
        "a%20b",
        ".",
        "%2E",
        "é",
        "e",
        "x" * 500,
        "x" * 501,
        "a@1",
        "a%401",
    ]
    assert len({artifacts._folder(text) for text in texts}) == len(texts)


@pytest.mark.contract("S4", "L8")
@pytest.mark.parametrize("kind", ["bytes", "file", "function"])
def test_what_is_too_large_is_refused_and_leaves_nothing(
    keeping: Holdfast, hands: Manual, database: Database, tmp_path: Path, kind: str
) -> None:
    large = b"x" * 3_000_001
    source = tmp_path / "source"
    source.write_bytes(large)
    errors: list[BaseException] = []
    content: Any = {"bytes": large, "file": source, "function": lambda path: path.write_bytes(large)}[kind]

    @keeping.job(name="work")
    def work(ctx: Context) -> None:
        ctx.artifact("fits.bin", large[:-1])
        try:
            ctx.artifact("out.bin", content)
        except TooLarge as error:
            errors.append(error)

    run = work.submit()
    hands.run_all()
    assert run.refresh().state == "succeeded"
    assert "max_artifact_bytes" in str(errors[0])
    assert [kept.name for kept in keeping.artifacts.of(run.id)] == ["fits.bin"]
    assert len(lying_in(keeping)) == 1


@pytest.mark.contract("S4")
def test_content_that_is_none_is_refused_with_what_to_do(hf: Holdfast, manual: Manual, tmp_path: Path) -> None:
    @hf.job(name="work")
    def work(ctx: Context, what: str) -> None:
        contents: dict[str, Any] = {
            "number": 7,
            "nothing written": lambda path: None,
            "a link": lambda path: path.symlink_to(__file__),
            "missing": tmp_path / "missing",
        }
        ctx.artifact("out.txt", contents[what])

    said = {}
    for what in ("number", "nothing written", "a link", "missing"):
        run = work.submit(what)
        manual.run_all()
        said[what] = str(run.refresh().snapshot.error)
    assert "not int" in said["number"]
    assert "wrote no file" in said["nothing written"]
    assert "wrote no file" in said["a link"], "it would change, or go, with what it leads to"
    assert "FileNotFoundError" in said["missing"]
    assert lying_in(hf) == set()


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with room for a megabyte: a file system of its own where that may be, else a limit on files' size."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode == 0:
        yield folder
        subprocess.run(["umount", folder], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    yield folder
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.contract("L8", "S4")
def test_a_full_disk_is_a_clear_error_and_leaves_nothing_half_made(
    url: str, clock: FakeClock, full_disk: Path, database: Database
) -> None:
    said: list[str] = []
    with Holdfast(url, clock=clock, artifacts=full_disk) as hf:

        @hf.job(name="work")
        def work(ctx: Context) -> None:
            ctx.artifact("small.bin", b"x" * 100_000)
            for content in (b"x" * 1_500_000, lambda path: path.write_bytes(b"x" * 1_500_000)):
                try:
                    ctx.artifact("large.bin", content)
                except (DepotUnavailable, OSError) as error:
                    said.append(str(error))
            ctx.artifact("another.bin", b"x" * 100_000)

        run = work.submit()
        Manual(hf).run_all()
        assert run.refresh().state == "succeeded", run.snapshot.error
        assert len(said) == 2
        assert "can't be written: No space left on device" in said[0] or "File too large" in said[0]
        kept = {found.address for found in hf.artifacts.of(run.id)}
        assert {address.rpartition("/")[2] for address in kept} == {"small.bin", "another.bin"}
        assert lying_in(hf) == kept
        assert hf.verify(artifacts=True) == []


@pytest.mark.contract("L8")
@pytest.mark.parametrize("fault", list(Fault))
def test_whatever_becomes_of_the_commit_file_and_row_agree_or_it_is_made_again(
    keeping: Holdfast, hands: Manual, clock: FakeClock, fault: Fault
) -> None:
    faults = Faults(keeping)
    calls: list[int] = []

    @keeping.job(name="work", max_attempts=5)
    def work(ctx: Context) -> None:
        def make(path: Path) -> None:
            calls.append(ctx.attempt)
            path.write_bytes(CONTENT)

        if ctx.attempt == 1:
            faults.next(fault)
        ctx.artifact("out.txt", make)

    run = work.submit()
    hands.run_all()
    clock.advance(3600)
    hands.run_all()

    assert run.refresh().state == "succeeded"
    [kept] = keeping.artifacts.of(run.id)
    assert kept.read() == CONTENT
    assert calls == ([1] if fault is Fault.REPLY_LOST else [1, 2])
    assert lying_in(keeping) == {kept.address}


def test_artifacts_are_given_by_the_page(keeping: Holdfast, hands: Manual) -> None:
    film = keeping.pipeline("film")

    @film.stage()
    def cut(text: str) -> list[str]:
        return text.split()

    @film.stage(after=cut, each="segment")
    def say(ctx: Context, segment: str) -> None:
        for name in ("b.txt", "a.txt"):
            ctx.artifact(name, segment)

    run = film.submit(text="one two three")
    hands.run_all()
    everything = keeping.artifacts.of(run.id)
    assert [made.name for made in everything] == ["a.txt", "b.txt"] * 3
    for size in (1, 2, 4, 6, 7):
        found = keeping.artifacts.of(run.id, limit=size)
        while len(found) < 6:
            found += keeping.artifacts.of(run.id, limit=size, after=found[-1].address)
        assert found == everything
        assert keeping.artifacts.of(run.id, after=found[-1].address) == []
    for wrong in ("nothing", "", 7):
        with pytest.raises(InvalidArguments, match="address"):
            keeping.artifacts.of(run.id, after=wrong)  # type: ignore[arg-type]


@pytest.mark.contract("L8")
def test_a_reader_is_told_what_is_wrong(keeping: Holdfast, hands: Manual) -> None:
    @keeping.job(name="work")
    def work(ctx: Context) -> None:
        ctx.artifact("out.txt", CONTENT)

    run = work.submit()
    hands.run_all()
    [kept] = keeping.artifacts.of(run.id)
    with pytest.raises(ArtifactNotFound, match="no artifact 'other'"):
        keeping.artifacts.get(run.id, "other")
    with pytest.raises(RunNotFound):
        keeping.artifacts.of("0" * 26)

    assert keeping.verify(artifacts=True) == []
    overwrite(keeping, kept, b"kontent")
    with pytest.raises(ArtifactCorrupt):
        keeping.artifacts.open(run.id, "out.txt", verify=True)
    with pytest.raises(ArtifactCorrupt):
        kept.read()
    assert [(found.problem, found.run_id) for found in keeping.verify(artifacts=True)] == [("artifact_corrupt", run.id)]
    overwrite(keeping, kept, None)
    with pytest.raises(ArtifactNotFound):
        keeping.artifacts.open(run.id, "out.txt")
    assert [(found.problem, found.run_id) for found in keeping.verify(artifacts=True)] == [
        ("artifact_not_found", run.id)
    ]
    assert keeping.verify() == []


@pytest.mark.contract("L8")
def test_parts_that_a_lost_worker_left_are_swept_and_those_of_a_living_one_are_not(
    keeping: Holdfast, hands: Manual, clock: FakeClock
) -> None:
    @keeping.job(name="work", timeout=None)
    def work() -> None: ...

    work.submit()
    work.submit()
    lost, alive = hands.worker("a").claim(limit=2)
    for claim in (lost, alive):
        keeping.depot.stage(artifacts.part_of(claim.lease), Measured(io.BytesIO(b"x"), name="x", max_bytes=1))
    hands.worker("a").finish(lost)

    assert len(lying_in(keeping)) == 2
    keeping.retain()
    assert {address.startswith(f"{PARTS}/{alive.lease.run_id}.1.") for address in lying_in(keeping)} == {True}
    clock.advance(2 * keeping.settings.lease)
    hands.orchestrate()
    keeping.retain()
    assert lying_in(keeping) == set()


@pytest.mark.contract("L8", "S4")
def test_what_is_no_part_of_ours_is_left_alone_and_a_folder_that_is_none_is_a_clear_error(
    hf: Holdfast, tmp_path: Path
) -> None:
    parts = tmp_path / "artifacts" / PARTS
    parts.mkdir(parents=True)
    for name in ("notes.txt", f"{'0' * 26}.²", f"{'0' * 26}.x.1"):
        (parts / name).write_bytes(b"")
    hf.retain()
    assert len(lying_in(hf)) == 3
    for file in parts.iterdir():
        file.unlink()
    parts.rmdir()
    parts.write_bytes(b"")
    with pytest.raises(DepotUnavailable, match="can't be listed: Not a directory"):
        hf.retain()


@pytest.mark.contract("L8")
def test_a_place_is_found_by_a_database_that_pads_texts_with_blanks() -> None:
    """SQL Server compares 'a' with 'ab' as if it were 'a ': the range of a place has to hold it like that too."""
    asked: dict[str, str] = {}

    class Asked:
        def all(self, name: str, **values: str) -> list[Any]:
            asked.update(values)
            return []

    place, tx = "0" * 26, cast("Any", Asked())
    artifacts.within(tx, open_depot("artifacts"), place)
    assert asked["first"].ljust(30) <= place.ljust(30) < asked["last"].ljust(30) <= f"{place}/stage@~/~"
    artifacts.within(tx, open_depot("artifacts"), place, below=True)
    assert place.ljust(30) < asked["first"].ljust(30) <= f"{place}/stage@~/~" < asked["last"].ljust(30)


@pytest.mark.contract("L8")
def test_a_real_worker_keeps_artifacts_of_threads_and_of_tasks(url: str, kept_in: str, tmp_path: Path) -> None:
    with Holdfast(url, tick=0.05, lease=3, artifacts=kept_in) as hf:

        @hf.job(name="in_thread")
        def in_thread(ctx: Context) -> str:
            return ctx.artifact("out.txt", lambda path: path.write_bytes(CONTENT)).read().decode()

        @hf.job(name="in_loop")
        async def in_loop(ctx: Context) -> str:
            async def make(path: Path) -> None:
                await asyncio.sleep(0)
                path.write_bytes(CONTENT)

            first = await ctx.artifact("out.txt", make)
            assert await ctx.artifact("out.txt", make) == first
            return ctx.artifact("plain.txt", CONTENT).read().decode()

        with Worker(hf):
            assert in_thread.submit().result(timeout=30) == "content"
            assert in_loop.submit().result(timeout=30) == "content"
        assert hf.verify(artifacts=True) == []


@pytest.mark.contract("S4")
def test_a_place_that_can_not_be_is_refused_by_name() -> None:
    with pytest.raises(InvalidSetting, match="artifacts: nonsense://x"):
        open_depot("nonsense://x")
    assert settings.load({"artifacts": "az://work/x"}).artifacts == "az://work/x"
    assert settings.load({"artifacts": "some/folder"}).artifacts == Path("some/folder")


@pytest.mark.contract("S4")
def test_an_object_storage_that_is_away_is_a_clear_error(
    hf: Holdfast, manual: Manual, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AZURE_STORAGE_ACCOUNT_NAME": "a",
        "AZURE_STORAGE_ACCOUNT_KEY": "YQ==",
        "AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:1/a",
        "AZURE_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(hf.__dict__, "depot", open_depot("az://work/x"))

    @hf.job(name="work")
    def work(ctx: Context) -> None:
        ctx.artifact("out.txt", CONTENT)

    run = work.submit()
    manual.run_all()
    assert "DepotUnavailable" in str(run.refresh().snapshot.error)
    assert "Debug source" not in str(run.snapshot.error)
