# shellcheck shell=bash
# A process that a script leaves running, known by a file "<pid> <start ticks>", so
# that a pid which the system gave away again is never mistaken for it.

# Field 22 of /proc/PID/stat; the name before it may hold spaces and brackets.
process_start_ticks() {
  local stat fields
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  read -r -a fields <<<"${stat##*) }"
  echo "${fields[19]}"
}

# process_record FILE PID
process_record() {
  local ticks
  ticks=$(process_start_ticks "$2") || return 1
  echo "$2 $ticks" >"$1"
}

# process_recorded FILE: prints the pid when the recorded process still runs.
process_recorded() {
  local pid ticks
  [ -f "$1" ] || return 1
  read -r pid ticks <"$1" || return 1
  [ -n "$ticks" ] && [ "$(process_start_ticks "$pid")" = "$ticks" ] || return 1
  echo "$pid"
}

# process_stop FILE SECONDS: TERM, then waits. Leaves the file when it does not end.
process_stop() {
  local file=$1 deadline=$((SECONDS + $2)) pid
  while pid=$(process_recorded "$file"); do
    if [ "$SECONDS" -ge "$deadline" ]; then return 1; fi
    kill -TERM "$pid" 2>/dev/null || true
    sleep 0.2
  done
  rm -f "$file"
}
