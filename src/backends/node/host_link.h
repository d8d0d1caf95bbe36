// One machine as this backend knows it: asked through its circuit, with tp-rank delivered where it is missing, and
// what it last said about itself. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "backends/node/circuit.h"
#include "backends/node/host_reply.h"
#include "backends/node/host_script.h"
#include "backends/node/remote_shell.h"
#include "base/random.h"
#include "tp/attempt.h"
#include "tp/backend.h"

namespace tp::node {

// An answer, or a sentence that names the host.
struct HostSilence {
  std::string why;
  bool may_have_run = false;
};
using HostAnswer = std::variant<HostReply, HostSilence>;

class HostLink {
 public:
  // All outlive the link. `opened` is called, from any thread, when a host that did not answer does again.
  HostLink(RankHost host, RemoteShell& shell, const RankBinary& binary, std::function<void()> opened);

  const RankHost& host() const { return host_; }

  // Answered at once while the host is held for down. Where the host has no tp-rank, it is delivered and the program
  // run again: such a program has done nothing.
  HostAnswer Ask(const RemoteProgram& program, absl::Time deadline);

  // Asks for facts whatever the circuit says.
  HostAnswer Probe(absl::Time deadline);

  // Nothing: the host is worth asking.
  std::optional<std::string> WhyNot() const;
  // When it is to be probed, by the monotonic clock; never where it answers.
  absl::Duration NextProbe() const;

  // A call that its caller no longer waits for is under way: no other is begun meanwhile.
  std::atomic<int> overdue{0};

  std::optional<HostFacts> facts() const;
  std::string cgroup() const;  // for jobs, as last prepared; empty: none known
  NodeSight Status() const;

 private:
  HostAnswer RunOnce(const RemoteProgram& program, absl::Time deadline);
  std::optional<HostSilence> Deliver(absl::Time deadline);
  void Learn(const HostReply& reply, absl::Time asked, absl::Time answered);
  void Fail(const TransportFailure& failure);

  const RankHost host_;
  RemoteShell& shell_;
  const RankBinary& binary_;
  const std::function<void()> opened_;

  std::mutex delivery_;  // one at a time

  mutable std::mutex mutex_;
  Circuit circuit_;
  absl::Duration probe_at_;
  bool asked_ = false;
  Random jitter_;
  std::optional<HostFacts> facts_;
  std::optional<absl::Duration> clock_offset_;
  std::string cgroup_;
};

}  // namespace tp::node
