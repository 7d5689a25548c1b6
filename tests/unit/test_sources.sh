#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_sources.sh LBR: which source files are shown: those below the folder in which the program was compiled, and no
# other file that debug information names.
. "$(dirname "$0")/shell.sh"
cd "$scratch" || exit 1
mkdir -p built/inside elsewhere here

# A file outside, and a link to it that lies inside.
printf 'the first secret\nthe second secret\nthe third secret\n' >elsewhere/secret
ln -s ../elsewhere/secret built/link.c
printf 'int inner(int n)\n{\n  return n + 1; /* shown inside */\n}\n' >built/inside/inner.c
mkdir here/inside && sed 's/shown inside/shown here/' built/inside/inner.c >here/inside/inner.c

# program NAME FILE: one whose function `work` claims to be in FILE, compiled in the folder built. It runs often enough
# for lbr view to have its code.
program()
{
  printf '#line 1 "%s"\nint work(int n)\n{ return n * 3; }\nint main(void) { for (int i = 0; i < 20000; i++) work(i); }\n' "$2" >"built/$1-program.c"
  (cd built && gcc -g -O0 -o "$1" "$1-program.c") && "$lbr" record -q -o "$1.lbr" "built/$1"
}
program hostname /etc/hostname && program secret "$scratch/elsewhere/secret" && program link "$scratch/built/link.c" &&
  program dots "$scratch/built/../elsewhere/secret" && (cd built && gcc -g -O0 -o inner -x c - inside/inner.c <<'END') && "$lbr" record -q -o inner.lbr built/inner || exit 1
int inner(int);
int main(void) { for (int i = 0; i < 20000; i++) inner(i); }
END

# shows TRACE FUNCTION TEXT WORD...: do view, annotate and report show the text with these options?
shows()
{
  "$lbr" view -o - "${@:4}" "$1.lbr" >page 2>err && "$lbr" annotate "${@:4}" "$1.lbr" "$2" >code 2>>err &&
    "$lbr" report --by line --module "$1" "${@:4}" "$1.lbr" >lines 2>>err && grep -qF "$3" page && grep -qF "$3" code && grep -qF "$3" lines
}
# hides TRACE FUNCTION TEXT WORD...: none of them shows it.
hides()
{
  "$lbr" view -o - "${@:4}" "$1.lbr" >page 2>err && "$lbr" annotate "${@:4}" "$1.lbr" "$2" >code 2>>err &&
    "$lbr" report --by line --module "$1" "${@:4}" "$1.lbr" >lines 2>>err && ! cat page code lines | grep -qF "$3"
}
"$lbr" view --any-source -o - hostname.lbr | grep -qF '"source":"/etc/hostname"'
verdict 'the debug information names /etc/hostname' $?
"$lbr" view -o - hostname.lbr >page 2>err && ! grep -qF '"source":"/etc/hostname"' page && grep -q '^lbr: warning: /etc/hostname: not shown.*--any-source' err
verdict 'view does not show /etc/hostname, and says so' $?
[ "$(grep -c 'not shown' err)" -eq 1 ]
verdict 'it says so once' $?
for name in secret dots link; do
  hides $name work 'the second secret'
  verdict "a file outside is not shown: $name" $?
  grep -q 'not shown' err
  verdict "that it is not shown is said: $name" $?
  shows $name work 'the second secret' --any-source && ! grep -q 'not shown' err
  verdict "--any-source shows it: $name" $?
  shows $name work 'the second secret' --source-prefix "$scratch/elsewhere"
  verdict "--source-prefix DIR shows it: $name" $?
  hides $name work 'the second secret' --source-prefix "$scratch/else"
  verdict "a prefix ends where a folder does: $name" $?
done
shows secret work 'the second secret' --source-prefix /nowhere --source-prefix "$scratch/elsewhere"
verdict '--source-prefix may be repeated' $?
shows inner inner 'shown inside' && ! grep -q 'not shown' err
verdict 'files below the compilation directory are shown' $?
shows inner inner 'shown here' --source-prefix "$scratch/built=$scratch/here"
verdict '--source-prefix OLD=NEW shows the files in NEW' $?
hides inner inner 'secret' --source-prefix "$scratch/built/inside/inner.c=$scratch/here/../elsewhere/secret"
verdict '--source-prefix OLD=NEW of a file is no folder' $?
for command in view 'report --by line' 'annotate'; do
  # shellcheck disable=SC2086
  run $command --source-prefix '' secret.lbr work
  [ $status -eq 2 ] && complained '--source-prefix wants DIR or OLD=NEW'
  verdict "lbr $command: an empty prefix is a usage error" $?
done

# Debug information that says that it was compiled in / does not open the whole machine.
(cd built && gcc -g -O0 -fdebug-prefix-map="$scratch/built=/" -o rooted secret-program.c) && "$lbr" record -q -o rooted.lbr built/rooted &&
  readelf --debug-dump=info built/rooted | grep -q 'DW_AT_comp_dir.*: /$' && hides rooted work 'the second secret'
verdict 'a compilation directory of / allows nothing' $?

exit $((failures > 0))
