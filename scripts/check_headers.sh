#!/usr/bin/env bash
# Every header of the library compiles alone, without a warning: nobody who includes it need know anything else. A public one sees
# public ones only. An internal header that some source includes before anything else is compiled so by every build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

check_one() {
  local flags=(-std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Werror -Iinclude -fsyntax-only -x c++)
  [[ $1 == include/* ]] || flags+=(-I.)
  echo "#include \"${1#include/}\"" | "${CXX:-g++}" "${flags[@]}" - && return
  echo "$1: does not compile alone" >&2
  return 255  # tells xargs to stop at once
}
export -f check_one

included_first() {  # headers, as they are written
  find sylar -name '*.cc' -print0 | xargs -0 -n 1 awk '/^#include/ {print $2; exit}' | tr -d '"'
}
mapfile -t headers < <(find include -name '*.h'; comm -23 <(find sylar -name '*.h' | sort) <(included_first | sort -u))

# shellcheck disable=SC2016  # $1 is for the inner shell
printf '%s\0' "${headers[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'check_one "$1"' check_headers
echo "headers: each of $(find include sylar -name '*.h' | wc -l) compiles alone, ${#headers[@]} of them in no source"
