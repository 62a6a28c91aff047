#!/usr/bin/env bash
# Builds everything and runs all tests. The exit status and the last line are those of ctest.
#
#   scripts/test.sh [preset]      release (default), debug, clang, asan, tsan
#
# With SYLAR_TEST_AGAIN=N a test that failed among all others may run again, alone, and then has to pass N times in a row.
# SYLAR_MUTANTS=REST/N builds one of N seeded defects (tests/model/tests.cmake).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:-release}
jobs=$(nproc)

scripts/setup.sh
cmake --preset "$preset" -DSYLAR_MUTANTS="${SYLAR_MUTANTS:-0/1}"
cmake --build --preset "$preset" --parallel "$jobs"

# Most tests wait more than they compute.
test=(ctest --preset "$preset" --output-on-failure --no-tests=error --parallel "$((2 * jobs))")
[[ $preset != *san ]] || test=(scripts/run_sanitized.sh "${test[@]}")

run_tests() {
  "${test[@]}" "$@" && return
  local -r status=$?
  [[ ${SYLAR_TEST_AGAIN:-0} -gt 0 && $status == 8 ]] || return "$status"
  "${test[@]}" "$@" --parallel 1 --rerun-failed --repeat "until-fail:$SYLAR_TEST_AGAIN"
}

if [[ $preset == tsan ]]; then  # races with fibers taken for concurrent wherever they run, so more is found (sylar/base/tsan.h)
  run_tests --label-exclude race
  SYLAR_TSAN_STRICT=1 run_tests --label-regex race
else
  run_tests
fi
