# SPDX-License-Identifier: Apache-2.0
# What the tests of lbr view share; to be sourced after shell.sh, with the folder of the tests in $here.

# program NAME SOURCE OPTION...: builds it; make NAME TRACE: records it; holds PAGE EXPRESSION: looks at the data of a page.
program() { cp -u "$here/$2" . && gcc -g -c "${@:3}" -o object.o "$2" && ld -o "$1" object.o; }
make() { "$lbr" record --quiet -o "$2" -- "./$1" >/dev/null 2>&1; }
holds() { python3 "$here/view_page.py" data "$@"; }

# browse PAGE#PLACE EXPRESSION: loads it and looks at the document. Nothing may be said on the console.
browse()
{
  timeout 100 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$scratch/profile" \
    --no-first-run --window-size=1200,700 --virtual-time-budget=3000 --enable-logging=stderr --dump-dom "file://$scratch/$1" \
    >dump 2>console
  ! grep 'CONSOLE' console && python3 "$here/view_page.py" dom dump "a[\"ready\"] == \"yes\" and \"error\" not in a and ($2)"
}

# without_browser: is there none? Then says so.
without_browser()
{
  command -v chromium >/dev/null && return 1
  echo 'skip pages in a browser: chromium is not installed (Debian: chromium)'
}
