"""Notifier: signals and announcements between threads and processes."""

from __future__ import annotations

import threading

from holdfast.store.notifier import Announcer, Notifier, Signal


def test_a_signal_set_before_a_wait_wakes_only_that_wait() -> None:
    signal = Signal()
    assert signal.wait(0) is False
    signal.set()
    signal.set()
    assert signal.wait(0) is True
    assert signal.wait(0) is False


def test_listeners_are_notified_of_every_commit_until_they_unsubscribe() -> None:
    notifier = Notifier()
    received: list[tuple[set[str], list[str]]] = []
    leave = notifier.listen(lambda names, ended: received.append((names, ended)))
    notifier.committed({"mail"}, ["r1"])
    notifier.heard({""})
    leave()
    notifier.committed({"mail"}, [])
    assert received == [({"mail"}, ["r1"]), ({""}, [])]


def test_notifications_for_other_processes_are_batched_and_none_is_lost() -> None:
    announced: list[set[str]] = []
    first, go = threading.Event(), threading.Event()

    def announce(names: set[str]) -> None:
        announced.append(set(names))
        first.set()
        go.wait(60)

    announcer = Announcer(announce)
    announcer.announce({"a"})
    assert first.wait(60)
    for number in range(50):
        announcer.announce({f"q{number}"})
    go.set()
    announcer.close()
    assert announced[0] == {"a"}
    assert set().union(*announced) == {"a", *(f"q{n}" for n in range(50))}
    assert len(announced) < 10
