# SPDX-License-Identifier: Apache-2.0
# bash completion for lbr: commands, their options, names of CPUs and registers, formats and kinds of branches, traces, and
# the functions and files of a trace, all of it asked of lbr itself.

# The options of a command, from its own --help.
_lbr_options()
{
  lbr "$1" --help 2>/dev/null | grep -oE -- '(^|[ ,[])--[a-z0-9][a-z0-9-]*' | grep -oE -- '--[a-z0-9-]+' | sort -u
}

_lbr_commands()
{
  lbr help 2>/dev/null | sed -n 's/^  lbr \([a-z]*\).*/\1/p'
}

# _lbr_registers CPU WORD: the registers of a CPU, the second column of the last table of its page, whose first is an
# address or a range; in capitals if the word begins so, else in small letters and without IA32_ or MSR_.
_lbr_registers()
{
  local names

  names=$(lbr cpu "$1" 2>/dev/null | sed -n '/^Registers$/,$ s/^  0x.*  \([A-Za-z][A-Za-z0-9_]*\)  .*/\1/p')
  case $2 in
  [A-Z]*) echo "$names" ;;
  *) sed 's/^ia32_//; s/^msr_//' <<<"${names,,}" ;;
  esac
}

# What stands behind --cpu or -c so far, else the CPU that lbr takes when this machine's does not fit.
_lbr_cpu()
{
  local i

  for ((i = 2; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
    --cpu=?*) echo "${COMP_WORDS[i]#--cpu=}" && return ;;
    =) [ "${COMP_WORDS[i - 1]}" = --cpu ] && echo "${COMP_WORDS[i + 1]}" && return ;;
    -c | --cpu) [ "${COMP_WORDS[i + 1]}" != = ] && echo "${COMP_WORDS[i + 1]}" && return ;;
    esac
  done
  echo skylake
}

