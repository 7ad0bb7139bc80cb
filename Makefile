# The entry point. CMake does the work and writes everything to build/.
#
# Each target first checks for the Debian packages it needs and installs missing ones if permitted.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

.DEFAULT_GOAL := release
.PHONY: release lib demo demo-fashion demo-parallel demo-unmodified check test test-long bench bench-parallel fuzz seeded-waits rooms coverage kernel-slices gpu-check gpu-bundle install clean help packages-lib packages-build packages-test packages-coverage packages-demo packages-parallel packages-long

release: packages-build ## the library and all programs, optimised, into build/ and build/bin/
	@cmake --preset release >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	@cmake --build build --parallel $(JOBS)

lib: packages-lib ## only what is installed: the library and the command, into build/library/
	@cmake --preset library >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	@cmake --build build/library --parallel $(JOBS)

demo: packages-demo release ## train a GPT without a limit and in half the memory; compare the results
	@scripts/demo.sh build/bin gpt

demo-fashion: packages-demo release ## the same with an image classifier
	@scripts/demo.sh build/bin fashion

demo-parallel: packages-parallel release ## train a GPT on two ranks, each in half its memory; compare with one process
	@scripts/demo_parallel.sh build/bin

demo-unmodified: packages-test release ## run a CUDA program, unmodified, on a device that is too small for it
	@scripts/demo_unmodified.sh build

check: packages-test ## the quick tests: unit, device contract, API, idioms, rules and documents
	@scripts/test.sh check

test: packages-test ## all tests, and samples of them under ASan and UBSan and under TSan; about twelve minutes on two cores
	@scripts/test.sh test

test-long: packages-test packages-long ## the same with far larger samples and 20,000 random programs; at most an hour on two cores
	@scripts/test.sh long

bench: release ## the benches, one after the other
	@scripts/bench.sh build/bin

bench-parallel: packages-parallel release ## two ranks whose ops and links have fixed times, passive and guided
	@scripts/ranks.sh 2 build/bin/bench_parallel

fuzz: packages-test ## random programs for a long time (PROGRAMS=20000, SEED=1)
	@scripts/fuzz.sh "$(PROGRAMS)" "$(SEED)"

seeded-waits: packages-test ## which suites notice that a wait is missing, one by one (about a minute each)
	@tests/stress/seeded/waits.sh

rooms: ## how the source is divided: files, folders, includes against their order
	@scripts/rooms.sh

coverage: packages-test packages-coverage ## the lines and branches of each room that the tests execute
	@scripts/coverage.sh

kernel-slices: release ## what is known before launches about the kernels here and in the CUDA toolkit (needs nvcc)
	@scripts/kernel_slices.sh build

gpu-check: packages-test release ## tests, measurements and benches on this machine's GPU (OPTIONS="--quick")
	@scripts/gpu_check.sh $(OPTIONS)

gpu-bundle: packages-test release ## what gpu-check needs on another machine, in build/gpu-bundle.tar.xz
	@scripts/gpu_bundle.sh build build/gpu-bundle

install: lib ## install that under PREFIX (default /usr/local); DESTDIR is obeyed
	@cmake --install build/library --prefix "$(PREFIX)"

clean: ## remove build/
	@rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 20

packages-lib:
	@mkdir -p build
	@scripts/packages.sh lib

packages-build:
	@mkdir -p build
	@scripts/packages.sh lib build

packages-test:
	@scripts/packages.sh lib build test

packages-long:
	@scripts/packages.sh long || echo "without them, tests that need them are skipped"

packages-parallel:
	@mkdir -p build
	@scripts/packages.sh lib build demo parallel

packages-coverage:
	@scripts/packages.sh coverage

packages-demo:
	@scripts/packages.sh lib build demo
