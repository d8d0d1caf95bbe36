# shellcheck shell=bash
# Shared by the scripts; source it after "set -euo pipefail".

TP_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly TP_ROOT

# A second checkout of the same sources then finds the first one's objects.
export CCACHE_BASEDIR="$TP_ROOT" CCACHE_NOHASHDIR=1

say() { printf '%s\n' "$*"; }
warn() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

# die STATUS MESSAGE...
die() {
  local status=$1
  shift
  warn "$@"
  exit "$status"
}

# Prints the comment block at the top of the calling script, without the shebang.
print_help() { awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$0"; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die 5 "needs root for: $* (run as root, or install sudo)"
  fi
}
