# SPDX-License-Identifier: Apache-2.0
# gdb_port.py WAY COMMAND...: runs lbr, which listens on a port for gdb, and connects to it as others than gdb do. WAY is
#   stranger        a page of a browser posts packets that write memory; then a gdb reads that memory: it is what it was
#   deaf SIGNAL     a client that sends packets and does not read: the signal ends lbr all the same. The status is 3 if
#                   lbr ended while it still took packets.
# The packets are made after "GDB Remote Serial Protocol" of gdb's manual.
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile

ADDRESS = 0x100000


def packet(text):
    return b'$%s#%02x' % (text, sum(text) & 255)


def start(command):
    errors = tempfile.TemporaryFile('w+')
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
    while process.poll() is None:
        text = os.pread(errors.fileno(), 1 << 20, 0).decode()
        found = re.search(r'127\.0\.0\.1:(\d+)', text)
        if found:
            return process, int(found[1]), errors
        select.select([], [], [], 0.02)
    sys.exit('it does not listen: ' + text)


def connect(port):
    client = socket.create_connection(('127.0.0.1', port), 30)
    return client


def ask(client, text):
    """The answer to a packet."""
    client.sendall(packet(text))
    got = b''
    while not re.search(rb'\$([^#]*)#..', got):
        more = client.recv(65536)
        assert more, 'closed: %r' % got
        got += more
    return re.search(rb'\$([^#]*)#..', got)[1]


def stranger(process, port, errors):
    body = b'+' + packet(b'M%x,4:deadbeef' % ADDRESS) + packet(b'P10=efbeaddeefbeadde') + packet(b'k')
    client = connect(port)
    client.sendall(b'POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s' % (len(body), body))
    got = b''
    try:
        while more := client.recv(4096):
            got += more
    except ConnectionResetError:
        pass
    assert got == b'', got
    client = connect(port)
    client.sendall(b'+')
    assert ask(client, b'?').startswith(b'T'), 'no stop'
    assert b'deadbeef' not in ask(client, b'm%x,4' % ADDRESS)
    assert process.poll() is None
    assert b'refused a client' in os.pread(errors.fileno(), 1 << 20, 0), 'nothing was said'
    process.terminate()
    client.close()
    process.wait(60)


def deaf(process, port, errors, number):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(('127.0.0.1', port))
    client.settimeout(1)  # nothing is taken for so long: it waits for us
    try:
        while True:
            client.sendall(b'+' + packet(b'g') + packet(b'qXfer:features:read:target.xml:0,fff'))
    except TimeoutError:
        pass
    except ConnectionError:
        print('it ended while it still took packets')
        sys.exit(3)
    process.send_signal(number)
    process.wait(60)


way, arguments = sys.argv[1], sys.argv[2:]
number = getattr(signal, arguments.pop(0)) if way == 'deaf' else 0
process, port, errors = start(arguments)
try:
    stranger(process, port, errors) if way == 'stranger' else deaf(process, port, errors, number)
finally:
    if process.poll() is None:
        process.kill()
