"""The smallest program: a job, a worker in the same process, and a result.

python examples/hello.py
holdfast worker examples/hello.py:hf          (a separate worker, in another terminal)
"""

from __future__ import annotations

from holdfast import Holdfast

hf = Holdfast("sqlite:///hello.db")


@hf.job()
def greet(name: str) -> str:
    return f"hello, {name}"


if __name__ == "__main__":
    run = greet.submit(name="Ada")  # durable when it returns
    with hf.worker():
        print(run.result(timeout=30))
    hf.close()
