"""holdfast.client: use a Holdfast server over HTTP, with the same methods as `Holdfast`.

from holdfast.client import Client

with Client("http://127.0.0.1:8700", token="hf_…") as hf:
    run = hf.submit("app.greet", name="Ada")
    print(run.result(timeout=60))
"""

from holdfast.client.client import Client

__all__ = ["Client"]
