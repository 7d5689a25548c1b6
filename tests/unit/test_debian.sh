#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_debian.sh LBR SOURCE: builds Debian packages of a clean copy of the sources, as `dpkg-buildpackage -us -uc -b` does, unpacks
# them into a folder with a package database of its own, and uses what is there: lbr, and the library by pkg-config alone.
. "$(dirname "$0")/shell.sh"
source=$2
command -v dpkg-buildpackage lintian dh >/dev/null || {
  echo "skip Debian packages: dpkg-dev, debhelper and lintian are wanted"
  exit 77
}
export LC_ALL=C
unset CFLAGS CPPFLAGS LDFLAGS DESTDIR
mkdir -p "$scratch/copy"
(cd "$source" && tests/tools/list-files '*' | tar -c -T -) | tar -x -C "$scratch/copy"

cd "$scratch/copy" || exit 1
nice dpkg-buildpackage -us -uc -b >"$scratch/log" 2>&1 </dev/null
is_built=$?
[ $is_built -eq 0 ] || tail -n 40 "$scratch/log"
verdict 'dpkg-buildpackage -us -uc -b' $is_built
[ $is_built -eq 0 ] || exit 1

cd "$scratch" || exit 1
version=$(sed -n "s/^  version: '\(.*\)',\$/\1/p" copy/meson.build)
names=$(for file in *.deb; do dpkg-deb -f "$file" Package; done | grep -v dbgsym | sort | paste -sd ' ')
[ "$names" = 'lastbranch liblastbranch-dev liblastbranch0' ]
verdict "the packages: $names" $?
for file in *.deb; do dpkg-deb -f "$file" Version; done | sort -u >versions
[ "$(cut -d - -f 1 versions)" = "$version" ]
verdict "their version is meson.build's, $version" $?

# Complaints of all levels; debian/*.lintian-overrides say why one is of no concern.
lintian --allow-root --display-info --pedantic ./*.changes >lintian 2>&1
grep -E '^[EWIP]:' lintian
verdict 'lintian has nothing to say' $(($? == 0))

# A package database of their own: what they depend on is the system's, which --force-depends does not look at here.
mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates
: >root/var/lib/dpkg/status
dpkg --root="$scratch/root" --force-depends --force-not-root -i $(ls ./*.deb | grep -v dbgsym) >install.log 2>&1
is_installed=$?
[ $is_installed -eq 0 ] || tail -n 20 install.log
dpkg-query --admindir=root/var/lib/dpkg -W -f '${db:Status-Abbrev} ${Package}\n' | sort >installed
[ $is_installed -eq 0 ] && [ "$(grep -c '^ii ' installed)" -eq 3 ]
verdict 'dpkg installs all three' $?
lbr=$scratch/root/usr/bin/lbr
run --version
[ $status -eq 0 ] && said "lbr $version"
verdict 'lbr --version' $?
run cpu
[ $status -eq 0 ] && said 'What CPUID shows'
verdict 'lbr cpu' $?

cat >crash.c <<'END'
int main(int argc, char **argv)
{
  volatile int *p = (int *)16;
  (void)argv;
  return argc + *p; /* line 5 */
}
END
gcc -g -O1 -o crash crash.c || exit 1
{ run run ./crash; } 2>/dev/null
[ $status -eq 139 ] && complained 'Segmentation fault' && complained 'crash.c:5'
verdict 'lbr run says where a program died' $?

find root/usr/share/man -name '*.gz' | sed 's,.*/,,; s,\.gz$,,' | sort >pages
(cd copy/doc/man && ls ./*.[1-9]) | sed 's,.*/,,' | sort | cmp - pages
verdict 'every man page is there' $?
[ -s root/usr/share/bash-completion/completions/lbr ]
verdict 'bash completion is there' $?

libraries=$(dirname "$(find root -name 'liblastbranch.so')")
export PKG_CONFIG_SYSROOT_DIR=$scratch/root PKG_CONFIG_PATH=$scratch/$libraries/pkgconfig
# shellcheck disable=SC2046 # several words
gcc -std=c17 -Wall -Wextra -Werror -o embed root/usr/share/doc/liblastbranch-dev/examples/embed.c $(pkg-config --cflags --libs lastbranch)
verdict 'the example compiles and links by pkg-config' $?
readelf -dW embed | grep -q 'NEEDED.*liblastbranch\.so\.0\]' && LD_LIBRARY_PATH=$scratch/$libraries ./embed >embed.out && [ -s embed.out ]
verdict 'the example runs with liblastbranch0' $?
[ "$(pkg-config --modversion lastbranch)" = "$version" ]
verdict 'pkg-config knows the version' $?

[ $failures -eq 0 ]
