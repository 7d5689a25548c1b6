# SPDX-License-Identifier: Apache-2.0
"""Servers that lbr attaches to, each with a load that checks every answer that it can check. bench/attach measures with
them, tests/unit/test_attach_servers.py tests with them. Servers listen on 127.0.0.1 or on a socket in the folder."""
import ctypes
import http.client
import itertools
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = os.path.join(ROOT, "tests", "process", "attach")
PATIENCE = 60
REQUESTS = 5000000  # the most of one ab; more than any run makes
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class Failure(Exception):
    """A server or a load did something wrong."""


def until(condition, patience=PATIENCE):
    """The condition's value as soon as it is true; its last value after the patience."""
    end = time.monotonic() + patience
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.01)  # the condition decides, not the time
    return value


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def words_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


# ---- processes ----


def children(pid):
    found = []
    try:
        for thread in os.listdir("/proc/%d/task" % pid):
            found += map(int, words_of("/proc/%d/task/%s/children" % (pid, thread)).split())
    except OSError:
        pass
    return found


def descendants(pid):
    found = children(pid)
    for child in found:
        found += [other for other in descendants(child) if other not in found]
    return found


def adopt_orphans():
    """Processes that outlive their parents become our children, so that end_all finds them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_all():
    """Kills every process that this one has started."""
    end = time.monotonic() + PATIENCE
    while (found := descendants(os.getpid())) and time.monotonic() < end:
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        time.sleep(0.01)


def is_alive(pid):
    state = words_of("/proc/%d/stat" % pid).rpartition(")")[2].split()
    return bool(state) and state[0] not in "ZX"


# ---- loads ----


class Worker(threading.Thread):
    """One client that checks each answer. connect() returns request(i), which returns None or tells what was wrong."""

    def __init__(self, connect):
        super().__init__(daemon=True)
        self.connect, self.count, self.error, self.is_over = connect, 0, None, False
        self.longest = 0
        self.start()

    def run(self):
        try:
            request = self.connect()
            for i in itertools.count():
                if self.is_over:
                    return
                before = time.monotonic()
                self.error = request(i)
                if self.error:
                    return
                self.longest = max(self.longest, time.monotonic() - before)
                self.count += 1
        except (OSError, http.client.HTTPException, ValueError, Failure) as error:
            self.error = "request %d: %s: %s" % (self.count, type(error).__name__, error)


def interrupt_allow():
    """A program that a shell starts in the background ignores SIGINT, and so would the load, which is ended by it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Load:
    """Workers, and a program that makes as many requests as it can (command) until it is ended by a signal."""

    def __init__(self, folder, name, command, connects, environment=None, user=None):
        self.log = os.path.join(folder, name + ".load")
        self.workers = [Worker(connect) for connect in connects]
        with open(self.log, "w", encoding="utf-8") as file:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, user=user,
                                            env={**os.environ, "LC_ALL": "C", **(environment or {})},
                                            preexec_fn=interrupt_allow)

    def count(self):
        """Of requests whose answers were checked."""
        return sum(worker.count for worker in self.workers)

    def take_longest(self):
        """Seconds of the longest request since the last call."""
        longest = max(worker.longest for worker in self.workers)
        for worker in self.workers:
            worker.longest = 0
        return longest

    def errors(self):
        errors = [worker.error for worker in self.workers if worker.error]
        if self.process.poll() is not None:
            errors.append("the load has ended with status %d: %s" % (self.process.returncode, self.tail()))
        return errors

    def tail(self):
        return " / ".join(words_of(self.log).strip().replace("\r", "\n").split("\n")[-3:])

    def end(self, errors_in=lambda text: []):
        """Returns everything that went wrong."""
        errors = self.errors()
        for worker in self.workers:
            worker.is_over = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                errors.append("the load does not end")
        for worker in self.workers:
            worker.join(PATIENCE)
            if worker.is_alive():
                errors.append("request %d has got no answer" % worker.count)
            elif worker.error and worker.error not in errors:
                errors.append(worker.error)
        return errors + errors_in(words_of(self.log))


# ---- servers ----


