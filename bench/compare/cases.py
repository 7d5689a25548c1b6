# SPDX-License-Identifier: Apache-2.0
"""The programs that are run, in sets, and making what they work on. A program takes one to two seconds natively, one of
the micro set half a second."""
import os
import shutil
import subprocess

from . import inputs, projects

FOLDER = os.path.dirname(os.path.abspath(__file__))
TEXT_BLOCK = 4000000
MICRO_OPTIONS = ["-O2", "-fno-inline", "-fno-optimize-sibling-calls"]


class Case:
    """A program: its command, what it reads, and the same at a tenth for peers that are slow. `processes` says how many
    it starts for each unit of the amount."""

    def __init__(self, name, package, find, make, amount, processes=0):
        self.name, self.package, self.amount, self.processes = name, package, amount, processes
        self.find, self.make = find, make

    def program(self):
        return self.find()

    def prepare(self, program, folder, scale):
        """Makes the input for `scale` times the amount. The command and the file for its standard input, or None."""
        path = os.path.join(folder, "%s-%g" % (self.name, scale))
        return self.make(program, path, self.amount_at(scale))

    def amount_at(self, scale):
        return max(int(self.amount * scale), 1)


def find_elf(*names):
    """First program of these names on the path that is no script: a script would be measured with its shell, and not
    every peer follows it."""
    for name in names:
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
            path = os.path.join(folder, name)
            if not (os.path.isfile(path) and os.access(path, os.X_OK)):
                continue
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    return os.path.realpath(path)
    return None


def find_cc1():
    gcc = shutil.which("gcc")
    if not gcc:
        return None
    path = subprocess.run([gcc, "-print-prog-name=cc1"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return path if os.path.isabs(path) else None


def make_text(options):
    """A compressor that reads its standard input."""
    def make(program, path, amount):
        with open(path, "wb") as file:
            file.write(inputs.repeated(inputs.text(min(amount, TEXT_BLOCK)), amount))
        return [program, *options], path
    return make


def make_sql(program, path, amount):
    with open(path, "wb") as file:
        file.write(inputs.sql(amount))
    return [program, "-batch", "-init", "/dev/null", ":memory:"], path


def make_work(suffix, options=()):
    """A program for an interpreter, which takes its amount of work as an argument."""
    def make(program, path, amount):
        del path
        return [program, *options, os.path.join(FOLDER, "work." + suffix), str(amount)], None
    return make


def make_c(program, path, amount):
    inputs.preprocessed(shutil.which("gcc"), path, amount)
    return [program, "-quiet", "-fpreprocessed", "-O2", path + ".i", "-o", "-"], None


def make_micro(name):
    """A construct of micro.c."""
    def make(program, path, amount):
        binary = os.path.join(os.path.dirname(path), "micro")
        if not os.path.exists(binary):
            subprocess.run([program, *MICRO_OPTIONS, "-o", binary, os.path.join(FOLDER, "micro.c")], check=True)
        return [binary, name, str(amount)], None
    return make


def make_java(program, path, amount):
    """The class is compiled before, natively."""
    folder = path + ".classes"
    subprocess.run([os.path.join(os.path.dirname(program), "javac"), "-d", folder, os.path.join(FOLDER, "Work.java")],
                   check=True)
    return [program, "-cp", folder, "Work", str(amount)], None


def find_java():
    """A java with its compiler beside it."""
    java = find_elf("java")
    return java if java and os.access(os.path.join(os.path.dirname(java), "javac"), os.X_OK) else None


def make_cplusplus(program, path, amount):
    projects.cplusplus(path + ".cc", amount)
    return [program, "-O2", "-S", "-o", "-", path + ".cc"], None


def make_configure(program, path, amount):
    projects.configure(path, amount)
    return [program, path], None


def make_project(program, path, amount):
    projects.project(path + ".d", amount)
    return [program, "-s", "-j2", "-B", "-C", path + ".d"], None


def make_spawns(program, path, amount):
    del path
    script = "i=0; while [ $i -lt %d ]; do %s; i=$((i + 1)); done" % (amount, find_elf("true"))
    return [program, "-c", script], None


def micro(name, amount):
    return Case(name, "gcc", lambda: shutil.which("gcc"), make_micro(name), amount)


PROGRAMS = [
    Case("gzip", "gzip", lambda: find_elf("gzip"), make_text(["-6", "-c"]), 21000000),
    Case("bzip2", "bzip2", lambda: find_elf("bzip2"), make_text(["-9", "-c"]), 20000000),
    Case("xz", "xz-utils", lambda: find_elf("xz"), make_text(["-6", "-T1", "-c"]), 3000000),
    Case("sqlite3", "sqlite3", lambda: find_elf("sqlite3"), make_sql, 1500),
    Case("lua", "lua5.4", lambda: find_elf("lua5.4", "lua"), make_work("lua"), 1200),
    Case("perl", "perl", lambda: find_elf("perl"), make_work("pl"), 1400),
    Case("python3", "python3", lambda: find_elf("python3"), make_work("py", ["-B"]), 1400),
    Case("cc1", "gcc", find_cc1, make_c, 28),
]

MICRO = [
    micro("fib", 2000),
    micro("tree", 24),
    micro("leaves", 130000000),
    micro("chain", 14000000),
    micro("table", 240000000),
    micro("virtual", 44000000),
    micro("goto", 1400000),
    micro("switch", 1200000),
    micro("steady", 300000000),
    micro("random", 45000000),
    micro("qsort", 4000000),
    micro("memcpy", 45000000),
]

WORK = [
    Case("node", "nodejs", lambda: find_elf("node"), make_work("js"), 3000),
    Case("java", "openjdk-17-jdk-headless", find_java, make_java, 3000),
    Case("g++", "g++", lambda: find_elf("g++"), make_cplusplus, 3),
    Case("configure", "gcc", lambda: shutil.which("gcc") and find_elf("sh"), make_configure, 30, processes=13.5),
    Case("make", "make", lambda: shutil.which("gcc") and find_elf("make"), make_project, 100, processes=3),
    Case("true", "coreutils", lambda: find_elf("sh"), make_spawns, 200, processes=1),
]

SETS = {"programs": PROGRAMS, "micro": MICRO, "work": WORK}
