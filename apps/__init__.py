"""Applications on Holdfast. `./run` starts all of them.

Each is a folder with an `application.py`, which describes it, lists its processes and checks its work, and a `jobs.py`,
which defines its jobs. The applications use only Holdfast's public modules, and share `apps.shared`.
"""
