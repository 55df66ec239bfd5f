"""Django projects: the ORM in jobs, submissions in Django's transactions, and workers after a database restart."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import PostgresServer, postgres_server
from tests.process.django_project import Project, end
from tests.process.test_worker_crashes import restart
from tests.waiting import wait_for

from holdfast import Holdfast

pytestmark = pytest.mark.timeout(240)

JOBS = """
import os
import time
from asgiref.sync import sync_to_async

failures = []

@hf.job()
def in_thread(number: int) -> int:
    return Order.objects.create(item=f"thread {number}").id

@hf.job()
async def in_loop(number: int) -> int:
    order = await Order.objects.acreate(item=f"loop {number}")
    return order.id

@hf.job(isolation="process")
def in_process(number: int) -> int:
    return Order.objects.create(item=f"process {number}").id

@hf.job()
def fails(number: int) -> None:
    raise ValueError(number)

@hf.on_failure
def note(run) -> None:
    Order.objects.create(item=f"noted {run.args['number']}")

@hf.job()
def hangs_once(ctx: Context) -> int:
    with open("begun.txt", "a") as file:
        file.write(f"{os.getpid()}\\n")
    while ctx.run.claim == 1:
        time.sleep(0.02)
    return Order.objects.count()
"""

PREAMBLE = """
import json
from django.db import connection, connections, transaction
from holdfast import HoldfastError
from shop.jobs import *
from shop.orders import *

def result_or_error(fn):
    try:
        return fn()
    except HoldfastError as error:
        return f"{error.code}: {error}"

def counts():
    return [Order.objects.count(), hf.count().number]
"""

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(project: Project) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        started.append(project.start(*arguments))
        return started[-1]

    yield start
    for process in started:
        end(process)


def run_script(project: Project, text: str) -> Any:
    """Run a script in the project; return the JSON that it prints last."""
    return json.loads(project.script(PREAMBLE + text).strip().splitlines()[-1])


@pytest.mark.contract("S2")
def test_a_submission_joins_djangos_transaction_and_its_savepoints(project: Project) -> None:
    found = run_script(
        project,
        """
def submit(item):
    order = Order.objects.create(item=item)
    send_receipt.using(connection=connection).submit(order_id=order.id)

class Undo(Exception):
    pass

def undone(fn):
    try:
        with transaction.atomic():
            fn()
            raise Undo
    except Undo:
        pass

seen = {"start": counts()}
with transaction.atomic():
    submit("a")
    seen["open"] = hf.count().number
seen["committed"] = counts()
undone(lambda: submit("b"))
seen["rolled back"] = counts()
with transaction.atomic():
    submit("c")
    undone(lambda: submit("d"))                    # only the savepoint
    with transaction.atomic():
        submit("e")
seen["savepoint"] = counts()
with transaction.atomic(durable=True):
    send_receipt.using(connection=connections["default"]).submit_many([{"order_id": 1}, {"order_id": 2}])
seen["many"] = counts()
transaction.set_autocommit(False)
submit("f")
transaction.commit()
transaction.set_autocommit(True)
seen["by hand"] = counts()
print(json.dumps(seen))
""",
    )
    assert found == {
        "start": [0, 0],
        "open": 0,
        "committed": [1, 1],
        "rolled back": [1, 1],
        "savepoint": [3, 3],
        "many": [3, 5],
        "by hand": [4, 6],
    }


@pytest.mark.contract("S2")
def test_a_submission_is_refused_where_django_has_no_open_transaction(project: Project) -> None:
    found = run_script(
        project,
        """
def submit(given=connection):
    return send_receipt.using(connection=given).submit(order_id=1)

seen = [result_or_error(submit)]
try:
    with transaction.atomic():
        try:
            with transaction.atomic(savepoint=False):
                raise ValueError
        except ValueError:
            seen.append(result_or_error(submit))
except transaction.TransactionManagementError:
    pass
connections.settings["other"] = connections.settings["default"] | {
    "ENGINE": "django.db.backends.sqlite3", "NAME": "other.sqlite3", "OPTIONS": {}
}
with transaction.atomic(using="other"):
    seen.append(result_or_error(lambda: submit(connections["other"])))
print(json.dumps([seen, counts()]))
""",
    )
    refused, counts = found
    assert refused[0].startswith("wrong_connection: no transaction is open on Django's connection 'default'")
    assert "with transaction.atomic():" in refused[0]
    assert refused[1].startswith("wrong_connection: the transaction on Django's connection 'default' has failed")
    assert refused[2].startswith("wrong_connection: ")
    assert counts == [0, 0]


@pytest.mark.contract("S2")
def test_a_run_is_finished_in_one_transaction_with_the_rows_that_it_writes_with_django(project: Project) -> None:
    found = run_script(
        project,
        """
