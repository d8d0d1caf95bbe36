#!/bin/sh
# tp-rank.sh: starts the tp-rank binary next to it, or where that does not run stands in for it with
# the same contract (docs/launch-contract.md, "The sh stand-in", has the differences). POSIX sh with
# cat, date, dd, grep, ln, mkfifo, mv, rm, sed, setsid, sleep, sort, sync, tail, tr, uname, wc; dash and
# busybox serve.
set -u

here=${0%/*}
[ "$here" != "$0" ] || here=.
binary=$here/tp-rank-$(uname -m)
if "$binary" version >/dev/null 2>&1; then exec "$binary" "$@"; fi

readonly EXIT_NOT_GONE=1 EXIT_PROCESS_GONE=3 EXIT_NO_RECORD=4 EXIT_OTHER_HOST=5 EXIT_RUNNER_ALIVE=6
readonly EXIT_USAGE=64 EXIT_STORAGE=75 EXIT_NOT_OWNER=76 NOT_EXECUTABLE=126 NOT_FOUND=127
# One signal number an order, because a trap can't see a queued value.
readonly ORDER_WARN=36 ORDER_TERM=37 ORDER_KILL=38

refuse() { # CODE SENTENCE
  echo "tp-rank.sh: $2" >&2
  exit "$1"
}

# ---- clocks, identity, processes

boot_us() {
  read -r up _ </proc/uptime
  echo "${up%.*}${up#*.}0000"
}
unix_us() { echo "$(date +%s)000000"; }
boot_id() { cat /proc/sys/kernel/random/boot_id; }
host() { uname -n | sed 's/[^A-Za-z0-9.-]/_/g'; }

read_stat() { # PID: sets stat_*
  stat_line=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  [ -n "$stat_line" ] || return 1
  # shellcheck disable=SC2086
  set -- ${stat_line##*) }
  stat_state=$1 stat_threads=${18} stat_ticks=${20}
}
is_running() { # PID: not a zombie, unless threads of it live on
  read_stat "$1" || return 1
  case $stat_state in X | x) return 1 ;; Z) [ "$stat_threads" -gt 1 ] ;; *) return 0 ;; esac
}
is_same() { # PID TICKS
  is_running "$1" && [ "$stat_ticks" = "$2" ]
}
catches_usr1() { # PID: bit 9 of the caught signals
  caught=$(sed -n 's/^SigCgt:.*\(.\)..$/\1/p' "/proc/$1/status" 2>/dev/null)
  case $caught in [2367abefABEF]) return 0 ;; *) return 1 ;; esac
}

# ---- records

sync_paths() { # flushes everything where sync takes no names
  if [ "$sync_takes_names" = yes ]; then sync "$@"; else sync; fi
}
probe_sync() {
  sync_takes_names=no
  if sync --help 2>&1 | grep -q FILE; then sync_takes_names=yes; fi
}
is_record() { # FILE: complete, not torn
  [ -f "$1" ] && [ ! -L "$1" ] || return 1
  [ "$(sed -n '1p' "$1" 2>/dev/null)" = "tp-record 1" ] && [ "$(tail -n 1 "$1")" = end ]
}
value() { # FILE NAME
  sed -n "s/^$2=//p" "$1" 2>/dev/null
}
publish() { # NAME, record on stdin
  cat >".$1.$random" && is_record ".$1.$random" && sync_paths ".$1.$random" &&
    mv -f ".$1.$random" "$1" && sync_paths .
}
identity() {
  printf 'tp-record 1\nkey=%s\nnonce=%s\npool=%s\nrank=%s\nhost=%s\nboot_id=%s\n' \
    "$key" "$nonce" "$pool" "$rank" "$host" "$boot_id"
}

# ---- claim and fence

link_claim() { # NAME, record on stdin
  claim_file=.claim.$host.$boot_id.$random
  cat >"$claim_file" && is_record "$claim_file" && sync_paths "$claim_file" &&
    ln "$claim_file" "$1" 2>/dev/null
  rm -f "$claim_file"
}
claim_attempt() {
  if ! is_record attempt.claim; then
    { identity; printf 'owner=launch\nrandom=%s\nend\n' "$random"; } | link_claim attempt.claim
  fi
  is_record attempt.claim && [ "$(value attempt.claim key)" = "$key" ] ||
    refuse $EXIT_STORAGE "not started: attempt.claim can be neither made nor read in $dir"
  [ "$(value attempt.claim owner)" = launch ] && [ "$(value attempt.claim nonce)" = "$nonce" ] ||
    refuse $EXIT_NOT_OWNER "not started: another launch or the fence owns this attempt"
}
claim_process() {
  {
    identity
    printf 'runner=sh\nrunner_pid=%s\nrunner_start_ticks=%s\ncgroup=%s\nrandom=%s\nend\n' \
      "$$" "$runner_ticks" "$cgroup" "$random"
  } | link_claim "$name.claim"
  is_record "$name.claim" && [ "$(value "$name.claim" key)" = "$key" ] ||
    refuse $EXIT_STORAGE "not started: the rank's claim can be neither made nor read in $dir"
  [ "$(value "$name.claim" random)" = "$random" ] ||
    refuse $EXIT_NOT_OWNER "not started: another process runs this rank"
  sync_paths . || refuse $EXIT_STORAGE "not started: the claims can't be made durable in $dir"
}
check_fence() {
  case $(cat fence 2>/dev/null) in
    open) ;;
    closed) refuse $EXIT_NOT_OWNER "not started: tpd closed the fence" ;;
    *) refuse $EXIT_STORAGE "not started: no fence can be read in $dir" ;;
  esac
}

# ---- the job's tree: by its token in the environment, by session, by cgroup

stat_pids() { # PATTERN of the fields after the state
  cat /proc/[0-9]*/stat 2>/dev/null | sed -n "s/^\([0-9][0-9]*\) (.*) [A-Za-z] $1 .*/\1/p"
}
token_pids() { # some greps take the environment for one line and end it at the first NUL
  if printf 'a\0b\0' | grep -qzxF b 2>/dev/null; then
    grep -lszxF "TP_RANK_TOKEN=$token" /proc/[0-9]*/environ
  else
    for environ in /proc/[0-9]*/environ; do
      if tr '\0' '\n' <"$environ" | grep -qxF "TP_RANK_TOKEN=$token"; then echo "$environ"; fi
    done 2>/dev/null
  fi | sed 's|/proc/||;s|/environ||'
}
tree_pids() {
  {
    token_pids
    if [ -n "$session" ]; then stat_pids "[0-9]* [0-9]* $session"; fi
    if [ -n "$cgroup" ]; then cat "$cgroup/cgroup.procs" 2>/dev/null; fi
  } | sort -un | while read -r tree_pid; do
    if is_running "$tree_pid"; then echo "$tree_pid"; fi
  done
}
tree_is_empty() { # two looks, because a process may be forked behind one that passes by
  [ -z "$(tree_pids)" ] && [ -z "$(tree_pids)" ] || return 1
  [ -z "$cgroup" ] || ! grep -qs '^populated 1' "$cgroup/cgroup.events"
}
signal_tree() { # SIGNAL
  for tree_pid in $(tree_pids); do kill "-$1" "$tree_pid" 2>/dev/null; done
}
kill_tree() {
  if [ -n "$session" ]; then kill -KILL "$session" 2>/dev/null; fi
  if [ -n "$cgroup" ]; then { echo 1 >"$cgroup/cgroup.kill"; } 2>/dev/null; fi
  signal_tree KILL
}
sleep_ms() {
  sleep "$(($1 / 1000)).$(printf '%03d' $(($1 % 1000)))" 2>/dev/null || sleep 1
}

