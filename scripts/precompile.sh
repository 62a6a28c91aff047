#!/usr/bin/env bash
# Runs a compiler. A header that it compiles has the path of the clone in its bytes. A sum of what went into it is written beside
# it, which a compiler cache reads instead (CCACHE_PCH_EXTSUM) and finds alike in all clones.
set -euo pipefail
"$@"
while [[ $1 != -o ]]; do shift; done
[[ $2 == *.pch ]] || exit 0
# The names of all headers, but for CMake's own, which includes them by their paths.
sed 's/^[^:]*://; s/\\$//' "$2.d" | tr -s ' ' '\n' | grep -v -e '/cmake_pch\.hxx' -e '^$' | xargs cat | sha256sum >"$2.sum"
