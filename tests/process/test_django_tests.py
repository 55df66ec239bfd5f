"""Django's tests use its test database, never the real one."""

from __future__ import annotations

import pytest
from tests.process.django_project import Project

from holdfast import Holdfast

pytestmark = pytest.mark.timeout(240)

# The start of scripts that act like Django's test runner and do something before, during or after the tests.
RUNNER = """
from django.test.utils import setup_databases, setup_test_environment, teardown_databases, teardown_test_environment
from django.db import connection, connections
from holdfast import Holdfast, HoldfastError
from shop.jobs import hf, send_receipt

def result_or_error(fn):
    try:
        return fn()
    except HoldfastError as error:
        return f"{error.code}: {error}"

def name():
    return str(connection.settings_dict["NAME"])
"""


def runs(project: Project) -> int:
    """The number of runs in the real database, which is not the test database."""
    with Holdfast(project.url, auto_migrate=False) as hf:
        return hf.count().number


def test_the_tests_of_the_guide_pass_and_do_not_touch_the_real_database(project: Project) -> None:
    output = project.manage("test")
    assert "Ran 4 tests" in output
    assert runs(project) == 0


def test_tests_in_parallel_use_the_copies_of_the_test_database(project: Project) -> None:
    output = project.manage("test", "--parallel", "2")
    assert "Cloning test database" in output
    assert runs(project) == 0


def test_tests_use_the_test_database_even_if_holdfast_was_used_before(project: Project) -> None:
    project.append("shop/apps.py", "        jobs.hf.start()\n        assert jobs.hf.search().items == ()")
    assert "Ran 4 tests" in project.manage("test")
    assert runs(project) == 0


def test_a_submission_in_a_test_without_a_database_is_refused(project: Project) -> None:
    output = project.script(
        RUNNER
        + """
setup_test_environment()                  # as pytest-django does for tests without django_db
print(result_or_error(lambda: send_receipt.submit(order_id=1)))
old = setup_databases(verbosity=0, interactive=False)
run = send_receipt.submit(order_id=1)
print(hf.count().number)
teardown_databases(old, verbosity=0)
"""
    )
    refused, count = output.strip().splitlines()
    assert refused.startswith("wrong_database: Django's tests run in this process")
    assert "nothing was written" in refused
    assert count == "1"
    assert runs(project) == 0


def test_nothing_is_written_to_the_real_database_after_the_tests(project: Project) -> None:
    output = project.script(
        RUNNER
        + """
setup_test_environment()
old = setup_databases(verbosity=0, interactive=False)
send_receipt.submit(order_id=1)
teardown_databases(old, verbosity=0)
print(result_or_error(lambda: send_receipt.submit(order_id=2)))
teardown_test_environment()
print(result_or_error(lambda: send_receipt.submit(order_id=3)))
print(result_or_error(hf.search))
hf.close()
"""
    )
    in_tests, *after = output.strip().splitlines()
    assert in_tests.startswith("wrong_database: Django's tests run in this process")
    assert len(after) == 2
    assert all(line.startswith("wrong_database: Django's database 'default' was ") for line in after), output
    assert runs(project) == 0


def test_a_worker_stops_when_django_changes_its_database(project: Project) -> None:
    output = project.script(
        RUNNER
        + """
worker = hf.worker()
worker.start()
setup_test_environment()
result_or_error(lambda: setup_databases(verbosity=0, interactive=False))
print(result_or_error(lambda: worker.join(timeout=60)))
"""
    )
    assert "wrong_database: Django's database 'default' was " in output
    assert runs(project) == 0


