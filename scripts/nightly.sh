#!/usr/bin/env bash
# What .ci/run leaves out because it takes long and finds little: a part of at most 40 minutes each.
#
#   scripts/nightly.sh [part ...]      all of them by default
#
#   mutants_even, mutants_odd   each seeded defect of the core is found (tests/model/mutants.py)
#   workers                     tests over several counts of workers, with 4
#   threads                     ten million borrowings of threads by four workers
#   clients                     libraries that keep something for their thread, and allocators, in fibers
#   mariadb                     a mariadbd whose threads are fibers
#   browser                     the status page of examples/jobs in a browser
#   package                     the installed static libraries in a project outside the tree
#   fresh                       scripts/run.sh in a bare Debian 12 (scripts/fresh.sh)
#   soak                        scripts/soak.sh, which goes on with the step that the last night ended in
#   clang, debug                all other tests in these presets
#
# The last line names the parts that passed, that were skipped, and that failed. What each has printed is in build/nightly.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly minutes=40 logs=build/nightly
all=(mutants_even mutants_odd workers threads clients mariadb browser package fresh soak clang debug)

# Builds TARGETS of the release with the seeded defects REST/N and runs the tests that NAMES matches.
release() {
  local -r mutants=$1 targets=$2 names=$3
  cmake --preset release -DSYLAR_MUTANTS="$mutants"
  cmake --build --preset release --parallel "$(nproc)" --target "$targets"
  ctest --preset release --no-tests=error --parallel "$(nproc)" --tests-regex "$names"
}

run_part() {
  case $1 in
    mutants_even) release 0/2 all '^Mutant\.' ;;
    mutants_odd) release 1/2 all '^Mutant\.' ;;
    workers)
      cmake --preset release
      cmake --build --preset release --parallel "$(nproc)"
      export SYLAR_TEST_WORKERS=4
      printf '%s\n' build/release/bin/*_test{,s} | xargs -I '{}' -P "$(nproc)" env '{}' '--gtest_filter=Workers/*' --gtest_brief=1
      ;;
    threads)
      cmake --preset release
      cmake --build --preset release --parallel "$(nproc)" --target hook_thread_identity_test
      SYLAR_BORROWINGS=10000000 build/release/bin/hook_thread_identity_test --gtest_filter='Workers/Identity.AThreadHasOneBorrower*/0'
      ;;
    clients) release 0/10 all '^Matrix\.' ;;
    mariadb) release 0/10 sylar-run '^Run\.Mariadb$' ;;
    browser) release 0/10 jobs '^Jobs\.page$' ;;
    package) release 0/10 all '^Package\.static$' ;;
    fresh) scripts/fresh.sh ;;
    soak)
      for preset in release asan tsan; do
        cmake --preset "$preset"
        cmake --build --preset "$preset" --parallel "$(nproc)"
      done
      timeout $((minutes * 60 - 60 - SECONDS)) scripts/soak.sh 0.5 || (($? == 124))  # its step is repeated the next time
      ;;
    clang | debug)
      SYLAR_TEST_UNTIL=$(date --date="$((minutes - 1)) minutes" +%s)
      export SYLAR_TEST_UNTIL SYLAR_TEST_AGAIN=10 SYLAR_TEST_WITHOUT=nightly SYLAR_MUTANTS=0/10
      scripts/test.sh "$1"
      ;;
  esac
}

if [[ ${1:-} == --part ]]; then  # the script as timeout(1) runs it
  run_part "$2"
  exit
fi
for part in "$@"; do
  [[ " ${all[*]} " == *" $part "* ]] || { echo "nightly: there is no part '$part', but ${all[*]}" >&2; exit 2; }
done
(($# > 0)) || set -- "${all[@]}"
scripts/setup.sh
mkdir -p "$logs"
passed=() skipped=() failed=()
for part in "$@"; do
  begun=$SECONDS status=0
  timeout --kill-after=1m "${minutes}m" scripts/nightly.sh --part "$part" >"$logs/$part.log" 2>&1 || status=$?
  case $status in
    0)
      passed+=("$part")
      echo "nightly: $part passed, $((SECONDS - begun)) s"
      ;;
    77)
      skipped+=("$part")
      tail -n 1 "$logs/$part.log"
      ;;
    *)
      failed+=("$part")
      tail -n 60 "$logs/$part.log"
      echo "nightly: $part failed, $((SECONDS - begun)) s; all that it printed is in $logs/$part.log"
      ;;
  esac
done
echo "nightly: passed: ${passed[*]:-none}; skipped: ${skipped[*]:-none}; failed: ${failed[*]:-none}"
((${#failed[@]} == 0))
