#!/usr/bin/env bash
# Runs all tests on an instrumented build and tells how much of the library they reach, module by module. The pages with every line are
# in build/coverage/report.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh coverage
cmake --preset coverage
cmake --build --preset coverage --parallel "$(nproc)"
find build/coverage -name '*.gcda' -delete
ctest --preset coverage --parallel "$(nproc)" --exclude-regex '^(Model|Mutant)\.' || echo "coverage: some tests failed; the figures are those of what ran" >&2
mkdir -p build/coverage/report
gcovr --root . --filter sylar/ --filter include/ --exclude-throw-branches --gcov-ignore-parse-errors -j "$(nproc)" \
  --json-summary build/coverage/report/summary.json --html-details build/coverage/report/index.html build/coverage
python3 - build/coverage/report/summary.json <<'EOF'
import collections
import json
import sys

modules = collections.defaultdict(lambda: [0, 0, 0, 0])
for file in json.load(open(sys.argv[1]))["files"]:
    parts = file["filename"].split("/")
    for name in (parts[1] if parts[0] == "sylar" else "include", "all"):
        for i, key in enumerate(("line_covered", "line_total", "branch_covered", "branch_total")):
            modules[name][i] += file[key]
print(f"{'module':10} {'lines':>8} {'branches':>9}")
for name, (lines, of_lines, branches, of_branches) in sorted(modules.items(), key=lambda one: (one[0] == "all", one[0])):
    print(f"{name:10} {lines / max(of_lines, 1):8.1%} {branches / max(of_branches, 1):9.1%}")
EOF
