#include "backends/node/host_script.h"

#include <fmt/format.h>

#include "launch/engine_call.h"

namespace tp::node {
namespace {

// The end of a whole program; sh drops line ends at the end of what it reads, so it is the last word.
constexpr std::string_view kLastWord = "#tp-end";

// Beyond, dead trees wait for the next look.
constexpr int kMostReaps = 30;

constexpr std::string_view kFacts = R"sh(
read -r h </proc/sys/kernel/hostname
read -r b </proc/sys/kernel/random/boot_id
read -r u _ </proc/uptime
echo "host $h"
echo "boot $b"
echo "up $u"
)sh";

// Slower: a process each.
constexpr std::string_view kMoreFacts = R"sh(
echo "now $(date +%s.%N)"
df -Pk "${HOME:-/}" 2>/dev/null | { read -r _; read -r _ _ _ f _; echo "free $f"; }
)sh";

// What a login has; a job gets it under its own variables.
constexpr std::string_view kEnvironment = R"sh(
e() {
  case $2 in *"
"*) ;; *) printf 'env %s=%s\n' "$1" "$2" ;; esac
}
n=${USER:-$(id -un)}
e PATH "$PATH"
e HOME "${HOME:-/}"
e USER "$n"
e LOGNAME "${LOGNAME:-$n}"
e LANG "${LANG:-C.UTF-8}"
)sh";

// systemd ends what a user has started at the end of the session, where it is told to.
constexpr std::string_view kSessionCheck = R"sh(
if command -v busctl >/dev/null 2>&1 && [ "$(id -u)" != 0 ]; then
  case $(timeout 2 busctl get-property org.freedesktop.login1 /org/freedesktop/login1 \
    org.freedesktop.login1.Manager KillUserProcesses 2>/dev/null) in
  *true*) [ -e "/var/lib/systemd/linger/$(id -un)" ] || echo "nolinger" ;;
  esac
fi
)sh";

std::string FindRank(const RankBinary& binary, bool check_hash) {
  return fmt::format(R"sh(
is_rank() {{
  [ ! -L "$1" ] && [ -O "$1" ] && [ -x "$1/{0}" ] || return 1
  {1}
  rank=$1/{0}
}}
find_rank() {{ is_rank "${{HOME:-/nonexistent}}/.tp" || is_rank "/var/tmp/tp-$(id -u)"; }}
)sh",
                     binary.file_name(),
                     check_hash ? fmt::format(R"sh([ "$(sha256sum <"$1/{}")" = "{}  -" ] || return 1)sh",
                                              binary.file_name(), binary.sha256)
                                : ":");
}

// The root's own group first, so that the end of the login is not theirs.
std::string FindCgroup(const std::string& deployment) {
  return fmt::format(R"sh(
m=$(sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)
if [ -n "$m" ] && [ -w "$m/cgroup.procs" ]; then
  c=$m/tp-{0}
  [ -d "$c" ] || mkdir "$c" 2>/dev/null
  [ -w "$c/cgroup.procs" ] && echo "cgroup $c"
fi
)sh",
                     deployment);
}

// Whether what tpd sees in the attempt directory is there too.
constexpr std::string_view kIsSame =
    "elif [ \"$(cat \"$dir/.shared.$token\" 2>/dev/null)\" != \"$token\" ]; then echo \"storage other\"";
constexpr std::string_view kIsOther = "elif [ -e \"$dir/.shared.$token\" ]; then echo \"storage shared\"";

std::string CheckStorage(const PrepareRequest& request) {
  return fmt::format(R"sh(
root={0} dir={1} token={2}
if [ ! -d "$root" ]; then echo "storage noroot"
elif [ ! -d "$dir" ]; then echo "storage nodirectory"
{3}
elif ! e=$( {{ : >"$dir/.back.$token"; }} 2>&1 ); then echo "storage nowrite $e"
else echo "storage ok"
fi
{4}
)sh",
                     Quote(request.storage_root), Quote(request.attempt_dir), Quote(request.token),
                     request.copied ? kIsOther : kIsSame, request.copied ? "rm -f \"$dir/.back.$token\"" : "");
}

