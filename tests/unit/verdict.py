# SPDX-License-Identifier: Apache-2.0
"""Lines of a test: "ok NAME", or "FAIL NAME" and why."""
import sys

WHY_MOST = 1000  # characters of each line of a reason

failures = 0


def verdict(name, is_good, *why):
    global failures
    print(("ok " if is_good else "FAIL ") + name, flush=True)
    if not is_good:
        failures += 1
        print("\n".join("  | " + str(line)[:WHY_MOST] for line in why), flush=True)


def finish():
    """Ends the test."""
    sys.exit(1 if failures else 0)
