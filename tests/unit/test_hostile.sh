#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_hostile.sh LBR: traces that a stranger made. Small files that name billions of instructions, numbers of steps that are
# far apart, as many threads as there may be, much code: every command that reads traces must end within 20 seconds of
# processor time and 400 MB. A byte that was flipped costs a part of a trace, and lbr says how much.
. "$(dirname "$0")/shell.sh"
here=$(realpath "$(dirname "$0")")
cd "$scratch" || exit 1
mkdir hand
PYTHONDONTWRITEBYTECODE=1 python3 "$here/trace_hostile.py" hand || exit 1
"$here/test_hostile.py" "$lbr" hand
failures=$?
exit $((failures != 0))
