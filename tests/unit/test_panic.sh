#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_panic.sh LBR: panics of real programs of Rust and Go, if their compilers are here: the report has the functions of the
# source, from the one that panicked to main.
. "$(dirname "$0")/shell.sh"
cd "$scratch" || exit 1

report()
{
  {
    "$lbr" run -o err "$@" >out 2>noise
    status=$?
  } 2>/dev/null
}
command -v rustc >/dev/null || command -v go >/dev/null || exit 77

if command -v rustc >/dev/null; then
  cat >p.rs <<'END'
#[inline(never)]
fn pick(v: &[u32], n: usize) -> u32 { v[n] }
#[inline(never)]
fn sum(v: &[u32]) -> u32 { let mut s = 0; for i in 0..5 { s += pick(v, i); } s }
fn main() { let v: Vec<u32> = (0..std::env::args().count() as u32 + 2).collect(); println!("{}", sum(&v)); }
END
  rustc -g p.rs -o rust 2>/dev/null && RUST_BACKTRACE=0 report ./rust
  [ $status -eq 101 ] && grep -q 'a panic of Rust' err && [ "$(sed -n 's/^  #[0-9]* *p::\([a-z]*\)::.*/\1/p' err | paste -sd ' ')" = 'pick sum main' ]
  verdict 'a panic of Rust' $?
fi
if command -v go >/dev/null; then
  cat >p.go <<'END'
package main

//go:noinline
func pick(v []int, n int) int { return v[n] }

//go:noinline
func sum(v []int) int {
	s := 0
	for i := 0; i < 5; i++ {
		s += pick(v, i)
	}
	return s
}
func main() { println(sum([]int{1, 2, 3})) }
END
  GOCACHE=$scratch/cache go build -o go p.go 2>/dev/null && report ./go
  [ $status -eq 2 ] && grep -q 'a panic of Go' err && [ "$(sed -n 's/^  #[0-9]* *main\.\([a-z]*\)+.*/\1/p' err | paste -sd ' ')" = 'pick sum main' ]
  verdict 'a panic of Go' $?
fi

exit $((failures > 0))
