#!/usr/bin/env bash
# Feeds the parsers of untrusted bytes what libFuzzer makes up, under AddressSanitizer and UndefinedBehaviorSanitizer.
#
#   scripts/fuzz.sh [seconds]      for each target; 60 by default
#
# It starts from the corpus beside each target and from what earlier runs found, which is kept in build/fuzz/corpus. An input that breaks a promise
# ends the run; it is left in build/fuzz, and belongs into that corpus once the fault is mended.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
declare -A corpora=([ttlkv]=tests/ttlkv/corpus)
for source in tests/fuzz/*_fuzz.cc; do
  target=$(basename "$source" _fuzz.cc)
  corpora[$target]=tests/fuzz/corpus/$target
done
targets=("${!corpora[@]}")

cmake --preset fuzz
cmake --build --preset fuzz --parallel "$(nproc)" --target "${targets[@]/#/fuzz_}"
for target in "${targets[@]}"; do
  echo "fuzz: $target, $seconds s"
  mkdir -p "build/fuzz/corpus/$target"
  scripts/run_sanitized.sh "build/fuzz/bin/fuzz_$target" -max_total_time="$seconds" -max_len=1024 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/$target-" "build/fuzz/corpus/$target" "${corpora[$target]}"
done
echo "fuzz: no failure"
