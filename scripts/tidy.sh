#!/usr/bin/env bash
# Runs clang-tidy with the checks of .clang-tidy, whose findings are errors. Needs a configured build/release.
#
#   scripts/tidy.sh             the library's sources that differ from the last commit, and one source for each such header
#   scripts/tidy.sh COMMIT      those that differ from COMMIT
#   scripts/tidy.sh all         all sources of the library
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

what=${1:-HEAD}
if [[ $what == all ]]; then
  mapfile -t sources < <(git ls-files 'sylar/*.cc')
else
  mapfile -t sources < <({
    git diff --name-only --diff-filter=d "$what" -- 'sylar/*.cc'
    git diff --name-only --diff-filter=d "$what" -- 'sylar/*.h' 'include/*.h' | sed 's|^include/||' | while read -r header; do
      git grep -l "#include \"$header\"" -- 'sylar/*.cc' | head -1 || true
    done
  } | sort -u)
fi
((${#sources[@]} > 0)) || { echo "tidy: nothing to look at"; exit 0; }
[[ -f build/release/compile_commands.json ]] || cmake --preset release >/dev/null
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy-14 -p build/release --quiet 2>/dev/null
echo "tidy: ${#sources[@]} sources are in order"
