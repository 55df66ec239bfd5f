"""The system behind `./run`: one process tree with everything in it.

    supervisor ──▶ site      API, dashboard, start page
               ──▶ worker    the jobs of all applications
               ──▶ …         each application's own processes

The supervisor starts them, restarts one that dies, and stops all of them in order. Each child is on a leash: when the
supervisor is gone, however it went, the child ends itself.
"""
