#include "backends/node/copied/mirror_script.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "absl/strings/escaping.h"
#include "launch/engine_call.h"
#include "launch/record.h"

namespace tp::node {
namespace {

// Of the pieces of one look; an answer is at most 4 MiB, and base64 takes a third more.
constexpr size_t kMostBytesOfLook = 2 * 1024 * 1024;
constexpr size_t kLeastBytesOfRank = 16 * 1024;

constexpr std::string_view kCopyFacts = R"sh(
read -r h </proc/sys/kernel/hostname
read -r b </proc/sys/kernel/random/boot_id
read -r u _ </proc/uptime
echo "host $h"
echo "boot $b"
echo "up $u"
)sh";

// Of a log, the file that holds the offset asked for, or the oldest behind it. A current file that was renamed
// meanwhile is left for the next look.
constexpr std::string_view kMirrorFunctions = R"sh(
plain() { [ -f "$1" ] && [ ! -L "$1" ]; }
emit() {
  x=$(base64 | tr -d '\n')
  [ -z "$x" ] || echo "copy $i $1 $x"
}
rec() { ! plain "$d/$2" || head -c 16384 <"$d/$2" | emit "$1"; }
piece() { tail -c "+$(($4 - $3 + 1))" <"$2" | head -c "$most" | emit "$1 $3 $4"; }
tl() {
  plain "$d/$2" || return 0
  z=$(wc -c <"$d/$2")
  o=$3
  [ "$z" -ge "$o" ] || o=0
  [ "$z" -le "$o" ] || piece "$1" "$d/$2" 0 "$o"
}
lg() {
  n=$d/$p.log
  c=0
  for f in "$n".[0-9]*; do
    s=${f##*.log.}
    case $s in *[!0-9]*) continue ;; esac
    [ "${#s}" -eq 20 ] && plain "$f" || continue
    s=${s#"${s%%[!0]*}"}
    s=${s:-0}
    c=$((s + $(wc -c <"$f")))
    [ "$c" -gt "$1" ] || continue
    o=$1
    [ "$o" -ge "$s" ] || o=$s
    piece log "$f" "$s" "$o"
    return
  done
  plain "$n" || return 0
  o=$1
  [ "$o" -ge "$c" ] || o=$c
  x=$(piece log "$n" "$c" "$o")
  [ -z "$x" ] || [ -e "$n.$(printf %020d "$c")" ] || echo "$x"
}
m() {
  i=$1 d=$2 p=$3
  case $4 in *a*) rec attempt attempt.claim ;; esac
  case $4 in *c*) rec claim "$p.claim" ;; esac
  case $4 in *s*) rec started "$p.started" ;; esac
  case $4 in *e*) rec ended "$p.exit" ;; esac
  case $4 in *h*) rec heartbeat "$p.heartbeat" ;; esac
  lg "$5"
  tl system "$p.system.log" "$6"
  case $4 in *m*) tl metrics metrics.jsonl "$7" ;; esac
}
)sh";

std::string WantsOf(const MirrorQuestion& question) {
  std::string wants = "-";
  if (question.attempt_claim) wants += 'a';
  if (question.claim) wants += 'c';
  if (question.started) wants += 's';
  if (question.ended) wants += 'e';
  if (question.heartbeat) wants += 'h';
  if (question.metrics_offset) wants += 'm';
  return wants;
}

std::string_view TakeField(std::string_view& text) {
  const size_t blank = text.find(' ');
  const std::string_view field = text.substr(0, blank);
  text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
  return field;
}

std::optional<int64_t> PositionIn(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && number >= 0;
  return whole ? std::optional(number) : std::nullopt;
}

std::optional<PieceKind> KindOf(std::string_view word) {
  if (word == "attempt") return PieceKind::kAttemptClaim;
  if (word == "claim") return PieceKind::kClaim;
  if (word == "started") return PieceKind::kStarted;
  if (word == "ended") return PieceKind::kEnded;
  if (word == "heartbeat") return PieceKind::kHeartbeat;
  if (word == "log") return PieceKind::kLog;
  if (word == "system") return PieceKind::kSystem;
  if (word == "metrics") return PieceKind::kMetrics;
  return std::nullopt;
}

bool HasPosition(PieceKind kind) {
  switch (kind) {
    case PieceKind::kLog:
    case PieceKind::kSystem:
    case PieceKind::kMetrics:
      return true;
    case PieceKind::kAttemptClaim:
    case PieceKind::kClaim:
    case PieceKind::kStarted:
    case PieceKind::kEnded:
    case PieceKind::kHeartbeat:
      return false;
  }
  return false;
}

std::string Relative(const std::string& path, const std::string& root) { return path.substr(root.size() + 1); }

