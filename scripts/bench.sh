#!/usr/bin/env bash
# Builds and runs one topic of the benchmarks; prints a table and writes bench/results/*.json. How to read it: bench/README.md.
#
#   scripts/bench.sh [topic] [argument of the topic's driver ...]
#     echo   (default) fibers against raw epoll loops over loopback TCP; `scripts/bench.sh echo --help` lists its arguments
#     base   what the smallest parts cost
#     timer  every timer queue at every size, and the timers of other libraries; `scripts/bench.sh timer --help`
#     sleep  lateness, storms, very many sleepers, read timeouts; `scripts/bench.sh sleep --goals` prints a line a goal
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
topic=${1:-echo}
shift || true
bin=build/release/bin
results=bench/results

case $topic in
  echo)
    targets=(bench_raw_epoll_echo bench_fiber_echo bench_echo_load)
    run=(python3 bench/run_echo.py --bin "$bin" --out "$results/echo.json")
    ;;
  base)
    targets=(bench_base)
    run=("$bin/bench_base" --benchmark_out="$results/base.json" --benchmark_out_format=json)
    ;;
  timer)
    targets=(bench_timer)
    run=(/usr/bin/python3 bench/timer/run_timer.py --bin "$bin/bench_timer" --out "$results/timer.json")
    ;;
  sleep)
    targets=(bench_sleep_lateness bench_sleep_storm bench_sleep_sleepers bench_sleep_timeout_echo bench_echo_load)
    run=(python3 bench/sleep/run_sleep.py --bin "$bin" --out "$results/sleep.json")
    ;;
  *)
    echo "bench: unknown topic '$topic'; known: echo, base, timer, sleep" >&2
    exit 2
    ;;
esac

scripts/setup.sh
cmake --preset release
cmake --build --preset release --parallel "$(nproc)" --target "${targets[@]}"
mkdir -p "$results"
exec "${run[@]}" "$@"
