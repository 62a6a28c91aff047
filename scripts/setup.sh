#!/usr/bin/env bash
# Makes a fresh Debian 12 able to do one of these. Installs only what is missing, and says what; when nothing is missing it needs
# neither root nor network and changes nothing.
#
#   scripts/setup.sh demo         build the library and the demo service
#   scripts/setup.sh [tests]      also build, test and check all of this tree
#   scripts/setup.sh bench        also measure it beside others
#   scripts/setup.sh coverage     also count the lines that tests reach
set -euo pipefail

demo=(
  g++ cmake ninja-build pkg-config
  # Libraries that sylar itself is built on: context switch, log sink, settings, calls on files.
  libboost-context-dev libspdlog-dev libfmt-dev libyaml-cpp-dev liburing-dev
  # The service can ask a redis.
  libhiredis-dev
)
tests=(
  # Compilers. The sanitizer builds use clang: its runtimes are a package of their own, and llvm makes their reports readable.
  clang libclang-rt-14-dev llvm
  # Build. All compiles go through ccache where there is one, and tests are linked by lld.
  ccache lld
  # JSON, of examples/jobs.
  nlohmann-json3-dev
  # Tests and benchmarks. Client libraries are the proof that unmodified blocking code runs in fibers, each against its server;
  # Boost.Beast is a second opinion on HTTP heads, too.
  libboost-dev libgtest-dev libgmock-dev libbenchmark-dev
  libpq-dev libcurl4-openssl-dev libmariadb-dev libmemcached-dev libssl-dev redis-server memcached openssl
  python3-redis
  # More of them, which wait in locks: for threads of their own, or for one another.
  librdkafka-dev libsqlite3-dev libabsl-dev libboost-thread-dev libgrpc++-dev libc-ares-dev libzookeeper-mt-dev zookeeper
  # More, which keep something for their thread.
  libgnutls28-dev libcurl3-gnutls libxml2-dev python3-dev libzmq3-dev libgit2-dev
  # Allocators, which fibers enter while others wait in them.
  libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0
  # A disk that is as slow as a test wants.
  libfuse3-dev
  # What the HTTP server has to get along with: clients, load generators, attackers, a proxy.
  apache2-utils curl nghttp2-client nginx-light slowhttptest wrk
  # What stands beside the replicas of examples/jobs: a balancer, what elects a leader, and a browser for the status page.
  haproxy etcd-server chromium
  # Programs that run under sylar-run, with their servers.
  mariadb-client mariadb-server openssh-client openssh-server postgresql
  # The timers are measured beside those of libev, libuv and Boost.Asio.
  libev-dev libuv1-dev
  # A bare system, in which scripts/nightly.sh tries the demo.
  debootstrap
  # Tools that tests and checks run.
  git python3 strace gdb valgrind clang-format-14 clang-tidy-14 doxygen
)

packages=("${demo[@]}")
case ${1:-tests} in
  demo) ;;
  tests) packages+=("${tests[@]}") ;;
  # Fibers, echo and HTTP of Boost, Go and io_uring, and the plots.
  bench) packages+=("${tests[@]}" libboost-coroutine-dev libboost-fiber-dev golang-go python3-matplotlib) ;;
  coverage) packages+=("${tests[@]}" gcovr) ;;
  *)
    echo "setup: there is no list '$1', but demo, tests, bench and coverage" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is no Debian; install the equivalents of: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi
echo "setup: installing ${missing[*]}"

as_root=(env DEBIAN_FRONTEND=noninteractive)
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "setup: not root and no sudo; run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo "${as_root[@]}")
fi
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"

# Debian starts a service when it installs it. The tests start servers of their own on free ports; this machine needs no
# others.
for package in redis-server memcached nginx mariadb openssh-server postgresql haproxy etcd; do
  [[ " ${missing[*]}" == *" $package"* ]] || continue
  service=${package/openssh-server/ssh}
  if [[ -d /run/systemd/system ]]; then
    "${as_root[@]}" systemctl disable --now "$service"
  else
    "${as_root[@]}" service "$service" stop || true  # a container has often started nothing
  fi
done