// As launch::CloseFence: in place, so that a rank reads one or the other word.
constexpr std::string_view kCloseFence = R"sh(
[ ! -d "$d" ] || [ -L "$d/fence" ] || { echo closed 1<>"$d/fence" && sync "$d/fence" 2>/dev/null; }
)sh";

std::string FindDelivered(const RankBinary& binary) {
  return fmt::format(R"sh(
is_rank() {{ [ ! -L "$1" ] && [ -O "$1" ] && [ -x "$1/{0}" ] && rank=$1/{0}; }}
is_rank "${{HOME:-/nonexistent}}/.tp" || is_rank "/var/tmp/tp-$(id -u)" || {{ echo norank; exit 0; }}
)sh",
                     binary.file_name());
}

}  // namespace

std::string MirrorProgram(const std::vector<MirrorQuestion>& questions) {
  if (questions.empty()) return "";
  const size_t most = std::max(kLeastBytesOfRank, kMostBytesOfLook / questions.size());
  std::string text = fmt::format("most={}\n{}{{\n:\n", most, kMirrorFunctions);
  for (const MirrorQuestion& question : questions) {
    text += fmt::format("m {} {} {}-{} {} {} {} {}\n", question.id, Quote(question.attempt_dir), question.pool,
                        question.rank, WantsOf(question), question.log_offset, question.system_offset,
                        question.metrics_offset.value_or(0));
  }
  return text + "} 2>/dev/null\necho \"copies end\"\n";
}

std::optional<Piece> ParsePiece(std::string_view line) {
  Piece piece;
  const std::optional<int64_t> id = PositionIn(TakeField(line));
  const std::optional<PieceKind> kind = KindOf(TakeField(line));
  if (!id || !kind) return std::nullopt;
  piece.id = static_cast<size_t>(*id);
  piece.kind = *kind;
  if (HasPosition(*kind)) {
    const std::optional<int64_t> begin = PositionIn(TakeField(line));
    const std::optional<int64_t> offset = PositionIn(TakeField(line));
    if (!begin || !offset || *offset < *begin) return std::nullopt;
    piece.begin = *begin;
    piece.offset = *offset;
  }
  if (!absl::Base64Unescape({line.data(), line.size()}, &piece.bytes) || piece.bytes.empty()) return std::nullopt;
  if (!HasPosition(*kind) && piece.bytes.size() > launch::kMaxRecordBytes) return std::nullopt;
  return piece;
}

std::string RunDirectoryOf(const std::string& attempt_dir) {
  const std::string attempts = attempt_dir.substr(0, attempt_dir.rfind('/'));
  return attempts.substr(0, attempts.rfind('/'));
}

// An attempt of a step is over before the next one is launched, so what lies beside the new one under the same step's
// name is left over.
std::string CopyInProgram(const CopyInPlace& place) {
  const std::string attempt = place.attempt_dir.substr(place.attempt_dir.rfind('/') + 1);
  return fmt::format(R"sh({0}
root={1} dir={2} token={3} run={4} me={5}
old() {{ grep -zalsF {6} /proc/[0-9]*/environ 2>/dev/null; }}
for n in 1 2 3 4 5 6 7 8 9 10; do
  l=$(old)
  [ -n "$l" ] || break
  for f in $l; do f=${{f#/proc/}} && kill -KILL "${{f%%/*}}" 2>/dev/null; done
  sleep 0.1
done
for t in rsync base64; do
  command -v "$t" >/dev/null 2>&1 || {{ echo "storage missing $t"; exit 0; }}
done
if [ ! -d "$root" ]; then echo "storage noroot"
elif [ -e "$dir/.shared.$token" ]; then echo "storage shared"
elif ! e=$( {{ umask 007; cd "$root" && mkdir -p -- {7} {8} {9}; }} 2>&1 ); then echo "storage nowrite $e"
else
  [ -e "$dir/fence" ] || echo open >"$dir/fence"
  for a in "$run"/attempts/"${{me%-*}}"-*; do
    n=${{a##*/}}
    case ${{n##*-}} in *[!0-9]*) continue ;; esac
    [ "${{n%-*}}" != "${{me%-*}}" ] || [ "${{n##*-}}" -ge "${{me##*-}}" ] || rm -rf -- "$a"
  done
  c=0
  for a in "$run"/attempts/*; do [ ! -d "$a" ] || [ "${{a##*/}}" = "$me" ] || c=$((c + 1)); done
  echo "others $c $(find "$run/output" "$run/results" ! -type d 2>/dev/null | head -n 1 | wc -l)"
  echo "storage ok"
fi
)sh",
                     kCopyFacts, Quote(place.storage_root), Quote(place.attempt_dir), Quote(place.token),
                     Quote(RunDirectoryOf(place.attempt_dir)), Quote(attempt), Quote("TP_COPY_MARK=" + place.copy_mark),
                     Quote(Relative(place.attempt_dir, place.storage_root)),
                     Quote(Relative(RunDirectoryOf(place.attempt_dir) + "/output", place.storage_root)),
                     Quote(Relative(place.results_dir, place.storage_root)));
}

std::string CopyOutProgram(const std::string& attempt_dir, int pool, int rank) {
  return fmt::format(R"sh({0}
d={1} p={3}-{4}
cd {2} && [ -d "$d" ] || {{ echo gone; exit 0; }}
find output results -user "$(id -un)" \( -type d ! -perm -500 -exec chmod u+rx {{}} \; \) -o \
  \( -type f -user "$(id -un)" ! -perm -400 -exec chmod u+r {{}} + \) 2>/dev/null
echo "ready $(find output results -type f -cnewer "$d/$p.claim" -exec ls -lnd {{}} + 2>/dev/null |
  awk '{{ s += $5 }} END {{ printf "%.0f", s }}')"
)sh",
                     kCopyFacts, Quote(attempt_dir), Quote(RunDirectoryOf(attempt_dir)), pool, rank);
}

std::string HostFenceProgram(size_t id, const std::string& attempt_dir, const std::string& fence_claim) {
  return fmt::format(R"sh({0}{1}
i={2} d={3}
( umask 007; mkdir -p -- "$d" ) 2>/dev/null
t=$d/.fence.$$
printf '%s' {4} >"$t" && {{ sync "$t"; ln "$t" "$d/attempt.claim"; sync "$d"; }} 2>/dev/null
rm -f "$t"
rec attempt attempt.claim
)sh",
                     kCopyFacts, kMirrorFunctions, id, Quote(attempt_dir), Quote(fence_claim));
}

