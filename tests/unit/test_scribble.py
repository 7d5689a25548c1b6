#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_scribble.py LBR SCRIBBLE [MORE]: programs that write over the memory that they share with lbr.

SCRIBBLE (tests/process/scribble.c) does that in many ways, each of which has a number and is the same in every run. lbr must
end in bounded time with bounded memory, say something, leave a trace that can be read, and end at SIGTERM. With MORE numbers
up to that are tried."""
import os
import select
import signal
import subprocess
import sys
import tempfile
import time

LBR, SCRIBBLE = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
NUMBERS = int(sys.argv[3]) if len(sys.argv) > 3 else 12
SECONDS = 60  # for one run, on a machine that is busy with others
MEMORY_MB = 400
failures = 0


def verdict(name, problems):
    global failures
    print(f"FAIL {name}: {'; '.join(problems[:8])}" if problems else f'ok {name}', flush=True)
    failures += bool(problems)


class Run:
    """One run of lbr; `is_ended` sends SIGTERM once the program has scribbled."""

    def __init__(self, mode, words, is_ended=False):
        for name in ('out', 'out.incomplete'):
            if os.path.exists(name):
                os.unlink(name)
        command = [LBR, mode, '--output', 'out', '--', SCRIBBLE, *words] + (['wait'] if is_ended else [])
        with open('errors', 'w') as errors:
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
        self.problems = []
        is_told = select.select([child.stdout], [], [], SECONDS)[0]
        self.said = child.stdout.readline().decode() if is_told else ''
        if not is_told:
            self.problems.append('it hangs')
        if is_ended:
            os.kill(child.pid, signal.SIGTERM)
        self.wait(child.pid)
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.stdout.close()
        child.returncode = 0  # it is reaped
        with open('errors') as errors:
            self.errors = errors.read()

    def wait(self, pid):
        end = time.monotonic() + SECONDS
        while True:
            done, status, usage = os.wait4(pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() > end:
                self.problems.append('it did not end')
                os.killpg(pid, signal.SIGKILL)
                _, status, usage = os.wait4(pid, 0)
                break
            time.sleep(0.01)
        self.status = os.waitstatus_to_exitcode(status)
        if usage.ru_maxrss > MEMORY_MB * 1024:
            self.problems.append(f'it took {usage.ru_maxrss // 1024} MB')

    def check_trace(self):
        """lbr has the last word, whatever killed the program; and the trace can be read."""
        if 'lbr: ' not in self.errors:
            self.problems.append(f'status {self.status}, and lbr said nothing')
        if os.path.exists('out'):
            reader = subprocess.run([LBR, 'stat', '--no-symbols', 'out'], capture_output=True, timeout=SECONDS)
            if reader.returncode not in (0, 1):
                self.problems.append(f'lbr stat: {reader.returncode}')
        elif 'lbr: ' in self.errors and self.status != 125:
            self.problems.append('no trace')


def many(mode, way, is_ended):
    problems = []
    for number in range(NUMBERS):
        run = Run(mode, [way, str(number)], is_ended)
        if mode == 'record':
            run.check_trace()
        problems += [f'number {number}: {problem}' for problem in run.problems]
    verdict(f"{mode} {way}{', ended by SIGTERM' if is_ended else ''}", problems)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for is_ended in (False, True):
            run = Run('record', ['used'], is_ended)
            run.check_trace()
            verdict(f"record used{', ended by SIGTERM' if is_ended else ''}", run.problems)
        run = Run('record', ['truncate'])
        run.check_trace()
        if run.said != 'refused\n' or run.status != 7 or 'destroyed' in run.errors:
            run.problems.append(f'status {run.status}, {run.said.strip()}: {run.errors.strip()}')
        verdict('record truncate: the kernel refuses it, and nothing is lost', run.problems)
        for mode in ('record', 'run'):
            for way in ('punch', 'flip', 'fill'):
                for is_ended in (False, True) if mode == 'record' else (False,):
                    many(mode, way, is_ended)
        os.chdir('/')
    sys.exit(failures != 0)


main()
