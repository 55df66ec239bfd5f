"""Error codes: each is unique."""

from __future__ import annotations

from holdfast.support.errors import HoldfastError


def test_every_error_has_a_unique_code() -> None:
    def below(kind: type[HoldfastError]) -> list[type[HoldfastError]]:
        return [kind, *(one for child in kind.__subclasses__() for one in below(child))]

    ours = [kind for kind in below(HoldfastError) if kind.__module__ == "holdfast.support.errors"]
    codes = [kind.code for kind in ours]
    assert len(set(codes)) == len(codes) > 20
    assert all(kind.__doc__ for kind in ours)