with hf.worker():
    order, placed = place_order("tea")
    then = place_order_then_submit("coffee")
    stocked = restock.submit(item="milk")
    results = [placed.result(timeout=60), stocked.result(timeout=60)]
    for run in hf.search().items:
        hf.get(run.id).result(timeout=60)
print(json.dumps([results, sorted(Order.objects.values_list("item", "receipt"))]))
""",
    )
    assert found == [
        ["receipt for tea", "restocked"],
        [["coffee", "receipt for coffee"], ["milk", "restocked"], ["tea", "receipt for tea"]],
    ]


@pytest.mark.parametrize(
    ("project", "command"), [("sqlite", "manage.py"), ("postgres", "holdfast")], indirect=["project"]
)
def test_a_killed_worker_is_replaced_by_another(project: Project, start: Start, command: str) -> None:
    project.append("shop/jobs.py", JOBS)
    project.environment["HOLDFAST_LEASE"] = "2"
    worker = [*(["manage.py", "holdfast"] if command == "manage.py" else ["-m", "holdfast"]), "worker", "shop.jobs:hf"]
    [run_id, *_] = run_script(project, "print(json.dumps([hangs_once.submit().id]))")
    begun = project.folder / "begun.txt"

    first = start(*worker)
    wait_for(lambda: begun.exists() and begun.read_text(), what=project.log())
    end(first)
    start(*worker)

    with Holdfast(project.url, auto_migrate=False) as hf:
        run = hf.get(run_id)
        assert run.result(timeout=60) == 0
        assert run.snapshot.takeovers == 1
        assert hf.verify() == []


@pytest.mark.parametrize("project", ["postgres"], indirect=True)
def test_a_worker_that_has_stopped_leaves_no_connection_of_django_open(project: Project) -> None:
    project.append("shop/jobs.py", "@hf.on_failure\ndef note(run):\n    Order.objects.create(item=run.state)")
    found = run_script(
        project,
        """
import gc, time
from shop.jobs import Order, hf

assert connection.settings_dict["CONN_MAX_AGE"] == 60

@hf.job(name="fails")
def fails():
    Order.objects.create(item="fails")
    raise RuntimeError

def others():
    with connection.cursor() as cursor:
        query = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        return cursor.execute(query).fetchone()[0]

gc.disable()                              # the garbage collector must not close the connections
with hf.worker():
    fails.submit()
    while not Order.objects.filter(item="failed").exists():
        time.sleep(0.05)
hf.close()
give_up_at = time.monotonic() + 60
while (left := others()) and time.monotonic() < give_up_at:
    time.sleep(0.05)
print(json.dumps(left))
""",
    )
    assert found == 0


@pytest.mark.parametrize("project", ["sqlite"], indirect=True)
def test_django_settings_that_cannot_be_loaded_are_named(project: Project) -> None:
    found = project.run(
        "-m",
        "holdfast",
        "worker",
        "shop.jobs:hf",
        environment={"DJANGO_SETTINGS_MODULE": "mysite.setings"},
        fails=True,
    )
    assert "cannot_load: DJANGO_SETTINGS_MODULE=mysite.setings: Django can't be set up: ModuleNotFoundError" in found


@pytest.mark.parametrize("project", ["sqlite"], indirect=True)
def test_with_the_settings_of_the_guide_threads_can_read_and_then_write_while_a_worker_runs(project: Project) -> None:
    found = run_script(
        project,
        """
from concurrent.futures import ThreadPoolExecutor
from django.db import close_old_connections

def order(number):
    try:
        with transaction.atomic():
            seen = Order.objects.count()
            order = Order.objects.create(item=f"{number} after {seen}")
            return send_receipt.using(connection=connection).submit(order_id=order.id)
    finally:
        close_old_connections()

with connection.cursor() as cursor:
    pragma = cursor.execute("pragma wal_autocheckpoint").fetchone()[0]
with hf.worker(), ThreadPoolExecutor(4) as threads:
    for run in list(threads.map(order, range(60))):
        run.result(timeout=60)
print(json.dumps([pragma, Order.objects.exclude(receipt="").count(), hf.verify()]))
""",
    )
    assert found == [0, 60, []]


@pytest.mark.parametrize("project", ["sqlite"], indirect=True)
def test_one_server_serves_django_and_the_dashboard(project: Project) -> None:
    project.write(
        "mysite/urls.py",
        """
from django.http import HttpResponse
from django.urls import path

urlpatterns = [path("hello/", lambda request: HttpResponse("hello from Django"))]
""",
    )
    project.append("mysite/settings.py", "ALLOWED_HOSTS = ['testserver']")
    found = run_script(
        project,
        """
