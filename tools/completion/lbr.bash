# SPDX-License-Identifier: Apache-2.0
# bash completion for lbr: commands, their options, and CPU names (asked of lbr itself).

# The options of a command, from its own --help, so that this file need not know them.
_lbr_options()
{
  lbr "$1" --help 2>/dev/null | grep -oE -- '(^|[ ,[])--[a-z0-9][a-z0-9-]*' | grep -oE -- '--[a-z0-9-]+' | sort -u
}

_lbr_commands()
{
  lbr help 2>/dev/null | sed -n 's/^  lbr \([a-z]*\).*/\1/p'
}

_lbr()
{
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} prefix=

  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_lbr_commands) --help --version" -- "$word")
    return
  fi
  # bash splits --cpu=NAME into three words unless = was taken out of COMP_WORDBREAKS.
  case $word in
  =) word='' before=${COMP_WORDS[COMP_CWORD - 1]} ;;
  --cpu=*) prefix=--cpu= before=--cpu word=${word#--cpu=} ;;
  esac
  [ "$before" = = ] && before=${COMP_WORDS[COMP_CWORD - 2]}
  case $command:$before:$word in
  help:*) mapfile -t COMPREPLY < <(compgen -W "$(_lbr_commands)" -- "$word") ;;
  *:--cpu:*) mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$(lbr cpu --list --names 2>/dev/null)" -- "$word") ;;
  *:--format:*) mapfile -t COMPREPLY < <(compgen -W 'table windbg windbg-old json' -- "$word") ;;
  *:*:-*) mapfile -t COMPREPLY < <(compgen -W "$(_lbr_options "$command")" -- "$word") ;;
  cpu:*) mapfile -t COMPREPLY < <(compgen -W "$(lbr cpu --list --names 2>/dev/null)" -- "$word") ;;
  *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
  esac
}

complete -o filenames -o bashdefault -F _lbr lbr
