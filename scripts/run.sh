#!/usr/bin/env bash
# From a clean clone to a running service, in the foreground: examples/service, configured by the YAML files in its folder config.
#
#   scripts/run.sh [argument of the service ...]     such as -c DIR for a folder of your own
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh demo
preset=demo
[[ ! -e build/release/build.ninja ]] || preset=release  # where scripts/test.sh has built the service already
cmake --preset "$preset"
cmake --build --preset "$preset" --parallel "$(nproc)" --target service

cat <<'TEXT'

The service starts now; Ctrl-C ends it. Try in another terminal:
  curl http://127.0.0.1:8020/                 what there is
  curl http://127.0.0.1:8020/hello            the greeting of examples/service/config/service.yml
  curl http://127.0.0.1:8020/sleep?ms=1000    a handler that sleeps holds up nobody
  curl -d text http://127.0.0.1:8020/echo
  nc 127.0.0.1 8021                           echo over TCP

TEXT
# exec: this process becomes the service, so Ctrl-C reaches it and its exit status is ours.
(($# > 0)) || set -- -c examples/service/config
exec "build/$preset/bin/service" "$@"
