#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_debuginfod.sh LBR: debug information that is not in the program: from a folder of build-ids, by .gnu_debuglink,
# and from a server (elfutils' debuginfod on the loopback device). What is right is what nm and addr2line say of the
# program with all of it.
. "$(dirname "$0")/shell.sh"
cd "$scratch" || exit 1
export DEBUGINFOD_CACHE_PATH=$scratch/cache HOME=$scratch
server=
trap '[ -z "$server" ] || kill $server; rm -rf "$scratch"' EXIT

cat >parts.c <<'END'
static volatile int sink;
static __attribute__((noinline)) int hidden(int n)
{
  return n * 3 + sink; /* line 4 */
}
__attribute__((used)) void run(void)
{
  for (int i = 0; i < 5; i++)
    sink = hidden(i) & 1;
  __asm__ volatile("syscall" : : "a"(60), "D"(0) : "rcx", "r11", "memory");
}
__asm__(".globl _start\n_start: and $-16, %rsp\n call run\n hlt");
END
mkdir -p home store
${CC:-cc} -g -O1 -static -no-pie -fno-pie -nostdlib -ffreestanding -fno-stack-protector -Wl,--build-id=sha1 -o whole parts.c &&
  objcopy --only-keep-debug whole store/parts.debug && strip -o home/parts whole || exit 1
id=$(readelf -n whole | sed -n 's/ *Build ID: //p')
"$lbr" record --quiet -o parts.lbr -- home/parts >out 2>err || exit 77

# named ARGUMENT...: does report know the name and the line, as addr2line has them?
named()
{
  "$lbr" report --by line --json "$@" parts.lbr >lines 2>err &&
    python3 -c 'import json, sys
rows = {(row["function"], row["line"]): row["executed"] for row in json.load(open("lines"))["lines"]}
assert rows.get(("hidden", 4)) == 5, rows' 2>err.python
}
nameless()
{
  "$lbr" report --by function --json parts.lbr >functions 2>err && ! grep -q '"hidden"' functions
}
addr2line -f -e whole "$(nm whole | sed -n 's/ t hidden$//p')" | tr '\n' ' ' | grep -q '^hidden .*parts.c:[34]'
verdict 'addr2line knows the function' $?
nameless && [ ! -s err ]
verdict 'without debug information there is no name' $?

# ---- on this machine ----

cp store/parts.debug home/ && objcopy --add-gnu-debuglink=home/parts.debug home/parts home/linked && mv home/linked home/parts
named
verdict 'a debug file beside the program, by .gnu_debuglink' $?
mkdir home/.debug && mv home/parts.debug home/.debug/
named
verdict 'a debug file in .debug, by .gnu_debuglink' $?
sed 's/line 4/line 5/' parts.c >other.c
${CC:-cc} -g -O2 -static -no-pie -fno-pie -nostdlib -ffreestanding -fno-stack-protector -Wl,--build-id=sha1 -o other other.c &&
  objcopy --only-keep-debug other home/.debug/parts.debug
nameless
verdict 'a debug file of another program is not used' $?
rm -r home/.debug
# By build-id below /usr/lib/debug, seen through a folder of this test where that is permitted.
if unshare -rm true 2>err; then
  mkdir -p "debug/.build-id/${id:0:2}" && cp store/parts.debug "debug/.build-id/${id:0:2}/${id:2}.debug"
  if [ -d /usr/lib/debug ]; then
    unshare -rm sh -c 'mount --bind debug /usr/lib/debug && exec "$0" report --by line --json parts.lbr' "$lbr" >lines 2>err &&
      grep -q '"hidden"' lines
    verdict 'a debug file by its build-id below /usr/lib/debug' $?
  else
    echo 'skip the folder of build-ids: there is no /usr/lib/debug'
  fi
else
  echo 'skip the folder of build-ids: no name spaces here'
fi
nameless
verdict 'and without it the name is gone' $?

# ---- from a server ----

ldconfig -p | grep -q 'libdebuginfod\.so\.1' || { echo 'skip servers: no libdebuginfod.so.1' && exit $((failures > 0)); }
command -v debuginfod >/dev/null || { echo 'skip servers: no debuginfod' && exit $((failures > 0)); }
port=$(python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
debuginfod -F -d :memory: -p "$port" store >server.log 2>&1 &
server=$!
python3 - "$port" "$id" <<'END'
import sys, time, urllib.request
deadline = time.monotonic() + 60
while True:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/buildid/{sys.argv[2]}/debuginfo", timeout=10).read()
        break
    except OSError:
        assert time.monotonic() < deadline, "no answer"
        time.sleep(0.1)
END
verdict 'the server has the debug file' $?

nameless
verdict 'a server that nobody named is not asked' $?
[ ! -e cache ]
verdict 'and nothing is kept' $?
DEBUGINFOD_URLS=http://127.0.0.1:$port named && [ ! -s err ]
verdict 'DEBUGINFOD_URLS: name and line from the server' $?
[ -s "cache/$id/debuginfo" ]
verdict "what was fetched is in elfutils' cache" $?
DEBUGINFOD_URLS=http://127.0.0.1:$port "$lbr" annotate --json parts.lbr hidden 2>err | grep -q parts.c
verdict 'annotate has the lines, too' $?
rm -rf cache
python3 - "$lbr" "$port" <<'END'
import os, pty, sys
# On a terminal the user is told.
pid, fd = pty.fork()
if not pid:
    os.environ["DEBUGINFOD_URLS"] = "http://127.0.0.1:" + sys.argv[2]
    os.execv(sys.argv[1], [sys.argv[1], "report", "--by", "function", "parts.lbr"])
text = b""
try:
    while piece := os.read(fd, 4096):
        text += piece
except OSError:
    pass
os.waitpid(pid, 0)
sys.exit(not (b"fetching debug information of" in text and b"hidden" in text))
END
verdict 'on a terminal a line tells of it' $?
rm -rf cache
DEBUGINFOD_URLS=http://127.0.0.1:$port "$lbr" report --no-symbols --by function --json parts.lbr >functions 2>err && [ ! -e cache ]
verdict '--no-symbols asks no server' $?
kill $server && wait $server 2>/dev/null
server=
rm -rf cache
DEBUGINFOD_URLS=http://127.0.0.1:$port nameless && grep -q 'warning: no debug information of .*parts from DEBUGINFOD_URLS' err
verdict 'a server that is not there: a warning, and the report' $?

# ---- a server that never answers ----

cat >silent.py <<'END'
import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(16)
open("port.new", "w").write(str(s.getsockname()[1]))
__import__("os").rename("port.new", "port")
kept = []
while True:
    kept.append(s.accept()[0])
    open("asked", "w").close()
END
python3 silent.py &
server=$!
until [ -s port ]; do kill -0 $server || exit 1; done
export DEBUGINFOD_URLS=http://127.0.0.1:$(<port)
rm -rf cache
begin=$SECONDS
nameless && grep -q 'warning: no debug information of .*timed out' err && [ $((SECONDS - begin)) -lt 60 ]
verdict 'a server that is silent is given up, and the report is there' $?
for signal in INT TERM; do
  rm -rf cache asked
  env --default-signal=INT,TERM "$lbr" report parts.lbr >out 2>err &
  reader=$!
  until [ -e asked ]; do kill -0 $reader || break; done
  begin=$SECONDS
  kill -$signal $reader
  wait $reader 2>/dev/null
  status=$?
  [ $status -eq $((128 + $(kill -l $signal))) ] && [ $((SECONDS - begin)) -lt 9 ]
  verdict "SIG$signal ends the waiting" $?
done

exit $((failures > 0))
