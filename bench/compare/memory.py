# SPDX-License-Identifier: Apache-2.0
"""The memory of a small program that waits, natively and under each lbr, and that of lbr itself."""
import os
import signal
import subprocess
import time

from . import measure

AMOUNT = 200000
FIELDS = ("peak", "rss", "pss")  # MiB: highest resident size so far, the present one, shared pages in proportion


def read_fields(path):
    """The lines "NAME: N kB" of a file of /proc, in MiB."""
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return {words[0].rstrip(":"): int(words[1]) / 1024 for words in lines if len(words) == 3 and words[2] == "kB"}


def size_of(pids):
    total = dict.fromkeys(FIELDS, 0)
    for pid in pids:
        present = read_fields("/proc/%d/smaps_rollup" % pid)
        total["peak"] += read_fields("/proc/%d/status" % pid)["VmHWM"]
        total["rss"] += present["Rss"]
        total["pss"] += present["Pss"]
    return total


def children_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="utf-8") as file:
        own = [int(word) for word in file.read().split()]
    return own + [each for child in own for each in children_of(child)]


def sizes(pid, is_under):
    """Of the program, and of the lbr that it runs under."""
    return {"program": size_of(children_of(pid) if is_under else [pid]), "lbr": size_of([pid] if is_under else [])}


def settled(pid, is_under):
    """The sizes when lbr has read what the program logged: when they no longer change."""
    last = sizes(pid, is_under)
    for _ in range(50):
        time.sleep(0.05)
        now = sizes(pid, is_under)
        if now == last:
            break
        last = now
    return last


def measure_one(command, environment, is_under):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env={**measure.ENVIRONMENT, **environment}, process_group=0)
    try:
        if process.stdout.readline() != b"ready\n":
            return {"error": "the program did not start"}
        result = settled(process.pid, is_under)
        process.communicate(timeout=60)
        return result if process.returncode == 0 else {"error": "status %d" % process.returncode}
    except (OSError, KeyError, subprocess.TimeoutExpired) as error:
        return {"error": repr(error)}
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def measure_all(command, peers):
    """{"native" or a peer's name: its sizes, or an error}, of the peers that are an lbr."""
    result = {"native": measure_one(command, {}, False)}
    for peer in peers:
        result[peer.name] = measure_one(peer.command(command), peer.environment(), True)
        peer.clean()
    return result
