"""A sample application with a build that counts its executions and can fail, and a job that uses it."""

from __future__ import annotations

from typing import Any

from holdfast import BuildRequest, Context, Holdfast


class App:
    """A build and a job that uses it. `made` lists the executions of the build; they fail if `fails` is set."""

    def __init__(self, hf: Holdfast) -> None:
        self.hf = hf
        self.made: list[tuple[str, str]] = []
        self.fails = False
        app = self

        @hf.build(name="environment")
        def environment(ctx: Context, configuration_id: str, fingerprint: str) -> str:
            app.made.append((configuration_id, fingerprint))
            if app.fails:
                raise OSError("the index can't be reached")
            return f"/environments/{configuration_id}/{len(app.made)}"

        @hf.job(name="process")
        def process(ctx: Context, document_id: str) -> str:
            return f"{document_id} in {ctx.dependencies[0]}"

        @hf.job(name="other")
        def other() -> None: ...

        self.environment, self.process, self.other = environment, process, other

    def request(self, configuration_id: str = "c1", fingerprint: str = "f1") -> BuildRequest:
        return self.environment.request(configuration_id=configuration_id, fingerprint=fingerprint)

    def submit(self, document_id: str = "doc", *, fingerprint: str = "f1", **options: Any) -> Any:
        return self.process.using(depends_on=[self.request(fingerprint=fingerprint)], **options).submit(document_id)