# ---- helpers

file_size() { # 0 for a file that can't be read
  size=$(wc -c <"$1") 2>/dev/null
  echo $((${size:-0}))
}
offset_of() { # SEGMENT: the number without leading zeros
  segment_offset=${1##*.log.}
  segment_offset=${segment_offset#"${segment_offset%%[1-9]*}"}
  echo "${segment_offset:-0}"
}
remove_oldest_segments() { # END
  for segment in "$name.log."[0-9]*; do
    [ -f "$segment" ] && [ $(($1 - $(offset_of "$segment"))) -gt "$log_max_bytes" ] || return 0
    rm -f "$segment"
  done
}
# dd hands on every read at once and takes no byte more than it writes. Failing storage holds the
# job's output up for half a minute; then bytes are dropped.
pump() {
  trap '' HUP INT QUIT TERM USR1 USR2
  quarter=$((log_max_bytes / 4)) start=0 block=65536 failures=0
  [ $quarter -ge $((16 * block)) ] || block=1024
  while :; do
    before=$(file_size "$name.log")
    dd bs=$block count=16 >>"$name.log" 2>/dev/null
    status=$?
    after=$(file_size "$name.log")
    if [ $status -ne 0 ]; then
      failures=$((failures + 1))
      sleep 1
      [ $failures -lt 30 ] || [ "$(dd bs=$block count=1 2>/dev/null | wc -c)" -ne 0 ] || return
      continue
    fi
    if [ "$after" = "$before" ]; then return; fi
    failures=0
    remove_oldest_segments $((start + after))
    if [ "$after" -ge $quarter ] &&
      mv "$name.log" "$(printf '%s.log.%020d' "$name" $start)"; then
      start=$((start + after))
      : >"$name.log"
    fi
  done
}
heartbeat() {
  trap '' HUP INT QUIT TERM USR1 USR2
  count=0 ordered=
  while is_same $$ "$runner_ticks"; do
    count=$((count + 1))
    { identity
      printf 'count=%020d\nbeat_boot_us=%020d\nbeat_unix_us=%020d\nend\n' \
        $count "$(boot_us)" "$(unix_us)"; } | dd of="$name.heartbeat" conv=notrunc 2>/dev/null
    # Once: the runner would come to nothing but its traps, each of which walks through all processes.
    if [ -z "$ordered" ] && [ "$(cat fence 2>/dev/null)" = closed ]; then
      ordered=yes
      kill -$ORDER_KILL $$
    fi
    sleep_ms "$heartbeat_ms"
  done
  # Nothing else ends the job when its runner is killed.
  session=$(value "$name.started" pid)
  while ! tree_is_empty; do kill_tree; sleep_ms 100; done
}

# ---- signals

note_signal() { # NAME SENDER
  if [ "$signal_count" -lt 16 ]; then
    signals="$signals${signals:+ }$1:$2:$(boot_us)"
    signal_count=$((signal_count + 1))
  fi
  case $1:$2 in TERM:* | USR1:tpd)
    signalled=yes
    signalled_by=${signalled_by:-$2}
    ;;
  esac
}
on_signal() { # NAME SENDER
  interrupted=yes
  if [ -n "$ended" ]; then return; fi
  note_signal "$1" "$2"
  case $1 in
    KILL) # end_tree goes on with it
      if [ -z "$killing" ]; then
        killing=yes
        kill_tree
      fi
      ;;
    USR1) for warned in $(tree_pids); do
      if catches_usr1 "$warned"; then kill -USR1 "$warned" 2>/dev/null; fi
    done ;;
    *) if [ -n "$job" ]; then
      kill "-$1" "-$job" 2>/dev/null || kill "-$1" "$job" 2>/dev/null
    fi ;;
  esac
}
set_traps() {
  trap 'on_signal TERM other' TERM
  trap 'on_signal INT other' INT
  trap 'on_signal USR1 other' USR1
  trap 'on_signal USR1 tpd' $ORDER_WARN
  trap 'on_signal TERM tpd' $ORDER_TERM
  trap 'on_signal KILL tpd' $ORDER_KILL
  trap 'interrupted=yes' HUP QUIT USR2
}

