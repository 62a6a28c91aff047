#!/usr/bin/env bash
# Builds everything and runs all tests. The exit status and the last line are those of ctest.
#
#   scripts/test.sh [preset]      release (default), debug, clang, asan, tsan
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:-release}
jobs=$(nproc)

scripts/setup.sh
cmake --preset "$preset"
cmake --build --preset "$preset" --parallel "$jobs"

test=(ctest --preset "$preset" --output-on-failure --no-tests=error --parallel "$jobs")
[[ $preset != *san ]] || test=(scripts/run_sanitized.sh "${test[@]}")
if [[ $preset == tsan ]]; then  # twice: once more with fibers taken for concurrent wherever they run (sylar/base/tsan.h)
  "${test[@]}"
  export SYLAR_TSAN_STRICT=1
  test+=(--label-regex race)
fi
exec "${test[@]}"
