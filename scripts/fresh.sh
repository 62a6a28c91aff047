#!/usr/bin/env bash
# Runs scripts/run.sh of the last commit in a bare Debian 12. It fails if that installs more than 110 packages or 120 MB of them, or
# takes more than 480 s of CPU until it answers, which are 4 minutes of two cores. The time that passes is only printed, because it
# depends on the network and on what else runs.
#
# It needs debootstrap, curl, root, and port 8020. Where it may not mount it exits with 77.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly most_packages=110 most_megabytes=120 most_cpu=480
root=$PWD/build/nightly/bare
url=http://127.0.0.1:8020/hello

if ((EUID != 0)) || ! unshare --mount true 2>/dev/null; then
  echo "fresh: skipped, because a bare system takes root's right to mount"
  exit 77
fi
if (: <>/dev/tcp/127.0.0.1/8020) 2>/dev/null; then
  echo "fresh: port 8020 is in use; end what listens there" >&2
  exit 1
fi

count_packages() { chroot "$root" dpkg-query --show | wc -l; }

# The CPU seconds of all children that have ended, and of theirs.
cpu_seconds() { awk -v ticks="$(getconf CLK_TCK)" '{ print int(($16 + $17) / ticks) }' "/proc/$$/stat"; }

pid=
trap '[[ -z $pid ]] || kill "$pid" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT
rm -rf --one-file-system "$root"
mkdir -p "$root"
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1)
debootstrap --variant=minbase bookworm "$root" ${mirror:+"$mirror"}
chroot "$root" apt-get clean
mkdir "$root/sylar"
git archive HEAD | tar -x -C "$root/sylar"

packages=$(count_packages) cpu=$(cpu_seconds) begun=$SECONDS
# Each of these becomes the next, so `pid` is the service in the end.
unshare --mount bash -c 'mount -t proc proc "$0/proc" && exec chroot "$0" /sylar/scripts/run.sh' "$root" &
pid=$!
until curl --silent --fail --max-time 5 "$url"; do
  kill -0 "$pid" || { echo "fresh: run.sh has ended before it answered" >&2; exit 1; }
  sleep 1
done
seconds=$((SECONDS - begun))
kill -INT "$pid"
wait "$pid" || { echo "fresh: the service ended with status $?, not with 0" >&2; exit 1; }
pid=

packages=$(($(count_packages) - packages)) cpu=$(($(cpu_seconds) - cpu))
megabytes=$(find "$root/var/cache/apt/archives" -name '*.deb' -printf '%s\n' | awk '{ sum += $1 } END { print int(sum / 1e6) + 1 }')
echo "fresh: $packages packages of $megabytes MB, $cpu s of CPU, and the first answer after $seconds s on $(nproc) cores"
((packages <= most_packages && megabytes <= most_megabytes && cpu <= most_cpu)) || {
  echo "fresh: more than $most_packages packages, $most_megabytes MB or $most_cpu s of CPU" >&2
  exit 1
}
