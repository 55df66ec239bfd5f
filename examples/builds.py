"""Builds: one environment is built per configuration and shared by all runs that depend on it."""

from __future__ import annotations

from pathlib import Path

from holdfast import Context, Holdfast, Run, RunFailed, fingerprint

hf = Holdfast("sqlite:///builds.db")
configuration = Path("configuration")
built: list[str] = []


@hf.build(timeout=600)
def environment(ctx: Context, configuration_id: str, fingerprint: str) -> str:
    built.append(fingerprint[:8])
    packages = (configuration / "requirements.txt").read_text()
    if "no-such-package" in packages:
        raise LookupError("no-such-package can't be found")
    return f"environment {configuration_id} with {packages}"


@hf.job()
def process(ctx: Context, document: str) -> str:
    (environment,) = ctx.dependencies
    return f"{document} processed in {environment}"


def submit(document: str) -> Run[str]:
    """Submit a run that starts when the environment for the current configuration is ready."""
    contents = fingerprint(configuration, "engine 1.4", ignore=["*.pyc"])
    return process.using(depends_on=[environment.request(configuration_id="c1", fingerprint=contents)]).submit(document)


if __name__ == "__main__":
    configuration.mkdir()
    (configuration / "requirements.txt").write_text("pandas")
    runs = [submit(document) for document in ("a.csv", "b.csv", "c.csv")]
    print("waiting because:", runs[-1].why().reasons[0])
    with hf.worker():
        for run in runs:
            print(run.result(timeout=30))
        print("environments built:", len(built))

        (configuration / "requirements.txt").write_text("no-such-package")
        try:
            submit("d.csv").result(timeout=30)
        except RunFailed as failure:
            print(failure.error)
        (configuration / "requirements.txt").write_text("polars")
        print(submit("e.csv").result(timeout=30))
    for build in hf.builds.list():
        print(build.state, build.scope, build.fingerprint[:8])
    hf.close()