class Server:
    """The program is started by start(folder); targets() are the lists of processes to attach to, the busiest first."""

    name = package = None
    programs = ()  # that must be there
    is_compiler = False  # it maps and changes code by itself
    measured = 0  # the index in targets() of those that bench/attach measures

    def missing(self):
        lacking = [word for word in self.programs if not self.find(word)]
        return "%s is not installed (Debian: %s)" % (lacking[0], self.package) if lacking else None

    def find(self, word):
        return shutil.which(word, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")

    def spawn(self, command, user=None):
        with open(os.path.join(self.folder, self.name + ".log"), "a", encoding="utf-8") as file:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=self.folder,
                                            start_new_session=True, user=user)

    def start(self, folder):
        """Starts it and waits until it answers. Another program may have taken the port: another one is tried then."""
        self.folder = folder
        self.prepare()
        for _ in range(3):
            self.port = free_port()
            self.launch()
            if until(lambda: self.process.poll() is not None or self.answers()) and self.process.poll() is None:
                self.pid = self.process.pid
                return
            self.process.kill()
            self.process.wait()
        raise Failure("%s does not start: %s" % (self.name, self.tail()))

    def tail(self):
        return " / ".join(words_of(os.path.join(self.folder, self.name + ".log")).strip().split("\n")[-10:])

    def death(self):
        """How it has ended and what it has said last, or nothing."""
        status = self.process.poll()
        return "" if status is None else " (the server has ended with status %d: %s)" % (status, self.tail())

    def prepare(self):
        pass

    def answers(self):
        try:
            self.requests()
            return True
        except (OSError, http.client.HTTPException, Failure):
            return False

    def targets(self):
        return [[self.pid]]

    def is_busy(self, pids):
        """Whether a recording of these processes must have branches."""
        return True

    def requests(self):
        """Counts the requests that the server has answered so far."""
        raise NotImplementedError

    def errors_in(self, text):
        """What the output of the load complains about."""
        return []

    def check(self):
        """Returns what is wrong with the server's data after the load."""
        return []

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Failure("%s does not end when it gets SIGTERM" % self.name) from None


class Redis(Server):
    name, package, programs = "redis", "redis-server redis-tools", ("redis-server", "redis-benchmark")

    def launch(self):
        self.spawn([self.find("redis-server"), "--port", "0", "--unixsocket", self.path(), "--dir", self.folder,
                    "--save", "", "--appendonly", "yes", "--io-threads", "1"])

    def path(self):
        return os.path.join(self.folder, "redis.socket")

    def connect(self):
        """Returns a function that sends a command and returns the answer."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(self.path())
        file = connection.makefile("rb")

        def command(*words):
            connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
            line = file.readline()
            if line[:1] == b"$":
                return file.read(int(line[1:]) + 2)[:-2]
            if line[:1] in b"-" or not line.endswith(b"\r\n"):
                raise Failure("redis answers %s" % line)
            return line[1:-2]

        return command

    def requests(self):
        found = re.search(rb"total_commands_processed:(\d+)", self.connect()(b"INFO", b"stats"))
        return int(found.group(1))

    def checker(self):
        command = self.connect()
        key = b"key %d" % threading.get_ident()

        def request(i):
            text = (b"%d " % i) * (1 + i * 37 % 3000)
            if command(b"SET", key, text) != b"OK" or command(b"GET", key) != text:
                return "redis does not return the value that was set"
            if int(command(b"INCR", key + b" count")) != i + 1:
                return "redis has lost a count"
            if command(b"EVAL", b"return redis.call('STRLEN', KEYS[1])", b"1", key) != b"%d" % len(text):
                return "a script in redis has computed a wrong length"
            return None

        return request

    def load(self):
        command = [self.find("redis-benchmark"), "-s", self.path(), "-l", "-q", "-c", "8", "-n", "10000", "-r", "10000",
                   "-t", "set,get,incr,lpush,lpop,sadd,hset,zadd,mset"]
        return Load(self.folder, self.name, command, [self.checker, self.checker])

    def errors_in(self, text):
        return ["redis-benchmark: " + line for line in re.split("[\r\n]", text) if re.search("(?i)error|fail", line)]


class Web(Server):
    """A server that speaks HTTP. ab makes the load and workers check answers."""

    path = "/work/7"

    def get(self, path, connection=None):
        if not connection:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            try:
                return self.get(path, connection)
            finally:
                connection.close()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise Failure("%s answers with status %d" % (path, answer.status))
        return body

    def requests(self):
        return int(self.get("/count"))

    @staticmethod
    def expected(number):
        value = number
        for i in range(1000):
            value = (value ^ i) * 16777619 & 0xFFFFFFFF
        return b"%08x\n" % value

    def check_answer(self, i, connection):
        number = i % 50
        if number not in self.known:
            self.known[number] = self.expected(number)
        body = self.get("/work/%d" % number, connection)
        return None if body == self.known[number] else "/work/%d answers %s, not %s" % (number, body[:40], self.known[number])

    known = {}

    def checker(self):
        kept = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

        def request(i):
            return self.check_answer(i, kept)

        return request

    def checker_of_connections(self):
        """A new connection for each request."""
        return lambda i: self.check_answer(i, None)

    def load(self):
        command = [self.find("ab"), "-q", "-k", "-c", "8", "-t", "86400", "-n", str(REQUESTS), "-s", str(PATIENCE),
                   "http://127.0.0.1:%d%s" % (self.port, self.path)]
        return Load(self.folder, self.name, command, [self.checker, self.checker_of_connections])

    def errors_in(self, text):
        found = re.search(r"Failed requests: +(\d+)", text)
        errors = ["ab: " + line for line in text.split("\n") if re.match(r"apr_|Non-2xx|Test aborted|Total of", line)]
        if not found:
            errors.append("ab has not counted failures: " + text[-300:])
        elif found.group(1) != "0":
            errors.append("ab: failed requests: " + found.group(1))
        return errors


class Nginx(Web):
    name, package, programs, path = "nginx", "nginx-light apache2-utils", ("nginx", "ab"), "/small"
    measured = 2  # both workers

    def prepare(self):
        self.bodies = {"small": b"answer\n" * 90, "large": bytes(range(256)) * 4096}
        for name, body in self.bodies.items():
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(body)

    def launch(self):
        configuration = """daemon off; worker_processes 2; pid %(folder)s/nginx.pid; error_log stderr warn; %(user)s