// Marks are whole entries of an environment: what a job puts into a value of its own is none.
std::string FindMarks(const std::string& names, const std::string& deployment) {
  return fmt::format(R"sh(
grep -zaoHsE '^{0}=tp-{1}-e[A-Za-z0-9._/-]*' /proc/[0-9]*/environ | tr '\0' '\n' | while IFS=: read -r f m; do
  f=${{f#/proc/}} f=${{f%%/*}}
  read -r s <"/proc/$f/stat" || continue
  s=${{s##*) }}
  set -- $s
  echo "mark $f $2 ${{m#*=}}"
done 2>/dev/null
echo "marks end"
)sh",
                     names, deployment);
}

constexpr std::string_view kNeedRank = "find_rank || { echo norank; exit 0; }\n";

}  // namespace

std::string Quote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string Bootstrap(size_t program_bytes) {
  return fmt::format(
      "exec /bin/sh -c 'p=$(dd ibs=1 count=$1 2>/dev/null); "
      "case $p in *{}) eval \"$p\" ;; *) exit 75 ;; esac' tp {}",
      kLastWord, program_bytes);
}

std::string Frame(const std::string& text, const std::string& token) {
  return fmt::format("printf '\\n%s begin\\n' {0}\n(\n{1}\n)\nprintf '\\n%s end %d\\n' {0} $?\n{2}", Quote(token), text,
                     kLastWord);
}

std::string RankBinary::file_name() const { return fmt::format("tp-rank-{}", sha256.substr(0, 32)); }

std::string DeliverProgram(const RankBinary& binary, int place, const std::string& token) {
  return fmt::format(R"sh(
fail() {{ rm -f "$t"; echo "why $*"; exit 0; }}
umask 077
d={0}
t=$d/.new.{1}
[ -d "$d" ] || e=$(mkdir "$d" 2>&1) || fail "$e"
[ ! -L "$d" ] && [ -O "$d" ] || fail "$d is not a directory of this user"
chmod 700 "$d"
e=$( {{ cat >"$t"; }} 2>&1 ) || fail "$e"
s=$(wc -c <"$t")
[ "$s" -eq {2} ] || fail "$s of {2} bytes arrived in $d: is its disk full?"
[ "$(sha256sum <"$t")" = "{3}  -" ] || fail "what arrived in $d has another sha256, or sha256sum is missing"
chmod 700 "$t"
v=$("$t" version 2>&1)
[ "$v" = "tp-rank 1" ] || fail "tp-rank does not run from $d on this $(uname -m): $v"
sync "$t" 2>/dev/null
mv -f "$t" "$d/{4}" || fail "cannot rename $t"
echo "delivered $d"
)sh",
                     place == 0 ? R"sh("${HOME:-/nonexistent}/.tp")sh" : R"sh("/var/tmp/tp-$(id -u)")sh", token,
                     binary.bytes.size(), binary.sha256, binary.file_name());
}

std::string ProbeProgram(const RankBinary& binary) {
  return fmt::format("{}{}{}", kFacts, kMoreFacts, FindRank(binary, true)) +
         "find_rank && echo \"rank $rank\" || echo norank\n";
}

std::string PrepareProgram(const RankBinary& binary, const PrepareRequest& request) {
  return fmt::format("{}{}{}{}{}{}{}{}", kFacts, kMoreFacts, FindRank(binary, true), kNeedRank, kEnvironment,
                     kSessionCheck, FindCgroup(request.deployment), CheckStorage(request));
}

std::string LaunchProgram(const RankBinary& binary, const LaunchRequest& request) {
  const std::string group = Quote(request.cgroup_of_attempt);
  const std::string options = request.cgroup_of_attempt.empty() ? "" : fmt::format(" --cgroup {}/runners", group);
  return fmt::format(R"sh({0}{1}{2}
[ "$b" = {3} ] || {{ echo "late the machine was restarted"; exit 0; }}
[ "${{u%%.*}}" -le {4} ] || {{ echo "late the order came too late"; exit 0; }}
{5}
w=$(env -i LC_ALL=C {6} "$rank" launch{7} 2>&1)
echo "launched $?"
printf '%s\n' "$w"
)sh",
                     kFacts, FindRank(binary, false), kNeedRank, Quote(request.boot_id), request.latest_uptime_s,
                     request.cgroup_of_attempt.empty() ? "" : fmt::format("[ -d {0} ] || mkdir {0} 2>/dev/null", group),
                     Quote(fmt::format("TP_LAUNCH_MARK={}/{}", request.key, request.nonce)), options);
}

