#!/usr/bin/env bash
# Feeds the parsers of untrusted bytes what libFuzzer makes up, under AddressSanitizer and UndefinedBehaviorSanitizer.
#
#   scripts/fuzz.sh [seconds]      for each target; 60 by default
#
# It starts from tests/fuzz/corpus and from what earlier runs found, which is kept in build/fuzz/corpus. An input that breaks a promise
# ends the run; it is left in build/fuzz, and belongs into tests/fuzz/corpus once the fault is mended.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
targets=()
for source in tests/fuzz/*_fuzz.cc; do targets+=("$(basename "$source" _fuzz.cc)"); done

cmake --preset fuzz
cmake --build --preset fuzz --parallel "$(nproc)" --target "${targets[@]/#/fuzz_}"
for target in "${targets[@]}"; do
  echo "fuzz: $target, $seconds s"
  mkdir -p "build/fuzz/corpus/$target"
  scripts/run_sanitized.sh "build/fuzz/bin/fuzz_$target" -max_total_time="$seconds" -max_len=1024 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$target-" "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target"
done
echo "fuzz: no failure"