events { worker_connections 200; }
http { access_log off; client_body_temp_path %(folder)s/t1; proxy_temp_path %(folder)s/t2; fastcgi_temp_path %(folder)s/t3;
  uwsgi_temp_path %(folder)s/t4; scgi_temp_path %(folder)s/t5; sendfile on;
  server { listen 127.0.0.1:%(port)d; root %(folder)s; location = /count { stub_status; } } }
""" % {"folder": self.folder, "port": self.port, "user": "user root;" if os.geteuid() == 0 else ""}
        path = os.path.join(self.folder, "nginx.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(configuration)
        self.spawn([self.find("nginx"), "-c", path, "-p", self.folder, "-e", "stderr"])

    def requests(self):
        return int(self.get("/count").split()[9])

    def targets(self):
        workers = children(self.pid)
        return [[worker] for worker in workers] + [workers, [self.pid], [self.pid, *workers]]

    def is_busy(self, pids):
        return list(pids) != [self.pid]

    def check_answer(self, i, connection):
        name = "large" if i % 8 == 0 else "small"
        return None if self.get("/" + name, connection) == self.bodies[name] else "nginx sends a wrong file"


class Go(Web):
    name, package, programs = "go", "golang-go apache2-utils", ("go", "ab")
    words = ()  # "spin": a goroutine computes all the time, which the Go runtime preempts by signals

    def prepare(self):
        environment = {**os.environ, "GOCACHE": os.path.join(self.folder, "go-cache"), "GO111MODULE": "off",
                       "GOFLAGS": "", "CGO_ENABLED": "0"}
        subprocess.run([self.find("go"), "build", "-o", self.folder + "/go-server", os.path.join(SOURCES, "server.go")],
                       env=environment, cwd=self.folder, check=True, stdin=subprocess.DEVNULL)

    def launch(self):
        self.spawn([self.folder + "/go-server", str(self.port), *self.words])


class Java(Web):
    name, package, programs = "java", "openjdk-17-jdk-headless apache2-utils", ("java", "javac", "ab")
    is_compiler = True

    def prepare(self):
        subprocess.run([self.find("javac"), "-d", self.folder, os.path.join(SOURCES, "Server.java")], check=True,
                       stdin=subprocess.DEVNULL)

    def launch(self):
        self.spawn([self.find("java"), "-Xmx200m", "-XX:-UsePerfData", "-cp", self.folder, "Server", str(self.port)])


class Node(Web):
    name, package, programs = "node", "nodejs apache2-utils", ("node", "ab")
    is_compiler = True

    def launch(self):
        self.spawn([self.find("node"), os.path.join(SOURCES, "server.js"), str(self.port)])


class Postgres(Server):
    name, package, programs = "postgres", "postgresql", ("postgres", "initdb", "pgbench", "psql")
    measured = 1  # all that serve pgbench

    def find(self, word):
        folders = sorted((os.path.join("/usr/lib/postgresql", version, "bin") for version in
                          (os.listdir("/usr/lib/postgresql") if os.path.isdir("/usr/lib/postgresql") else [])), reverse=True)
        return shutil.which(word, path=":".join([*folders, os.environ.get("PATH", "")]))

    def prepare(self):
        """PostgreSQL refuses to run as root."""
        self.user = None
        if os.geteuid() == 0:
            names = {entry.pw_name for entry in pwd.getpwall()}
            self.user = "postgres" if "postgres" in names else "nobody"
        self.home = os.path.join(self.folder, "postgres")
        os.mkdir(self.home)
        if self.user:
            os.chmod(self.folder, 0o755)
            os.chown(self.home, pwd.getpwnam(self.user).pw_uid, -1)
        self.run("initdb", "-D", self.home + "/data", "-A", "trust", "-U", "lbr", "--no-sync", "--no-locale")

    def run(self, program, *words):
        done = subprocess.run([self.find(program), *words], user=self.user, cwd=self.home, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False,
                              env={**os.environ, "LC_ALL": "C"}, text=True)
        if done.returncode:
            raise Failure("%s: status %d: %s" % (program, done.returncode, done.stdout[-400:]))
        return done.stdout

    def connection(self):
        return ["-h", self.home, "-U", "lbr"]

    def query(self, text):
        return self.run("psql", *self.connection(), "-X", "-A", "-t", "-q", "-c", text, "postgres").strip()

    def launch(self):
        self.spawn([self.find("postgres"), "-D", self.home + "/data", "-c", "listen_addresses=", "-k", self.home,
                    "-c", "max_parallel_workers_per_gather=2", "-c", "fsync=off", "-c", "shared_buffers=32MB"], user=self.user)

    def answers(self):
        try:
            return self.query("select 1") == "1"
        except Failure:
            return False

    def start(self, folder):
        super().start(folder)
        self.run("pgbench", *self.connection(), "-i", "-q", "-s", "1", "postgres")

    def backends(self):
        rows = self.query("select pid from pg_stat_activity where application_name = 'pgbench' order by pid")
        return [int(row) for row in rows.split()]

    def targets(self):
        backends = until(lambda: len(found := self.backends()) >= 4 and found)
        return [[backends[0]], backends, [self.pid], [self.pid, *backends]]

    def checker(self):
        """Each request is another connection, for which the postmaster starts a process."""

        def request(i):
            answer = self.query("select sum(x * %d), md5(string_agg(x::text, ',')) from generate_series(1, 2000) x" % i)
            return None if answer == "%d|109fd1dcec14f5b08e0edc9de1560a53" % (2001000 * i) else "psql prints " + answer

        return request

    def load(self):
        command = [self.find("pgbench"), *self.connection(), "-n", "-c", "4", "-T", "86400", "-P", "1", "postgres"]
        return Load(self.home, self.name, command, [self.checker], user=self.user)

    def requests(self):
        """pgbench tells every second how many transactions it has made in it."""
        rates = re.findall(r"progress: [\d.]+ s, ([\d.]+) tps", words_of(os.path.join(self.home, self.name + ".load")))
        return int(sum(map(float, rates)))

    def errors_in(self, text):
        return ["pgbench: " + line for line in text.split("\n") if re.search("abort|error|FATAL|PANIC", line)]

    def check(self):
        """The rule of TPC-B: the sums of the balances are the sum of the changes."""
        sums = self.query("select (select sum(abalance) from pgbench_accounts), (select sum(tbalance) from pgbench_tellers), "
                          "(select sum(bbalance) from pgbench_branches), (select sum(delta) from pgbench_history)")
        errors = [] if len(set(sums.split("|"))) == 1 else ["the balances differ: " + sums]
        return errors + ["postgres: " + line for line in words_of(os.path.join(self.folder, self.name + ".log")).split("\n")
                         if re.search("terminated by signal|PANIC|crash", line)]


SERVERS = (Redis, Nginx, Postgres, Node, Go, Java)


# ---- traces ----


def stat_read(lbr, trace):
    """The totals of a trace, or {"error": why not}."""
    done = subprocess.run([lbr, "stat", "--no-symbols", "--json", trace], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=300, check=False)
    if done.returncode:
        return {"error": done.stderr.decode(errors="replace").strip()}
    return json.loads(done.stdout)
