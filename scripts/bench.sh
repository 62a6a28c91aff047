#!/usr/bin/env bash
# Builds and runs one topic of the benchmarks; prints a table and writes bench/results/TOPIC.json and a plot. How to read them:
# bench/README.md.
#
#   scripts/bench.sh [topic] [argument of the topic's driver ...]     --help lists the arguments, --quick shows that it works
#     echo     (default) fibers, raw loops and other libraries over loopback TCP, 1 to 10 000 connections
#     http     HTTP hello beside nginx and others, under wrk
#     fiber    switches, spawning, wake-ups, a million fibers, two workers
#     memory   resident bytes of an idle connection
#     hooks    what the hooks cost code outside fibers
#     profile  where the instructions of a request, a yield and a spawn go
#     timer    every timer queue at every size, and the timers of other libraries
#     sleep    lateness, storms, very many sleepers, read timeouts
#     base     what the smallest parts cost
#   scripts/bench.sh --goals [--quick]     every topic as far as goals need it; one line a goal. Fails if a figure is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=build/release/bin
results=bench/results
python=/usr/bin/python3  # Debian's, which has matplotlib

topic=${1:-echo}
shift || true
case $topic in
  echo | http | fiber | memory | hooks | profile)
    run=("$python" "bench/run_$topic.py" --bin "$bin" --out "$results/$topic.json")
    ;;
  timer) run=("$python" bench/timer/run_timer.py --bin "$bin/bench_timer" --out "$results/timer.json") ;;
  sleep) run=("$python" bench/sleep/run_sleep.py --bin "$bin" --out "$results/sleep.json") ;;
  base) run=("$bin/bench_base" --benchmark_out="$results/base.json" --benchmark_out_format=json) ;;
  --goals) exec "$python" bench/goals.py "$@" ;;
  *)
    echo "bench: unknown topic '$topic'; known: echo, http, fiber, memory, hooks, profile, timer, sleep, base, --goals" >&2
    exit 2
    ;;
esac

scripts/setup.sh bench
cmake --preset release
cmake --build --preset release --parallel "$(nproc)" --target "topic_$topic"
mkdir -p "$results"
exec "${run[@]}" "$@"
