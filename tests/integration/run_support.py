"""For the tests of sylar-run: a program's result without it and with it."""
import subprocess
import sys

RUN = sys.argv.pop()


def result(*command, **more):
    """(exit status, standard output, standard error) of a program."""
    more.setdefault("input", b"")
    ended = subprocess.run(command, capture_output=True, timeout=120, check=False, **more)
    return ended.returncode, ended.stdout, ended.stderr


def both(test, *command, **more):
    """The result of `command`, which must be the same under sylar-run."""
    native = result(*command, **more)
    test.assertEqual(result(RUN, *command, **more), native, command)
    return native
