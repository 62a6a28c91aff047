#!/usr/bin/env bash
# A cluster of examples/jobs on loopback: three replicas on one Redis, one of which leads by a lease of etcd, behind HAProxy.
#
#   scripts/run-cluster.sh           starts it, prints what to try, and ends it at Ctrl-C
#   scripts/run-cluster.sh --kill    ends a random replica of the running cluster every 2 s for 20 s, while jobs come, and counts them
#   scripts/run-cluster.sh --roll    restarts one replica after the other, and no request fails
#
# The environment may name the first of seven ports (SYLAR_CLUSTER_PORT, else 8030: that of HAProxy, then those of the replicas, of
# Redis, and two of etcd), a folder for settings, logs and data (SYLAR_CLUSTER_FOLDER, else build/cluster), a program that is built
# already (SYLAR_JOBS), and other seconds than 20 (SYLAR_CLUSTER_SECONDS).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

port=${SYLAR_CLUSTER_PORT:-8030}
folder=${SYLAR_CLUSTER_FOLDER:-build/cluster}
program=${SYLAR_JOBS:-build/release/bin/jobs}
replicas=(1 2 3)
redis_port=$((port + ${#replicas[@]} + 1))
etcd_port=$((redis_port + 1))
etcd_url=http://127.0.0.1:$etcd_port
peer_url=http://127.0.0.1:$((etcd_port + 1))  # etcd wants one, though it has no peers

write_settings() {
  for each in "${replicas[@]}"; do
    mkdir -p "$folder/$each"
    sed "s/8030/$((port + each))/; s/store: memory/store: redis/; s/port: 6379/port: $redis_port/; s/replica: \"\"/replica: r$each/
      s|endpoints: \[\]|endpoints: [$etcd_url]|; s/ttl_s: 10/ttl_s: 3/
      s/visibility_ms: 30000/visibility_ms: 4000/; s/handler_timeout_ms: 10000/handler_timeout_ms: 2000/" \
      examples/jobs/config/jobs.yml > "$folder/$each/jobs.yml"
  done
  {
    cat <<END
global
  maxconn 2000
defaults
  mode http
  timeout connect 1s
  timeout client 1m
  timeout server 1m
frontend jobs
  bind 127.0.0.1:$port
  stats enable
  stats uri /haproxy
  default_backend replicas
backend replicas
  option httpchk GET /readyz
  default-server check inter 200ms fall 1 rise 1
END
    for each in "${replicas[@]}"; do echo "  server r$each 127.0.0.1:$((port + each))"; done
  } > "$folder/haproxy.cfg"
}

# A replica, and another one whenever it ends. Ctrl-C at the terminal is not for the replica, which would take it for a second signal.
keep_running() {
  local replica=
  trap 'trap "" TERM; kill $replica || true; wait; exit' TERM
  while true; do
    setsid "$program" -c "$folder/$1" >> "$folder/$1.log" 2>&1 &
    replica=$!
    echo "$replica" > "$folder/$1.pid"
    wait "$replica" || true
    rm -f "$folder/$1.pid"
    sleep 0.2
  done
}

# Of a replica, as HAProxy sees it: UP or DOWN, how many requests it has there, and what its last check gave.
seen() {
  curl -sf "http://127.0.0.1:$port/haproxy;csv" | awk -F, -v name="r$1" '$1 == "replicas" && $2 == name {print $18, $5, $37}'
}
wait_until() {
  for ((i = 0; i < 600; ++i)); do
    ! "$@" || return 0
    sleep 0.1
  done
  echo "run-cluster: waited for a minute in vain: $*; the logs are in $folder" >&2
  exit 1
}
is_up() { [[ $(seen "$1") == UP\ *\ L7OK ]]; }  # not before the first check
is_left() { [[ $(seen "$1") == DOWN\ 0\ * ]]; }
is_killed() { kill -KILL "$(cat "$folder/$1.pid")" 2>/dev/null; }
has_ended() { ! kill -0 "$1" 2>/dev/null; }

is_taken() { (: <> "/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

start() {
  for ((each = port; each <= etcd_port + 1; ++each)); do
    ! is_taken "$each" || { echo "run-cluster: port $each is in use; does a cluster run already?" >&2; exit 1; }
  done
  if [[ -z ${SYLAR_JOBS:-} ]]; then
    scripts/setup.sh
    cmake --preset release
    cmake --build --preset release --target jobs --parallel "$(nproc)"
  fi
  mkdir -p "$folder"
  write_settings
  trap 'trap - EXIT; kill $(jobs -p) || true; wait' EXIT
  trap 'exit 0' INT TERM
  redis-server --port "$redis_port" --bind 127.0.0.1 --save "" --appendonly yes --dir "$folder" > "$folder/redis.log" &
  etcd --data-dir "$folder/etcd" --listen-client-urls "$etcd_url" --advertise-client-urls "$etcd_url" --listen-peer-urls "$peer_url" \
    --initial-advertise-peer-urls "$peer_url" --initial-cluster "default=$peer_url" --log-level error > "$folder/etcd.log" 2>&1 &
  for each in "${replicas[@]}"; do keep_running "$each" & done
  haproxy -f "$folder/haproxy.cfg" > "$folder/haproxy.log" 2>&1 &
  for each in "${replicas[@]}"; do wait_until is_up "$each"; done
  cat <<END

The cluster runs. Its logs are $folder/{1,2,3}.log. Try, in another terminal:

  curl -X PUT http://127.0.0.1:$port/jobs/tea -d '{"in_ms": 3000, "payload": "it is ready"}'
  tail -f $folder/?.log                   one of them runs it after 3 s
  scripts/run-cluster.sh --kill           kills a replica every 2 s; no job is lost
  scripts/run-cluster.sh --roll           restarts all of them; no request fails meanwhile

  http://127.0.0.1:$port/                 the jobs, the replicas, and which of them leads
  http://127.0.0.1:$port/haproxy          what HAProxy sees of them
END
  wait
}

# Puts 100 jobs, due within 3 s, until a replica has taken them.
put_jobs() {
  local jobs="" i
  for ((i = 0; i < 100; ++i)); do jobs+=",{\"id\": \"$1-$i\", \"in_ms\": $((RANDOM % 3000))}"; done
  wait_until curl -sf -X POST "http://127.0.0.1:$port/jobs" -d "[${jobs:1}]" -o /dev/null
}
none_is_left() { curl -sf "http://127.0.0.1:$port/status" | grep -q '"jobs":{"all":0,"dead":0,'; }

# Each run of a job has a line in a log. The names of the jobs are new each time.
kill_replicas() {
  local -r name="kill-$$-$RANDOM" end=$((SECONDS + ${SYLAR_CLUSTER_SECONDS:-20}))
  local put=0 killed=0 next=$SECONDS victim ran
  while ((SECONDS < end)); do
    put_jobs "$name-$put"
    put=$((put + 1))
    if ((SECONDS >= next)); then
      victim=${replicas[RANDOM % ${#replicas[@]}]}
      wait_until is_killed "$victim"
      killed=$((killed + 1))
      next=$((SECONDS + 2))
    fi
    sleep 0.1
  done
  wait_until none_is_left
  ran=$(cat "$folder"/?.log | grep -o "$name-[0-9]*-[0-9]* is due" | sort)
  echo "run-cluster: $killed replicas were killed; of $((100 * put)) jobs $((100 * put - $(uniq <<< "$ran" | wc -l))) were lost," \
    "$(uniq -d <<< "$ran" | wc -l) ran more than once"
}

# A replica that drains is not ready, so HAProxy sends it nothing more. When it has answered what it had, it may end.
roll() {
  for each in "${replicas[@]}"; do
    local old
    old=$(cat "$folder/$each.pid")
    curl -sf -X POST "http://127.0.0.1:$((port + each))/drain" > /dev/null
    wait_until is_left "$each"
    kill -TERM "$old"
    wait_until has_ended "$old"
    wait_until is_up "$each"
    echo "run-cluster: r$each was restarted"
  done
}

case ${1:-} in
  "") start ;;
  --kill) kill_replicas ;;
  --roll) roll ;;
  *)
    sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
