#!/usr/bin/env bash
# Runs a command whose programs are built with clang's sanitizers: version 14 cannot place its shadow memory when the kernel
# randomises more than 28 bits of an address.
#
#   scripts/run_sanitized.sh command [argument ...]
set -euo pipefail
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
if [[ $(</proc/sys/vm/mmap_rnd_bits) -gt 28 ]] && setarch --addr-no-randomize true; then
  exec setarch --addr-no-randomize "$@"
fi
exec "$@"
