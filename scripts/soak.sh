#!/usr/bin/env bash
# Runs for hours what CI has only minutes for: the race tests with more rounds and fresh seeds, in the release, asan and tsan
# builds, under TSan in both modes (sylar/base/tsan.h); the model checker at bound 3, then on random schedules; a day of virtual
# time, a thousand times; the fuzzer of parsers; and that of the hooks, for half an hour each, with the mistakes that it must find.
#
#   scripts/soak.sh [hours]      1 by default; 0.5 is half an hour. After the builds; it ends with the step that is under way then.
#
# One line a step. A call goes on where the last one ended: build/soak/next has the round, the step and its seed. The first failure
# ends the call with the command that repeats it, which is also the first step of the next call.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly scale=5 patience=2h random_schedules=100000
state=build/soak/next
log=build/soak/log

scripts/setup.sh
for preset in release asan tsan; do
  cmake --preset "$preset"
  cmake --build --preset "$preset" --parallel "$(nproc)"
done

end=$(awk -v now="$(date +%s)" -v hours="${1:-1}" 'BEGIN { printf "%d", now + hours * 3600 }')
steps=()
for memory in tso weak; do
  for group in wait sleep queue stop fd life run out timer serve core sync lot; do steps+=("model $memory $group/"); done
done
for mode in release asan tsan strict; do
  for program in build/release/bin/*_race_test{,s} build/release/bin/integration_cycles_test; do
    steps+=("$mode $(basename "$program")")
  done
done

steps+=("retry testing_tests" "fuzz parsers" "differential release" "differential asan" "mistakes hooks")

newSeed() { od -An -N4 -tu4 /dev/urandom | tr -d ' '; }

# What step $2 of round $1 runs with seed $3, into `command`.
setCommand() {
  local round=$1 seed=$3 mode program group
  read -r mode program group <<<"${steps[$2]}"
  command=(env "SYLAR_TEST_SEED=$seed" "SYLAR_TEST_SCALE=$scale")
  case $mode in
    retry) command=(env SYLAR_TEST_SCALE=50 "build/release/bin/$program" "--gtest_filter=Retry.*") ;;  # 1 000 times the same trace
    fuzz) command=(scripts/fuzz.sh 60) ;;
    differential) command=(scripts/run_sanitized.sh "build/$program/bin/hook_differential" --seed "$seed" --seconds 1800) ;;
    mistakes) command=(tests/hook/differential/mistakes.py build/release) ;;
    model)
      command=(build/release/bin/model_check --memory "$program" --bound 3 "$group")
      ((round == 0)) || command=(build/release/bin/model_check --random "$random_schedules" --seed "$seed" large "$group")
      ;;
    release) command+=("build/release/bin/$program") ;;
    strict) command+=(SYLAR_TSAN_STRICT=1 scripts/run_sanitized.sh "build/tsan/bin/$program") ;;
    *) command+=(scripts/run_sanitized.sh "build/$mode/bin/$program") ;;
  esac
}

mkdir -p build/soak
round=0 step=0 seed=$(newSeed)
[[ ! -e $state ]] || read -r round step seed <"$state"
while (($(date +%s) < end)); do
  ((step < ${#steps[@]})) || { ((++round)); step=0; }
  echo "$round $step $seed" >"$state"
  setCommand "$round" "$step" "$seed"
  printf 'soak: round %d, step %d of %d: %s ... ' "$round" $((step + 1)) ${#steps[@]} "${command[*]}"
  begun=$SECONDS
  if ! timeout "$patience" "${command[@]}" >"$log" 2>&1; then
    echo "FAILED"
    tail -n 100 "$log"
    echo "soak: all of it is in $log; to repeat it: ${command[*]}"
    exit 1
  fi
  echo "ok, $((SECONDS - begun)) s"
  step=$((step + 1)) seed=$(newSeed)
  echo "$round $step $seed" >"$state"
done
echo "soak: no failure"
