# SPDX-License-Identifier: Apache-2.0
# Short names for common tasks. Meson does the building.

BUILD = build
PREFIX = /usr/local

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install the Debian packages that building and testing need; elsewhere, name them
	@tools/install-deps

build: ## build lbr and liblastbranch in build/
	@tools/install-deps --check build
	@tools/build $(BUILD) $(PREFIX)

# TESTS and VARIANT select tests: tools/run-tests --help describes them.
export TESTS VARIANT

test: deps ## build three times, run all tests and checks; TESTS='cli cpu_*' or VARIANT=gcc selects some
	@tools/run-tests

check-quick: ## build with gcc, run the tests and checks that take seconds
	@tools/install-deps --check build
	@tools/run-tests quick

test-long: deps ## run the tests that take minutes each: JITs, servers, stress
	@tools/run-tests long

demo: ## install what is missing, build, see how a program died, and two experiments on two processors
	@tools/install-deps build
	@tools/build --quiet $(BUILD) $(PREFIX)
	@tools/demo $(BUILD)/lbr

bench-deps:
	@tools/install-deps build
	@tools/install-deps bench || true

bench: bench-deps build ## run the bench programs, with the emulators they compare with if these are available
	@for program in $(BUILD)/bench/bench_*; do if [ -f $$program ] && [ -x $$program ]; then $$program || exit 1; fi; done

# OLD is another lbr, to compare this one with.
BENCH_LBR = $(if $(OLD),--lbr old=$(OLD) --lbr new=$(BUILD)/lbr,--lbr $(BUILD)/lbr)

bench-process: bench-deps build ## what lbr run and lbr record cost, beside valgrind and QEMU; ten minutes
	@bench/process $(BENCH_LBR)

bench-micro: bench-deps build ## what lbr run and lbr record cost by construct (calls, jumps, conditionals)
	@bench/process --set micro --best -n 5 --peers run,record $(BENCH_LBR)

bench-work: bench-deps build ## what they cost for node, java, g++, configure, make and short processes
	@bench/process --set work $(BENCH_LBR)

bench-read: bench-deps build ## how fast the commands that read a trace are; ten minutes
	@bench/read --lbr $(BUILD)/lbr

bench-bolt: bench-deps build ## what BOLT gains from our profile; five minutes
	@bench/bolt --lbr $(BUILD)/lbr

tidy: deps ## clang-tidy with the analysis that make test leaves out, on the build of the tests
	@TIDY_DEEP=1 tests/tools/check-tidy $(BUILD)/test-clang

fuzz: deps ## run each fuzz target for a minute
	@tools/run-fuzz

install: build ## install under PREFIX (/usr/local); DESTDIR is respected
	@meson configure $(BUILD) --prefix=$(PREFIX)
	@meson install -C $(BUILD)
	@test -n "$(DESTDIR)" || ldconfig 2>/dev/null || true

format: deps ## put every C file into the project's shape
	@tests/tools/list-files '*.c' '*.h' | xargs -d '\n' clang-format -i
	@tests/tools/check-declarations --fix

clean: ## remove build/
	@rm -rf $(BUILD)

.PHONY: help deps build test check-quick test-long demo bench-deps bench bench-process bench-micro bench-work bench-read bench-bolt tidy fuzz install format clean
