#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_call.sh SOURCE COMPILER...: src/trace/call.def has each system call that the kernel's header <asm/unistd_64.h> has,
# with the same name and number, and nothing else. Either of them may end earlier than the other one.
set -eu
LC_ALL=C
export LC_ALL
source=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0

# "NUMBER NAME" of each.
echo '#include <asm/unistd_64.h>' | "$@" -E -dM -x c - | awk '$2 ~ /^__NR_/ { print $3, substr($2, 6) }' | sort -n >"$folder/header"
# The word "row" keeps the rows apart: the preprocessor may put several on a line.
printf '#define CALL(number, name, arguments) row number #name\n#include "trace/call.def"\n' |
  "$@" -E -P -x c -I"$source/src" - | tr -s ' \n' ' ' | awk -v RS=row 'NF == 2 { gsub(/"/, "", $2); print $1, $2 }' | sort -n >"$folder/table"

# check NAME CONDITION: runs a condition.
check()
{
  name=$1
  shift
  if "$@"; then
    echo "ok $name"
  else
    echo "FAIL $name"
    status=1
  fi
}

last_of_header=$(awk 'END { print $1 }' "$folder/header")
last_of_table=$(awk 'END { print $1 }' "$folder/table")
last=$((last_of_header < last_of_table ? last_of_header : last_of_table))
# uretprobe (335) is for the code that the kernel puts into a process, not for programs.
awk -v last="$last" '$1 <= last && $1 != 335' "$folder/header" >"$folder/expected"
awk -v last="$last" '$1 <= last' "$folder/table" >"$folder/found"
sed -n 's/^CALL( *\([0-9]*\),.*/\1/p' "$source/src/trace/call.def" >"$folder/numbers"

check 'the header has system calls' test "$(wc -l <"$folder/expected")" -ge 362
check 'names and numbers are those of the header' diff "$folder/expected" "$folder/found"
check 'the rows are in order, without a number twice' sort -c -n -u "$folder/numbers"
exit $status