std::string LookProgram(const RankBinary& binary, const std::vector<RankQuestion>& questions, bool marks,
                        const std::string& deployment) {
  std::string text = fmt::format(R"sh({0}{1}
find_rank || echo norank
reaps=0
is_same() {{
  read -r s <"/proc/$1/stat" || return 1
  s=${{s##*) }}
  want=$2
  set -- $s
  case $1 in Z | X | x) return 1 ;; esac
  [ "${{20}}" = "$want" ]
}}
q() {{
  [ "$2" = "$b" ] || {{ echo "rank $1 5"; return; }}
  if is_same "$3" "$4"; then echo "rank $1 6"; return; fi
  [ -n "${{rank:-}}" ] && [ "$reaps" -lt {2} ] || {{ echo "rank $1 1"; return; }}
  reaps=$((reaps + 1))
  timeout 2 "$rank" reap "$5" "$6" "$7" >/dev/null 2>&1
  c=$?
  [ "$c" -eq 124 ] && reaps={2} && c=1
  echo "rank $1 $c"
}}
{{
:
)sh",
                                 kFacts, FindRank(binary, false), kMostReaps);
  for (const RankQuestion& question : questions) {
    text += fmt::format("q {} {} {} {} {} {} {}\n", question.id, Quote(question.boot_id), question.runner_pid,
                        question.runner_start_ticks, Quote(question.attempt_dir), question.pool, question.rank);
  }
  text += "} 2>/dev/null\n";
  if (marks) text += FindMarks("TP_LAUNCH_MARK", deployment);
  return text;
}

std::string InventoryProgram(const std::string& deployment) {
  return std::string(kFacts) + FindMarks("(TP_LAUNCH_MARK|TP_RANK_TOKEN)", deployment);
}

std::string SignalProgram(const RankBinary& binary, const std::vector<RankQuestion>& ranks, StopLevel level) {
  std::string text = fmt::format(R"sh({}{}{}
s() {{
  w=$("$rank" signal "$2" "$3" "$4" {} 2>&1)
  printf 'rank %s %s %s\n' "$1" "$?" "$w"
}}
)sh",
                                 kFacts, FindRank(binary, false), kNeedRank, launch::SignalWord(level));
  for (const RankQuestion& rank : ranks) {
    text += fmt::format("s {} {} {} {}\n", rank.id, Quote(rank.attempt_dir), rank.pool, rank.rank);
  }
  return text;
}

std::string RemoveCgroupProgram(const std::string& cgroup_of_attempt) {
  return fmt::format(R"sh({}
g={}
i=0
while [ -d "$g" ] && [ "$i" -lt 25 ]; do
  for c in "$g"/*/; do [ -d "$c" ] && rmdir "$c" 2>/dev/null; done
  rmdir "$g" 2>/dev/null && break
  i=$((i + 1))
  sleep 0.02
done
[ -d "$g" ] && echo "left $g" || echo removed
)sh",
                     kFacts, Quote(cgroup_of_attempt));
}

}  // namespace tp::node
