#!/usr/bin/env bash
# Makes the reference of the public headers, with the guide and the design, into a site of static pages, and prints where it is. Any
# warning of doxygen fails it: an unknown command in a comment, a link that leads nowhere.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v doxygen >/dev/null; then
  echo "docs: doxygen is not installed; run scripts/setup.sh" >&2
  exit 1
fi
rm -rf build/docs/html
mkdir -p build/docs
doxygen docs/Doxyfile
echo "docs: build/docs/html/index.html"
