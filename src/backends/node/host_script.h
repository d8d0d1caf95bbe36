// The sh programs that hosts are sent. Pure. Any POSIX sh runs them; values from outside are quoted words of
// theirs, and bytes that may be secret come on their stdin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tp/attempt.h"

namespace tp::node {

// One word of sh, for every byte but NUL.
std::string Quote(std::string_view text);

// --- Transport ------------------------------------------------------------------------------------------
// The command line for the login shell there, whichever that is: a fixed text without line ends, `!` or
// backslashes. It reads `program_bytes` of its stdin as a program and runs that, with the rest as its stdin;
// a program that did not arrive whole is not run.
std::string Bootstrap(size_t program_bytes);

// The program between two lines that carry `token`, so that its answer is told apart from what else a login
// prints, and its end from a connection that was lost.
std::string Frame(const std::string& text, const std::string& token);

// --- Programs -------------------------------------------------------------------------------------------
// Their answers are lines, read by host_reply.h.

// The tp-rank that all programs use, by content.
struct RankBinary {
  std::string bytes;
  std::string sha256;  // hex

  std::string file_name() const;
};

// Where a runner is kept on a host, tried in this order: the home directory, which nobody else can write to, then
// /var/tmp, for homes that are full, missing or mounted noexec. Each is a directory of the user's own, mode 0700.
inline constexpr int kRankPlaces = 2;

// Stores the binary from stdin: size, hash and that it runs there are checked before it gets its name.
std::string DeliverProgram(const RankBinary& binary, int place, const std::string& token);

// Facts of the machine, and whether tp-rank is there.
std::string ProbeProgram(const RankBinary& binary);

// The first half of a launch: facts, tp-rank checked by its hash, the environment of a login, the cgroup, and
// whether the attempt directory is the one that tpd sees, by the file `.shared.<token>` in it. Leaves `.back.<token>`.
// `copied`: whether it is another one, which can be written to.
struct PrepareRequest {
  std::string deployment;
  std::string storage_root;
  std::string attempt_dir;
  std::string token;
  bool copied = false;
};
std::string PrepareProgram(const RankBinary& binary, const PrepareRequest& request);

// The second half: `tp-rank launch`, its plan on stdin. Refuses on another boot and after `latest_uptime_s`, so that a
// command held up on the way starts nothing that tpd has given up.
struct LaunchRequest {
  std::string key;
  std::string nonce;
  std::string boot_id;
  int64_t latest_uptime_s = 0;
  std::string cgroup_of_attempt;  // empty: none
};
std::string LaunchProgram(const RankBinary& binary, const LaunchRequest& request);

struct RankQuestion {
  size_t id = 0;  // names the answer
  std::string attempt_dir;
  int pool = 0;
  int rank = 0;
  std::string boot_id;  // of the runner, as its claim has it
  int64_t runner_pid = 0;
  uint64_t runner_start_ticks = 0;
};

// Whether these runners live, and the end of what dead ones left behind; with `marks` also the processes of
// launches of this deployment.
std::string LookProgram(const RankBinary& binary, const std::vector<RankQuestion>& questions, bool marks,
                        const std::string& deployment);

// All processes of this deployment, of launches and of ranks.
std::string InventoryProgram(const std::string& deployment);

std::string SignalProgram(const RankBinary& binary, const std::vector<RankQuestion>& ranks, StopLevel level);

// Takes the cgroups of an attempt away, where they are empty.
std::string RemoveCgroupProgram(const std::string& cgroup_of_attempt);

}  // namespace tp::node
