"""The system behind `./run`: one process tree with everything in it.

    supervisor ──▶ site      API, dashboard, start page
               ──▶ worker    the jobs of all applications
               ──▶ …         each application's own processes

The supervisor starts them, restarts one that dies, and stops all of them in order. Each child holds the reading end of
a pipe to the supervisor: when the supervisor is gone, even by `kill -9`, the child ends itself.
"""
