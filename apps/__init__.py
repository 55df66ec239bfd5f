"""Applications on Holdfast, and the system that runs them all (`./run`).

Each is a folder with an `application.py` that says what it shows, which processes it has and how its work is checked.
They are guests: they import `holdfast` and `holdfast.web`, and nothing deeper.
"""