# The trace that stands on the command line so far.
_lbr_trace()
{
  local i

  for ((i = 2; i < ${#COMP_WORDS[@]}; i++)); do
    [ "$i" -ne "$COMP_CWORD" ] && [[ ${COMP_WORDS[i]} == *.lbr || ${COMP_WORDS[i]} == *.lbr.incomplete || ${COMP_WORDS[i]} == *.trace ]] &&
      [ -f "${COMP_WORDS[i]}" ] && echo "${COMP_WORDS[i]}" && return
  done
}

# _lbr_names COLUMN WHAT: names out of a table of a trace: symbol of functions, or module of modules. A trace that is too
# big to be read while somebody waits gives none.
_lbr_names()
{
  local trace

  trace=$(_lbr_trace)
  [ -n "$trace" ] && [ "$(stat -c %s -- "$trace" 2>/dev/null || echo 0)" -le 67108864 ] || return
  timeout 5 lbr report --quiet --no-lines --by "$1" --top all --json -- "$trace" 2>/dev/null | sed -n "s/^ *\"$2\": \"\([^\" ]*\)\",*\$/\1/p" | sort -u
}

# Is the trace there already, so that the next word is something else?
_lbr_has_trace()
{
  [ -n "$(_lbr_trace)" ]
}

_lbr()
{
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
  local prefix='' words='' files='' traces='' kinds

  COMPREPLY=()
  # bash splits --cpu=NAME into three words unless = was taken out of COMP_WORDBREAKS.
  case $word in
  =) word='' ;;
  --cpu=* | --format=* | --screen=* | --predictor=* | --dump=* | --until=* | --source=* | --color=* | --to=* | --kind=* | --by=* | --sort=* | --function=* | --module=*) prefix=${word%%=*}= before=${word%%=*} word=${word#*=} ;;
  esac
  [ "$before" = = ] && before=${COMP_WORDS[COMP_CWORD - 2]}
  case $COMP_CWORD:$command:$before:$word in
  1:*) words="$(_lbr_commands) --help --version" ;;
  *:help:*:*) words=$(_lbr_commands) ;;
  *:*:--cpu:* | *:*:-c:*) words=$(lbr cpu --names 2>/dev/null) ;;
  *:*:--format:* | *:*:-f:*) words='table windbg windbg-old json' ;;
  *:*:--color:*) words='auto always never' ;;
  *:export:--to:*) words="$(lbr export --to list 2>/dev/null | cut -d ' ' -f 1) list" ;;
  *:*:--kind:*)
    # a list: what stands before the last comma stays
    kinds='jcc call call_ind ret jmp jmp_ind syscall sysret int iret fault calls returns jumps indirect events near_ret far'
    [[ $word == *,* ]] && prefix=$prefix${word%,*}, word=${word##*,}
    words=$kinds
    ;;
  *:*:--function:* | *:script:--around:* | *:view:--around:* | *:script:--from:* | *:script:--to:* | *:diff:--from:* | *:diff:--to:* | *:export:--from:* | *:export:--into:*)
    words=$(_lbr_names function symbol)
    ;;
  *:*:--module:*) words=$(_lbr_names module module | sed 's|.*/||') ;;
  *:calls:--by:*) words='instructions branches' ;;
  *:export:--by:*) words='time instructions' ;;
  *:lab:*:-*) words=$(_lbr_options lab) ;;
  *:lab:*:*) words="list all $(lbr lab list 2>/dev/null | cut -d ' ' -f 1)" ;;
  *:machine:--screen:*) words='live final all none' ;;
  *:machine:--predictor:*) words='none 2bit gshare' ;;
  *:machine:--dump:* | *:machine:-d:*) words='lbr ds bts pebs regs msrs' ;;
  *:machine:--until:*) words='idle halt insns= seconds= text=' ;;
  *:report:--by:*) words='function line edge branch indirect module thread latency' ;;
  *:report:--sort:*) words='instructions taken passed calls count rate targets flips mispredicted name longest total own waiting median p99' ;;
  *:diff:--by:*) words='count time' ;;
  *:report:--predictor:*) words='bimodal gshare help' ;;
  *:run:--source:* | *:record:--source:*) words=$(lbr record --source= - 2>&1 | sed -n 's/.*the sources are //p' | tr -d ,) ;;
  *:run:--on-signal:*) words='USR1 USR2 ALRM' ;;
  *:machine:--serial:*) words='stdio none' files=yes ;;
  *:*:*:-*) words=$(_lbr_options "$command") ;;
  *:cache:*:*) words='list clear disable enable' ;;
  *:cpu:*:*) words=$(lbr cpu --names 2>/dev/null) ;;
  *:encode:*:*) words=$(_lbr_registers "$(_lbr_cpu)" "$word") ;;
  *:decode:*:*)
    case " ${COMP_WORDS[*]:2:COMP_CWORD-2} " in
    *' ds '* | *' bts '* | *' pebs '*) files=yes ;;
    *) words="ds bts pebs $(_lbr_registers "$(_lbr_cpu)" "$word")" ;;
    esac
    ;;
  *:annotate:*:*) _lbr_has_trace && words=$(_lbr_names function symbol) || traces=yes ;;
  *:script:*:* | *:stat:*:* | *:calls:*:* | *:report:*:* | *:view:*:* | *:export:*:* | *:diff:*:* | *:replay:*:* | *:gdb:*:*) traces=yes ;;
  *) files=yes ;;
  esac
  # -o, --source-prefix and the like take any file.
  case $before in
  -o | --output | --source-prefix) traces='' words='' files=yes ;;
  esac
  mapfile -t COMPREPLY < <(
    compgen -P "$prefix" -W "$words" -- "$word"
    [ -z "$files" ] || compgen -f -- "$word"
    [ -z "$traces" ] || {
      compgen -f -X '!*.lbr' -- "$word"
      compgen -f -X '!*.lbr.incomplete' -- "$word"
      compgen -f -X '!*.trace' -- "$word"
      compgen -d -- "$word"
    }
  )
  # A trace may have any name.
  [ -z "$traces" ] || [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
}

complete -o filenames -o bashdefault -F _lbr lbr
