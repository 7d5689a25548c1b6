#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_slow_request.py LBR SOURCE: the question of doc/tour.md. SOURCE is examples/store.c, a server that saves its table after
every 5000 changes while it holds the lock. A recording of it under load tells how often and for how long, and agrees with the
number of requests that the clients made."""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

from verdict import finish, verdict

LBR, SOURCE = (os.path.realpath(path) for path in sys.argv[1:3])
CLIENTS, REQUESTS, SAVE_EVERY = 2, 20000, 5000
SAVES = CLIENTS * REQUESTS // 2 // SAVE_EVERY  # every second request is a change
SECONDS = 100


def lbr(*words):
    run = subprocess.run([LBR, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return run.stdout if run.returncode == 0 else f"status {run.returncode}: {run.stderr}"


def wait_for(condition):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def is_listening():
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex("socket") == 0


def record():
    """Records the server until its clients are done."""
    server = subprocess.Popen([LBR, "record", "-q", "-o", "store.lbr", "./store", "serve", "socket"])
    is_up = wait_for(is_listening)
    load = subprocess.run(["./store", "load", "socket", str(REQUESTS)], stdout=subprocess.PIPE, text=True, check=False)
    server.send_signal(signal.SIGTERM)
    server.wait()
    verdict("all requests are answered", is_up and load.returncode == 0 and load.stdout.startswith(f"{CLIENTS * REQUESTS} requests"),
            load)


def function(name):
    page = lbr("report", "--json", "--by", "latency", "--function", name, "store.lbr")
    rows = [row for row in json.loads(page)["functions"] if row["symbol"] == name] if page.startswith("{") else []
    verdict(f"{name}: durations", len(rows) == 1, page)
    return rows[0] if rows else None


def main():
    subprocess.run(["gcc", "-g", "-O1", "-pthread", SOURCE, "-o", "store"], check=True)
    record()
    request, change, save = (function(name) for name in ("request", "set", "save"))
    if request and change and save:
        verdict("calls: as many as the clients asked for", (request["calls"], change["calls"], save["calls"]) ==
                (CLIENTS * REQUESTS, CLIENTS * REQUESTS // 2, SAVES), request["calls"], change["calls"], save["calls"])
        verdict("a request takes as long as its change, and that as long as what it saves",
                request["longest"] >= save["longest"] > 0 and change["longest"] >= save["longest"], request, change, save)
        where = save["longest_call"]
        tree = lbr("calls", "--thread", str(where["thread"]), "--between", f"{where['first_branch']}..{where['last_branch']}",
                   "--function", "save", "store.lbr")
        verdict("the longest save: its calls, and the system call that waits for the disk", "fsync(" in tree and "fwrite" in tree,
                tree)
    table = lbr("stat", "--json", "--syscalls", "--top", "all", "store.lbr")
    counts = {row["name"]: row["calls"] for row in json.loads(table)["syscalls"]} if table.startswith("{") else {}
    verdict("system calls: one fsync for each save", counts.get("fsync") == SAVES, table)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    main()
    os.chdir("/")
finish()
