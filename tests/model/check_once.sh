#!/usr/bin/env bash
# Runs a model check, unless the same code has passed it before on this machine: its result depends on nothing but its code and its
# arguments, and all of them together take minutes.
#
#   check_once.sh PROGRAM [argument ...]
#
# What has passed is in ~/.cache/sylar/models: remove that folder to run all again.
set -euo pipefail
passed=${XDG_CACHE_HOME:-$HOME/.cache}/sylar/models
code=$(mktemp)
trap 'rm -f "$code"' EXIT
objcopy --strip-debug --remove-section=.note.gnu.build-id "$1" "$code"
key=$({ sha256sum <"$code"; printf '%s\0' "${@:2}"; } | sha256sum | cut -d ' ' -f 1)
if [[ -e $passed/$key ]]; then
  echo "this code has passed it before: $(<"$passed/$key")"
  exit 0
fi
"$@"
mkdir -p "$passed"
date --utc '+%F %T' >"$passed/$key"
find "$passed" -type f -mtime +60 -delete
