#!/usr/bin/env bash
# Builds and runs one topic of the benchmarks, or all; prints tables and writes build/bench/TOPIC.json and a plot. How to read them:
# bench/README.md.
#
#   scripts/bench.sh [topic] [argument of the topic's driver ...]     --help lists the arguments, --quick shows that it works
#     echo     (default) fibers, raw loops and other libraries over loopback TCP, 1 to 10 000 connections
#     http     HTTP hello beside nginx and others, under wrk
#     latency  the others' latency while 1 % of the requests are slow
#     files    the others' latency while a file that is not in the page cache is served
#     fiber    switches, spawning, wake-ups, a million fibers, two workers
#     sync     locks, channels, groups of tasks and a select beside std::mutex and Go
#     memory   resident bytes of an idle connection
#     hooks    what the hooks cost code outside fibers
#     profile  where the instructions of a request, a yield, a spawn and of waiting go
#     timer    every timer queue at every size, and the timers of other libraries
#     sleep    lateness, storms, very many sleepers, read timeouts
#     ttlkv    the key-value server of examples/ beside redis-server
#     base     what the smallest parts cost
#   scripts/bench.sh --goals [--quick]     every topic as far as goals need it; one line a goal. Fails if a figure is missing.
#   scripts/bench.sh all [--results DIR]   every topic wholly, with all peers; the figures, plots and tables to publish
#   scripts/bench.sh compare DIR DIR       the goals of two runs side by side, and the ratios that differ by 10 % or more
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=build/release/bin
results=build/bench
python=/usr/bin/python3  # Debian's, which has matplotlib

topic=${1:-echo}
shift || true
case $topic in
  echo | http | latency | files | fiber | sync | memory | hooks | profile | timer | sleep | ttlkv)
    run=("$python" "bench/run_$topic.py" --bin "$bin" --out "$results/$topic.json")
    ;;
  base | router) run=("$bin/bench_$topic" --benchmark_out="$results/$topic.json" --benchmark_out_format=json) ;;
  --goals) exec "$python" bench/run_all.py --goals --results "$results" "$@" ;;
  all) exec "$python" bench/run_all.py "$@" ;;
  compare) exec "$python" bench/compare.py "$@" ;;
  *)
    echo "bench: unknown topic '$topic'; known: echo, http, latency, files, fiber, sync, memory, hooks, profile, timer, sleep, ttlkv, base, router, all, compare, --goals" >&2
    exit 2
    ;;
esac

{
  scripts/setup.sh bench
  cmake --preset release
  cmake --build --preset release --parallel "$(nproc)" --target "topic_$topic"
} >&2  # what goes to stdout are the tables
mkdir -p "$results"
exec "${run[@]}" "$@"
