"""Virtual environments: Python's packages as a file pins them, in a folder of their own."""

import os
import sys


def venv_python(directory, pinned, run, also=(), fill=None):
    """The interpreter of an environment in `directory` with the packages that the file `pinned`
    names. It is made anew when that file, or one of the files `also`, has changed; then
    `fill(python)` adds to it. `run(command, timeout_s)` gives status and output of a command.
    RuntimeError says which command failed, and how."""
    python = os.path.join(directory, "bin", "python")
    mark = os.path.join(directory, "requirements.txt")
    wanted = "".join(text(name) for name in (pinned, *also))
    if os.path.exists(mark) and text(mark) == wanted:
        return python
    # Debian's python3 when it is there, since the one on the path may lack venv.
    base = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    for command in ([base, "-m", "venv", "--clear", directory],
                    [python, "-m", "pip", "install", "-q", "-r", pinned]):
        status, output = run(command, 600)
        if status != 0:
            raise RuntimeError(f"{' '.join(command)}:\n{output}")
    if fill:
        fill(python)
    with open(mark, "w", encoding="utf-8") as file:
        file.write(wanted)
    return python


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()
