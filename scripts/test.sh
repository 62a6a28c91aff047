#!/usr/bin/env bash
# Builds everything and runs all tests. The exit status and the last line are those of ctest.
#
#   scripts/test.sh [preset ...]        release (default), debug, clang, asan, tsan; all are built before the first is tested
#   scripts/test.sh --changed [BASE]    the checks, and of the release what the changes since BASE can reach, committed or not; by
#                                       default since this branch left main (scripts/changed_tests.py)
#
# With SYLAR_TEST_AGAIN=N a test that failed among all others may run again, alone, and then has to pass N times in a row.
# SYLAR_MUTANTS=REST/N builds one of N seeded defects (tests/model/tests.cmake).
# SYLAR_TEST_WITHOUT=LABELS, a regular expression, leaves the tests with such a label out.
# SYLAR_TEST_UNTIL=SECONDS since 1970: then no further test is started, those that run are ended, and the rest is listed and fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=$(nproc)
costs=${XDG_CACHE_HOME:-$HOME/.cache}/sylar  # of earlier runs, in any clone: ctest starts with what takes longest
until=${SYLAR_TEST_UNTIL:-}
without=${SYLAR_TEST_WITHOUT:-none}

# Builds TARGETS of a PRESET, by default all of it.
build() {
  cmake --preset "$1" -DSYLAR_MUTANTS="${SYLAR_MUTANTS:-0/1}" &&
    cmake --build --preset "$1" --parallel "$jobs" ${2:+--target "${@:2}"} -- -k 0
}

late() { [[ -n $until ]] && (($(date +%s) >= until)); }

# Lists those of the chosen tests that are not in ctest's log of this run, and fails if there are any.
all_ran() {
  local missed
  missed=$(comm -23 <("${test[@]}" "$@" --show-only | sed -n 's/^ *Test *#[0-9]*: //p' | sort) \
    <(sed -n 's|^[0-9]*/[0-9]* Testing: ||p' "build/$preset/Testing/Temporary/LastTest.log" 2>/dev/null | sort))
  [[ -n $missed ]] || return 0
  printf 'test: the time is up; %d tests of %s did not run:\n%s\n' "$(wc -l <<<"$missed")" "$preset" "$missed"
  return 1
}

# Runs the tests that the arguments choose.
run_tests() {
  local status=0 stop=()
  if late; then
    rm -f "build/$preset/Testing/Temporary/LastTest.log"
    all_ran "$@" || status=$?
    return "$status"
  fi
  [[ -z $until ]] || stop=(--stop-time "$(date --date="@$until" +%T)")
  "${test[@]}" "${stop[@]}" --output-log "$log" "$@" || status=$?
  if late; then
    all_ran "$@" || status=1
  elif [[ ${SYLAR_TEST_AGAIN:-0} -gt 0 && $status == 8 ]]; then
    status=0
    "${test[@]}" "${stop[@]}" --output-log "$log" "$@" --parallel 1 --rerun-failed --repeat "until-fail:$SYLAR_TEST_AGAIN" ||
      status=$?
    ! late || { echo "test: the time is up, and not all that failed has run again"; status=1; }
  fi
  ((status == 0)) || tail -n 100 "$log" >>"$folder/failed.log"
  return "$status"
}

run_all() {
  preset=$1
  local -r folder=build/$preset/Testing/Temporary
  local -r log=$folder/output.log
  # Most tests wait more than they compute.
  test=(ctest --preset "$preset" --output-on-failure --no-tests=error --parallel "$((2 * jobs))")
  [[ $preset != *san ]] || test=(scripts/run_sanitized.sh "${test[@]}")
  mkdir -p "$folder" "$costs"
  rm -f "$folder/failed.log"
  [[ -e $folder/CTestCostData.txt || ! -e $costs/$preset ]] || cp "$costs/$preset" "$folder/CTestCostData.txt"
  local status=0
  if [[ $preset == tsan ]]; then  # races with fibers taken for concurrent wherever they run, so more is found (sylar/base/tsan.h)
    run_tests --label-exclude "race|$without" || status=$?
    SYLAR_TSAN_STRICT=1 run_tests --label-regex race --label-exclude "$without" || status=$?
  else
    run_tests "${only[@]}" --label-exclude "$without" || status=$?
  fi
  [[ ! -e $folder/CTestCostData.txt ]] || cp "$folder/CTestCostData.txt" "$costs/$preset"
  return "$status"
}

(($# > 0)) || set -- release
scripts/setup.sh
targets=() only=()
if [[ $1 == --changed ]]; then
  for check in includes promises guide; do "scripts/check_$check.py"; done
  mapfile -t folders <<<"$(scripts/changed_tests.py "${@:2}")"
  echo "test: the changes reach ${folders[*]:-nothing more}"
  [[ -n ${folders[*]} ]] || exit 0
  if [[ ${folders[*]} != all ]]; then
    targets=(sylar/all "${folders[@]/#/tests_of_}")
    only=(--label-regex "^($(IFS='|'; echo "${folders[*]}"))(-race)?\$")
  fi
  without=${SYLAR_TEST_WITHOUT:-nightly}
  SYLAR_MUTANTS=${SYLAR_MUTANTS:-0/10}
  set -- release
fi
status=0
for preset in "$@"; do build "$preset" "${targets[@]}" || status=$?; done
((status == 0)) || exit "$status"
for preset in "$@"; do run_all "$preset" || status=$?; done
if ((status != 0 && $# > 1)); then  # what failed first would stand far above the end
  for preset in "$@"; do cat "build/$preset/Testing/Temporary/failed.log" 2>/dev/null || true; done
fi
exit "$status"