from starlette.testclient import TestClient
from mysite.asgi import application

with TestClient(application) as client:
    print(json.dumps([
        client.get("/hello/").text,
        client.get("/holdfast/api/runs").status_code,
        client.get("/holdfast/", headers={"Accept": "text/html"}).text,
    ]))
""",
    )
    assert found[0] == "hello from Django"
    assert found[1] == 401
    assert "Sign in" in found[2]


@pytest.fixture
def restarted(django_template: Project, tmp_path: Path) -> Iterator[tuple[Project, PostgresServer]]:
    """The project on a PostgreSQL server that the test restarts."""
    with postgres_server(18, "--fsync=off") as server:
        yield django_template.copied_to(tmp_path / "project", server.url), server


CONNECTION_REUSE = {
    "settings of the guide": {},
    "closed after each attempt": {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False},
}


@pytest.mark.parametrize("reuse", CONNECTION_REUSE)
def test_jobs_that_use_the_orm_succeed_after_a_restart_of_the_database(
    restarted: tuple[Project, PostgresServer], reuse: str
) -> None:
    project, server = restarted
    project.append("mysite/settings.py", f"DATABASES['default'] |= {CONNECTION_REUSE[reuse]!r}")
    project.append("shop/jobs.py", JOBS)
    project.manage("migrate")
    worker = project.start("manage.py", "holdfast", "worker", "shop.jobs:hf", "-c", "4")
    try:
        assert outcomes(project) == {"succeeded"}
        server.stop(how="immediate")
        restart(server)
        assert outcomes(project) == {"succeeded"}, project.log()
        assert run_script(project, "print(Order.objects.count())") == 2 * (44 + 1)
        assert worker.poll() is None
    finally:
        end(worker)


def outcomes(project: Project, *, processes: int = 4) -> set[str]:
    """Execute runs in each kind of isolation, each of which writes an order; return how they end.

    Then a run fails, and its failure hook writes an order too.
    """
    found = run_script(
        project,
        """
hf.start(wait=60)
runs = []
for job, many in ((in_thread, 20), (in_loop, 20), (in_process, PROCESSES)):
    runs += [job.submit(number=number) for number in range(many)]

def state(run):
    try:
        run.result(timeout=120)
    except HoldfastError as error:
        return str(error)
    return "succeeded"

def notes():
    return Order.objects.filter(item="noted 1").count()

states, before = sorted({state(run) for run in runs}), notes()
fails.submit(number=1)
until = time.monotonic() + 60
while notes() == before and time.monotonic() < until:
    time.sleep(0.05)
print(json.dumps(states))
""".replace("PROCESSES", str(processes)),
    )
    return set(found)


def test_persistent_connections_without_health_checks_are_replaced_after_one_failure(
    restarted: tuple[Project, PostgresServer],
) -> None:
    project, server = restarted
    never = {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": False}
    project.append("mysite/settings.py", f"DATABASES['default'] |= {never!r}")
    project.append("shop/jobs.py", JOBS)
    project.manage("migrate")
    worker = project.start("manage.py", "holdfast", "worker", "shop.jobs:hf", "-c", "1")
    try:
        outcomes(project, processes=0)
        server.stop(how="immediate")
        restart(server)
        outcomes(project, processes=0)
        assert outcomes(project, processes=0) == {"succeeded"}, project.log()
    finally:
        end(worker)


def test_the_server_settings_of_django_reach_holdfast(restarted: tuple[Project, PostgresServer]) -> None:
    project, _ = restarted
    options = {
        "sslmode": "disable",
        "options": "-c search_path=app,public",
        "assume_role": "app owner",
        "isolation_level": 2,
        "server_side_binding": True,
    }
    project.append("mysite/settings.py", f"DATABASES['default'] |= {{'OPTIONS': {options!r}}}")
    found = run_script(
        project,
        """
import psycopg
parts = connections.settings["default"]
with psycopg.connect(host=parts["HOST"], port=parts["PORT"], user=parts["USER"], dbname=parts["NAME"]) as raw:
    raw.execute('create role "app owner"')
    raw.execute('create schema app authorization "app owner"')
hf.start()
def ask(tx):
    return tx._session.execute(
        "select schemaname, tableowner from pg_tables where tablename = 'holdfast_runs'", None
    )[0]
print(json.dumps(hf.read(ask)))
""",
    )
    assert found == [["app", "app owner"]]


def test_a_process_that_does_not_use_django_does_not_import_it() -> None:
    program = "import sys, holdfast, holdfast.django; assert not [name for name in sys.modules if name == 'django']"
    subprocess.run([sys.executable, "-c", program], check=True, stdin=subprocess.DEVNULL)
