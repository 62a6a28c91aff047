#!/usr/bin/env bash
# Every header of the library compiles alone, without a warning: whoever includes it need know nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

check_one() {
  local flags=(-std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Werror -I. -fsyntax-only -x c++)
  echo "#include \"$1\"" | "${CXX:-g++}" "${flags[@]}" - && return
  echo "$1: does not compile alone" >&2
  return 255  # tells xargs to stop at once
}
export -f check_one

# shellcheck disable=SC2016  # $1 is for the inner shell
find sylar -name '*.h' -print0 | xargs -0 -n 1 -P "$(nproc)" bash -c 'check_one "$1"' check_headers
echo "headers: each of $(find sylar -name '*.h' | wc -l) compiles alone"
