"""The system behind `./run`: Holdfast and all sample applications in one process tree.

    supervisor ──▶ site      API, dashboard, start page
               ──▶ worker    runs the jobs of the tour
               ──▶ …         the processes of each application

The supervisor starts these processes, restarts one that dies, and stops them in order. Each child process inherits the
reading end of a pipe from the supervisor. The pipe closes when the supervisor dies, even by `kill -9`, and the child
then stops itself.
"""
