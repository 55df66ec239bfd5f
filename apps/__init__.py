"""Applications on Holdfast. `./run` starts all of them.

Each is a folder with an `application.py` that says what it shows, which processes it has and how its work is checked,
and a `jobs.py` with what it asks of Holdfast. They use Holdfast's public modules only, and share `apps.shared`.
"""
