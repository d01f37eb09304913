"""What a test needs and this machine has not is a reason to skip it on somebody's laptop, and a
failure with CI=true: there tools/setup has installed all of it, and a test that is never run would
not be missed. tests/tools/missing.h is the same for C."""

import os


def all_has_to_be_here():
    return os.environ.get("CI", "") not in ("", "0", "false")