def test_a_plain_holdfast_on_the_database_that_the_tests_replace_is_refused(project: Project) -> None:
    output = project.script(
        RUNNER
        + f"""
before = Holdfast({project.url!r})
before.start()
job = before.job(name="work")(lambda: None)
setup_test_environment()
print(result_or_error(job.submit))
old = setup_databases(verbosity=0, interactive=False)
after = Holdfast({project.url!r})
print(result_or_error(job.submit))
print(result_or_error(after.job(name="work")(lambda: None).submit))
other = Holdfast("sqlite:///other.db")    # a database of this test
print(other.job(name="work")(lambda: None).submit().state)
for one in (before, after, other):
    one.close()
teardown_databases(old, verbosity=0)
teardown_test_environment()
"""
    )
    *refused, allowed = output.strip().splitlines()
    assert len(refused) == 3
    assert all(line.startswith("wrong_database: Django's tests run in this process") for line in refused), output
    assert allowed == "queued"
    assert runs(project) == 0


@pytest.mark.parametrize("project", ["postgres"], indirect=True)
def test_a_plain_holdfast_created_after_django_changed_its_database_is_refused(project: Project) -> None:
    output = project.script(
        RUNNER.replace("from shop.jobs import hf, send_receipt", "")
        + f"""
from holdfast.support import django_bridge
setup_test_environment()
django_bridge._real.clear()
old = setup_databases(verbosity=0, interactive=False)
django_bridge._real.clear()                  # as if the real name had never been recorded
print(result_or_error(Holdfast({project.url!r}).start))
teardown_databases(old, verbosity=0)
"""
    )
    assert output.startswith("wrong_database: Django's tests run in this process")


@pytest.mark.parametrize("project", ["sqlite"], indirect=True)
def test_a_test_database_in_memory_is_refused_with_advice_and_disturbs_no_other_test(project: Project) -> None:
    project.append("mysite/settings.py", "del DATABASES['default']['TEST']")
    project.write(
        "shop/tests.py",
        """
from django.test import TestCase
from holdfast import InvalidSetting
from shop.jobs import send_receipt
from shop.models import Order

class Tests(TestCase):
    def test_the_orm(self):
        order = Order.objects.create(item="tea")
        self.assertEqual(send_receipt(order_id=order.id), "receipt for tea")

    def test_a_submission(self):
        with self.assertRaisesMessage(InvalidSetting, "DATABASES['default']['TEST'] = {'NAME': BASE_DIR / "):
            send_receipt.submit(order_id=1)
""",
    )
    assert "Ran 2 tests" in project.manage("test")
    assert runs(project) == 0


def test_a_change_of_django_settings_outside_of_tests_is_refused(project: Project) -> None:
    output = project.script(
        RUNNER
        + """
send_receipt.submit(order_id=1)
connections.settings["default"]["NAME"] = "elsewhere.sqlite3"
print(result_or_error(lambda: send_receipt.submit(order_id=2)))
"""
    )
    assert output.startswith("wrong_database: Django's database 'default' was ")
    assert "elsewhere.sqlite3" in output
    assert runs(project) == 1
    assert not (project.folder / "elsewhere.sqlite3").exists()


@pytest.mark.parametrize("project", ["sqlite"], indirect=True)
def test_wrong_settings_are_refused_by_name(project: Project) -> None:
    output = project.script(
        """
import holdfast.django
from holdfast import HoldfastError
from django.db import connections

def print_error(**given):
    try:
        holdfast.django.Holdfast(**given).start()
    except HoldfastError as error:
        print(error.code, error)

connections.settings["old"] = connections.settings["default"] | {"ENGINE": "django.db.backends.mysql"}
print_error(alias="missing")
print_error(alias="old")
print_error(url="sqlite:///x.db")
print_error(concurency=3)
"""
    )
    assert output.splitlines() == [
        "invalid_setting alias: Django has no database 'missing'; it has default, old",
        "invalid_setting Django's database 'old' has the engine django.db.backends.mysql; use SQLite or PostgreSQL",
        "invalid_setting url: the database is Django's 'default'; use holdfast.Holdfast for another",
        "invalid_setting unknown setting concurency; did you mean concurrency?",
    ]