std::string CopiedSignalProgram(const RankBinary& binary, const std::string& attempt_dir,
                                const std::vector<RankQuestion>& ranks, StopLevel level) {
  std::string text = fmt::format("{}d={}\n", kCopyFacts, Quote(attempt_dir));
  if (level == StopLevel::kKill) text += kCloseFence;
  text += FindDelivered(binary);
  text += fmt::format(R"sh(
s() {{
  if [ -d "$d" ]; then
    w=$("$rank" signal "$d" "$2" "$3" {} 2>&1)
    printf 'rank %s %s %s\n' "$1" "$?" "$w"
  else
    echo "rank $1 4"
  fi
}}
)sh",
                      launch::SignalWord(level));
  for (const RankQuestion& rank : ranks) text += fmt::format("s {} {} {}\n", rank.id, rank.pool, rank.rank);
  if (level == StopLevel::kWarn) text += "[ ! -d \"$d\" ] || [ -L \"$d/pause\" ] || : >>\"$d/pause\"\n";
  return text;
}

std::string SettleProgram(const RankBinary& binary, const std::string& attempt_dir,
                          const std::vector<RankQuestion>& ranks) {
  std::string text = fmt::format("{}d={}\n{}{}", kCopyFacts, Quote(attempt_dir), kCloseFence, FindDelivered(binary));
  text += R"sh(
[ -d "$d" ] || { echo settled; exit 0; }
alive=
s() {
  "$rank" signal "$d" "$1" "$2" kill >/dev/null 2>&1
  for n in 1 2 3 4 5 6 7 8 9 10; do
    timeout 2 "$rank" reap "$d" "$1" "$2" >/dev/null 2>&1
    case $? in 0 | 4 | 5) return ;; esac
    sleep 0.1
  done
  alive=yes
}
)sh";
  for (const RankQuestion& rank : ranks) text += fmt::format("s {} {}\n", rank.pool, rank.rank);
  return text + "[ -n \"$alive\" ] && echo alive || echo settled\n";
}

std::string RemoveCopyProgram(const std::string& storage_root, const std::string& attempt_dir) {
  return fmt::format(R"sh({0}
run={2} d={3}
cd {1} 2>/dev/null || {{ echo removed; exit 0; }}
e=$(rm -rf -- "$d" 2>&1)
rmdir "$run/attempts" 2>/dev/null
[ -e "$run/attempts" ] || {{
  e=$e$(rm -rf -- "$run/output" "$run/results" 2>&1)
  rmdir "$run" "${{run%/*}}" 2>/dev/null
}}
[ -e "$d" ] && echo "left $e" || echo removed
)sh",
                     kCopyFacts, Quote(storage_root), Quote(RunDirectoryOf(attempt_dir)), Quote(attempt_dir));
}

}  // namespace tp::node
