# SPDX-License-Identifier: Apache-2.0
# Two uses.
# Inside gdb (gdb -x): prints the frames of the stopped program, the innermost first, as JSON.
# death_stack.py GDB.JSON REPORT.JSON: the call stack of the report is the one that gdb unwinds from the memory of the stack.
# Addresses differ between the two runs by whole pages: the places in their pages are compared, and the files.
import json
import os
import sys


def frames_of_gdb():
    import gdb
    gdb.execute('set backtrace past-main on')
    gdb.execute('set backtrace past-entry on')
    frame, result = gdb.newest_frame(), []
    while frame is not None and frame.is_valid():
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            found = gdb.current_progspace().filename
            pc = frame.pc() - (1 if result else 0)
            found = gdb.solib_name(pc) or found
            result.append({'pc': frame.pc(), 'name': frame.name(), 'file': os.path.basename(os.path.realpath(found)),
                           'signal': frame.type() == gdb.SIGTRAMP_FRAME})
        frame = frame.older()
    return result


def compare(want, report):
    thread = report['threads'][0]
    assert thread['stack_complete'], 'the stack is said to be cut'
    # what only jumped to the next has left nothing on the stack; gdb has a frame for the kernel's return from a signal
    got = [f for f in thread['stack'] if f['left'] in (None, 'call', 'call_ind') or 'jmp' not in f['left'] and f['left'] != 'jcc']
    want = [f for f in want if not f['signal']]
    for one, other in zip(want, got):
        place = other['place']
        ahead = (one['pc'] - int(place['address'], 16)) % 4096
        least, most = (2, 7) if other['left'] in ('call', 'call_ind') else (0, 0)
        assert least <= ahead <= most, (one, other)
        assert os.path.basename(os.path.realpath(place['module'])) == one['file'], (one, other)
        if place['symbol'] and place['file'] and one['file'] == os.path.basename(report['program']):
            assert place['symbol'].split('(')[0] == one['name'].split('(')[0], (one, other)
    assert len(want) == len(got), (len(want), len(got), want, got)


if 'gdb' in sys.modules or len(sys.argv) < 3:
    print('FRAMES ' + json.dumps(frames_of_gdb()))
else:
    text = [line for line in open(sys.argv[1], errors='replace') if line.startswith('FRAMES ')]
    compare(json.loads(text[0][7:]), json.load(open(sys.argv[2])))
