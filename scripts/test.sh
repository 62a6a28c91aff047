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

# clang 14's sanitizers cannot place their shadow memory when the kernel randomises more than 28 bits of an address.
launcher=()
if [[ $preset == *san && $(</proc/sys/vm/mmap_rnd_bits) -gt 28 ]] && setarch --addr-no-randomize true; then
  launcher=(setarch --addr-no-randomize)
fi
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
exec "${launcher[@]}" ctest --preset "$preset" --output-on-failure --no-tests=error --parallel "$jobs"
