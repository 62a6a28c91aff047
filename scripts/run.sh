#!/usr/bin/env bash
# From a clean clone to a running echo server, in the foreground. Arguments go to the server.
#
#   scripts/run.sh [argument of echo_server ...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh
cmake --preset release
cmake --build --preset release --parallel "$(nproc)" --target example_echo_server

cat <<'TEXT'

The echo server starts now; Ctrl-C ends it. Try in another terminal (port 8007 unless you chose another):
  nc 127.0.0.1 8007
  cmake --build --preset release --target echo_client && build/release/bin/echo_client 127.0.0.1:8007

TEXT
# exec: this process becomes the server, so Ctrl-C reaches it and its exit status is ours.
ulimit -n "$(ulimit -Hn)" # each connection is a descriptor
exec build/release/bin/echo_server "$@"
