# SPDX-License-Identifier: Apache-2.0
"""The inputs of bench/process that are compiled: a C++ file full of templates, a configure script, a project for make.
As in inputs.py, every run works on the same bytes."""
import os
import shutil

from . import inputs

# ---- C++ ----

CPP_HEAD = """
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct power { static constexpr unsigned value = 3 * power<N - 1>::value + power<N - 2>::value; };
template <> struct power<0> { static constexpr unsigned value = 1; };
template <> struct power<1> { static constexpr unsigned value = 2; };
template <class T, int N> struct tower { T own; tower<T, N - 1> rest; T sum() const { return own + rest.sum(); } };
template <class T> struct tower<T, 0> { T own; T sum() const { return own; } };
template <class... Types> auto total(const Types &...values) { return (... + values); }
"""

CPP_PART = """
struct item@N@ { std::string name; int key; std::tuple<int, double, std::string> rest; };
template <class T> struct visit@N@ { T *out; void operator()(const std::string &text) const { *out += text.size(); }
  template <class U> void operator()(const U &value) const { *out += static_cast<T>(value); } };
unsigned work@N@(std::vector<item@N@> items, const std::string &pattern)
{
  std::map<std::string, std::vector<item@N@>> groups;
  std::unordered_map<int, std::variant<int, double, std::string>> values;
  std::sort(items.begin(), items.end(), [](const auto &a, const auto &b) {
    return std::tie(a.key, a.name) < std::tie(b.key, b.name); });
  for (auto &one : items) {
    groups[one.name].push_back(one);
    if (one.key % @K@) values[one.key] = one.name; else values[one.key] = one.key * 1.5;
  }
  unsigned result = power<@K@ + 300>::value;
  for (auto &[key, value] : values) std::visit(visit@N@<unsigned>{&result}, value);
  std::function<unsigned(unsigned)> step = [&](unsigned n) { return n < 2 ? n : step(n - 1) + step(n - 2); };
  auto shared = std::make_shared<tower<unsigned, @K@ + 40>>();
  const std::string &name = items[0].name;
  if (std::search(pattern.begin(), pattern.end(), name.begin(), name.end()) != pattern.end()) result ^= shared->sum();
  return result + step(@K@) + total(1u, groups.size(), values.size(), @K@);
}
"""


def cplusplus(path, amount):
    random = inputs.Random()
    parts = [CPP_PART.replace("@N@", str(n)).replace("@K@", str(3 + random.below(40))) for n in range(amount)]
    with open(path, "w", encoding="utf-8") as file:
        file.write(CPP_HEAD + "".join(parts))


# ---- configure ----

CONFIGURE = """#!/bin/sh
set -e
rm -rf @FOLDER@
mkdir @FOLDER@
cd @FOLDER@
echo 'result: @name@' >template
check() {
  echo "#include <$2.h>
int main(void) { return sizeof(&$1) == 0; }" >conftest.c
  if @CC@ -c -o conftest.o conftest.c 2>errors; then result=yes; else result=no; fi
  if [ $result = yes ] && @CC@ -o conftest conftest.c && ./conftest; then result=works; fi
  sed -e "s/@name@/$1 $result/" template >>config.log
  name=$(echo "have_$1" | sed -e 'y/abcdefghijklmnopqrstuvwxyz/ABCDEFGHIJKLMNOPQRSTUVWXYZ/')
  if grep -q "$1 works" config.log; then line="#define $name 1"; else line="/* $name */"; fi
  echo "$line" >>config.h
  grep -c define config.h || :
  rm -f conftest conftest.c conftest.o
}
"""
CONFIGURE_CHECKS = """printf:stdio malloc:stdlib strlen:string sqrt:math isalpha:ctype errno:errno kill:signal time:time
  open:fcntl read:unistd stat:sys/stat socket:sys/socket poll:poll nothing:stdio strlcpy:string getopt:unistd
  regcomp:regex dlopen:dlfcn glob:glob sched_yield:sched nowhere:nowhere""".split()


def configure(path, amount):
    """A script in the manner of autoconf, that works in PATH.d. A check runs sed, grep, rm, the compiler (three
    processes to compile, five to link) and what it compiled."""
    checks = [CONFIGURE_CHECKS[i % len(CONFIGURE_CHECKS)].replace(":", " ") for i in range(amount)]
    text = CONFIGURE.replace("@FOLDER@", "'%s.d'" % path).replace("@CC@", "'%s'" % shutil.which("gcc"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "".join("check %s\n" % check for check in checks) + "cat config.h\n")


# ---- make ----

MAKEFILE = """CC = %s
OBJECTS = %s
all: program
	@cksum <program
program: $(OBJECTS)
	@$(CC) -o $@ $(OBJECTS) -lm
%%.o: %%.c
	@$(CC) -O2 -c -o $@ $<
"""


def project(folder, amount):
    """A folder with so many C files, and a Makefile that compiles and links them."""
    random = inputs.Random()
    os.makedirs(folder, exist_ok=True)
    head = "".join("#include <%s.h>\n" % name for name in ("stdio", "stdlib", "string", "math", "ctype", "errno"))
    kinds = (inputs.function_list, inputs.function_machine, inputs.function_matrix)
    for n in range(amount):
        with open(os.path.join(folder, "part%d.c" % n), "w", encoding="utf-8") as file:
            file.write(head + kinds[n % len(kinds)](random, n))
            file.write("int main(void) { return 0; }\n" if n == 0 else "")
    names = " ".join("part%d.o" % n for n in range(amount))
    with open(os.path.join(folder, "Makefile"), "w", encoding="utf-8") as file:
        file.write(MAKEFILE % (shutil.which("gcc"), names))