# ---- the job

find_start_problem() { # ARGV0: sets problem_errno, problem_at
  problem_errno='' problem_at=exec
  if ! (cd "$workdir") 2>/dev/null; then
    problem_at=workdir problem_errno=EACCES
    if [ ! -e "$workdir" ]; then problem_errno=ENOENT; fi
    return
  fi
  case $1 in
    */*) (cd "$workdir" && [ -e "$1" ]) || problem_errno=ENOENT
      if [ -z "$problem_errno" ] && ! (cd "$workdir" && [ -x "$1" ] && [ ! -d "$1" ]); then
        problem_errno=EACCES
      fi ;;
    *) (cd "$workdir" && on_path "$1") || problem_errno=ENOENT ;;
  esac
}
on_path() { # COMMAND
  rest=${PATH-/usr/bin:/bin}:
  while [ -n "$rest" ]; do
    directory=${rest%%:*} rest=${rest#*:}
    if [ -f "${directory:-.}/$1" ] && [ -x "${directory:-.}/$1" ]; then return 0; fi
  done
  return 1
}
become_job() { # ARGV
  umask "$job_umask"
  if [ -n "$cgroup" ]; then { echo 0 >"$cgroup/cgroup.procs"; } 2>/dev/null; fi
  cd "$workdir" || exit $NOT_EXECUTABLE
  export TP_RANK_TOKEN="$token"
  exec setsid "$@"
}
start_job() { # ARGV
  pipe=.$name.pipe.$random
  mkfifo "$pipe" || refuse $EXIT_STORAGE "not started: no pipe can be made in $dir"
  : >>"$name.log"
  # exec, because redirecting a function would keep copies of the caller's stdout and stderr open.
  (exec <"$pipe" >/dev/null 2>&1 && pump) &
  pump=$!
  (exec </dev/null >/dev/null 2>&1 && heartbeat) &
  heartbeat=$!
  exec 3>"$pipe"
  rm -f "$pipe"
  find_start_problem "$1"
  started_boot_us=$(boot_us) started_unix_us=$(unix_us)
  if [ -z "$problem_errno" ]; then
    become_job "$@" </dev/null >&3 2>&3 3>&- &
    job=$!
    session=$job
    if read_stat "$job"; then job_ticks=$stat_ticks; fi
    { start_names; echo end; } | publish "$name.started"
  fi
  exec 3>&-
}
start_names() {
  identity
  printf 'runner=sh\nprecision_us=10000\nrunner_pid=%s\nrunner_start_ticks=%s\n' \
    $$ "$runner_ticks"
  printf 'pid=%s\npid_start_ticks=%s\nstarted_boot_us=%s\nstarted_unix_us=%s\ncgroup=%s\n' \
    "${job:-0}" "$job_ticks" "$started_boot_us" "$started_unix_us" "$cgroup"
}
# Sets code. A trap that runs ends the wait with a code of its own, so it takes another; 127 from that
# one means that the first had the job's code already.
collect_code() {
  wait "$job"
  status=$?
  if [ $status -ne 127 ] || [ $code -eq 0 ]; then code=$status; fi
}
wait_for_job() {
  while [ -z "$killing" ]; do
    interrupted=
    collect_code
    if [ -z "$interrupted" ]; then return; fi
  done
}
end_tree() {
  rounds=$((end_grace_ms / 50))
  if [ -z "$killing" ]; then signal_tree TERM; fi
  while ! tree_is_empty; do
    if [ -n "$killing" ] || [ $rounds -le 0 ]; then kill_tree; fi
    rounds=$((rounds - 1))
    sleep_ms 50
  done
  ended=$(boot_us) ended_unix_us=$(unix_us)
  if [ -n "$killing" ] && [ -n "$job" ]; then collect_code; fi
}
finish_helpers() {
  for helper in "$heartbeat" $(stat_pids "$heartbeat"); do kill -KILL "$helper" 2>/dev/null; done
  wait "$heartbeat" 2>/dev/null
  # The pump ends at the pipe's end, unless a process outside the tree holds it open.
  rounds=0
  while is_running "$pump" && [ $rounds -lt 100 ]; do
    rounds=$((rounds + 1))
    sleep_ms 20
  done
  { kill -KILL "$pump"; } 2>/dev/null
  sync_paths "$name.log"
}
log_bytes() {
  offset=0
  for segment in "$name.log."[0-9]*; do
    if [ -f "$segment" ]; then offset=$(($(offset_of "$segment") + $(file_size "$segment"))); fi
  done
  echo $((offset + $(file_size "$name.log")))
}
end_names() {
  start_names
  printf 'ended_boot_us=%s\nended_unix_us=%s\n' "$ended" "$ended_unix_us"
  if [ -n "$problem_errno" ]; then
    printf 'exit=not_started\ncode=%s\nterm_signal=0\nerrno_name=%s\nfailed_at=%s\n' \
      "$code" "$problem_errno" "$problem_at"
  else
    printf 'exit=exited\ncode=%s\nterm_signal=0\n' "$code"
    if [ "$code" -gt 128 ]; then echo ambiguous=yes; fi
  fi
  printf 'signalled=%s\nsignalled_by=%s\nsignals=%s\n' "$signalled" "$signalled_by" "$signals"
  printf 'log_bytes=%s\nlog_lost_bytes=0\nend\n' "$(log_bytes)"
}

# ---- subcommands

is_name() { case $1 in '' | *[!A-Za-z0-9._-]*) return 1 ;; esac; }
is_number() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }

parse_options() { # sets the options and option_count
  dir='' key='' nonce='' pool='' rank='' workdir='' cgroup='' option_count=0
  log_max_bytes=1073741824 heartbeat_ms=10000 end_grace_ms=2000
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    [ $# -gt 1 ] || refuse $EXIT_USAGE "an option lacks its value"
    case $1 in
      --dir) dir=$2 ;; --key) key=$2 ;; --nonce) nonce=$2 ;; --pool) pool=$2 ;;
      --rank) rank=$2 ;; --workdir) workdir=$2 ;; --cgroup) cgroup=$2 ;;
      --log-max-bytes) log_max_bytes=$2 ;; --log-stall-ms) ;;
      --heartbeat-ms) heartbeat_ms=$2 ;; --end-grace-ms) end_grace_ms=$2 ;;
      *) refuse $EXIT_USAGE "unknown option" ;;
    esac
    shift 2
    option_count=$((option_count + 2))
  done
  [ $# -gt 1 ] || refuse $EXIT_USAGE "no command after --"
  case $dir in /*) ;; *) refuse $EXIT_USAGE "--dir must be an absolute path" ;; esac
  case $workdir in /*) ;; *) refuse $EXIT_USAGE "--workdir must be an absolute path" ;; esac
  case $cgroup in '' | /*) ;; *) refuse $EXIT_USAGE "--cgroup must be an absolute path" ;; esac
  is_name "$key" && is_name "$nonce" && is_number "$pool" && is_number "$rank" &&
    is_number "$log_max_bytes" && is_number "$heartbeat_ms" && is_number "$end_grace_ms" ||
    refuse $EXIT_USAGE "an option has a bad value"
}
prepare_cgroup() {
  if [ -z "$cgroup" ]; then return; fi
  mkdir "$cgroup" 2>/dev/null
  if [ ! -w "$cgroup/cgroup.procs" ] || [ ! -f "$cgroup/cgroup.events" ]; then cgroup=; fi
}
run() {
  parse_options "$@"
  shift $((option_count + 1))
  job='' job_ticks=0 session='' ended='' killing='' interrupted='' code=0
  signals='' signal_count=0 signalled=no signalled_by=''
  set_traps
  job_umask=$(umask)
  umask 007
  host=$(host) boot_id=$(boot_id) random=$(cat /proc/sys/kernel/random/uuid)
  read_stat $$ && runner_ticks=$stat_ticks || refuse $EXIT_STORAGE "/proc can't be read"
  name=$pool-$rank token=$key/$pool-$rank/$nonce
  cd "$dir" 2>/dev/null || refuse $EXIT_STORAGE "can't open $dir"
  probe_sync
  # A group with foreign processes in it is none that could be killed as a whole.
  if grep -qs '^populated 1' "$cgroup/cgroup.events"; then cgroup=; fi
  claim_attempt
  claim_process
  check_fence
  prepare_cgroup
  start_job "$@"
  case $problem_errno in
    '') wait_for_job ;;
    ENOENT) code=$NOT_FOUND ;;
    *) code=$NOT_EXECUTABLE ;;
  esac
  end_tree
  finish_helpers
  end_names | publish "$name.exit" ||
    refuse $EXIT_STORAGE "the end record of $name can't be written in $dir"
  if [ -n "$cgroup" ]; then rmdir "$cgroup" 2>/dev/null; fi
  if [ "$code" -eq 0 ] && [ $signalled = yes ]; then exit 143; fi
  exit "$code"
}

open_target() { # DIR POOL RANK
  [ $# -eq 3 ] && is_number "$2" && is_number "$3" || refuse $EXIT_USAGE "usage: DIR POOL RANK"
  cd "$1" 2>/dev/null || exit $EXIT_NO_RECORD
  name=$2-$3
  is_record "$name.claim" || exit $EXIT_NO_RECORD
  [ "$(value "$name.claim" boot_id)" = "$(boot_id)" ] &&
    [ "$(value "$name.claim" host)" = "$(host)" ] || exit $EXIT_OTHER_HOST
  runner=$(value "$name.claim" runner_pid) runner_ticks=$(value "$name.claim" runner_start_ticks)
}
send_order() { # DIR POOL RANK ORDER
  [ $# -eq 4 ] || refuse $EXIT_USAGE "usage: signal DIR POOL RANK warn|term|kill"
  case $4 in
    warn) order=$ORDER_WARN ;;
    term) order=$ORDER_TERM ;;
    kill) order=$ORDER_KILL ;;
    *) refuse $EXIT_USAGE "an order is warn, term or kill" ;;
  esac
  open_target "$1" "$2" "$3"
  is_same "$runner" "$runner_ticks" && kill "-$order" "$runner" 2>/dev/null ||
    exit $EXIT_PROCESS_GONE
}
reap() { # [--check] DIR POOL RANK
  check_only=no
  if [ "${1-}" = --check ]; then
    check_only=yes
    shift
  fi
  open_target "$@"
  if is_same "$runner" "$runner_ticks"; then exit $EXIT_RUNNER_ALIVE; fi
  token=$(value "$name.claim" key)/$name/$(value "$name.claim" nonce)
  cgroup=$(value "$name.claim" cgroup) session=
  first=$(value "$name.started" pid)
  # A session's id is the job's while its leader is the job or gone.
  if [ -n "$first" ] &&
    { ! read_stat "$first" || [ "$stat_ticks" = "$(value "$name.started" pid_start_ticks)" ]; }; then
    session=$first
  fi
  rounds=0
  while ! tree_is_empty; do
    [ $check_only = no ] && [ $rounds -lt 100 ] || exit $EXIT_NOT_GONE
    kill_tree
    rounds=$((rounds + 1))
    sleep_ms 50
  done
  if [ -n "$cgroup" ] && [ $check_only = no ]; then rmdir "$cgroup" 2>/dev/null || :; fi
}

command=${1-}
[ $# -eq 0 ] || shift
case $command in
  run) run "$@" ;;
  signal) send_order "$@" ;;
  reap) reap "$@" ;;
  version) echo "tp-rank.sh 1" ;;
  *) refuse $EXIT_USAGE "usage: tp-rank.sh run|signal|reap|version ... (docs/launch-contract.md)" ;;
esac
