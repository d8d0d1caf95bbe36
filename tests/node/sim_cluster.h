// Machines of memory behind a RemoteShell: they read the programs that the node backend sends as far as they must,
// keep processes, and leave records in real files as tp-rank does: in those of tpd, or, where storage is not shared, in
// a directory of each machine's own. Faults are drawn from a seed. Thread-safe: probes of the backend come from threads
// of its own.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/node/copied/copier.h"
#include "backends/node/remote_shell.h"
#include "base/random.h"

namespace tp::node {

// Breaches of the contract by the machines, which the oracle must notice.
enum class PlantedBug { kNone, kReapLies, kLateOrdersStart, kBootIdChanges, kMarksAreHidden };

class SimCluster {
 public:
  // `own_roots`: beneath it each machine has its own files; empty: they have tpd's.
  SimCluster(int hosts, uint64_t seed, PlantedBug bug, std::string own_roots = "");

  // Of calls of the shell, in permille.
  struct Faults {
    int lost_order = 0;   // never arrives, timeout
    int held_order = 0;   // the caller times out, and it arrives later
    int lost_answer = 0;  // is carried out, and the answer is lost
    int half_answer = 0;
    int broken_copy = 0;
  };
  void SetFaults(const Faults& faults);

  RemoteResult Run(const RankHost& host, const RemoteProgram& program);
  absl::Status Copy(const CopyOrder& order);

  RankHost HostOf(int host) const;
  void Cut(int host);
  void Mend(int host);
  void Reboot(int host);
  void KillARunner(int host);  // its job lives on
  // Time goes on: ranks claim, jobs end, orders that were held up arrive.
  void Step();
  // Everything that is on its way arrives.
  void Settle();

  // --- Truth ----------------------------------------------------------------------------------------------
  // Times that the job of a rank was begun, over all launches.
  int Begun(const std::string& key, int rank) const;
  // A job or runner of the rank lives, or one without a claim might still begin.
  bool Lives(const std::string& key, int rank) const;
  // A process of a launch that has not come to its claim.
  bool OnItsWay(const std::string& key) const;

 private:
  struct Process {
    int64_t pid = 0;
    uint64_t ticks = 0;
    std::string key, nonce, dir;
    int rank = 0;
    bool runner = true;    // lives
    bool claimed = false;  // and has begun its job
    bool job = false;      // lives
  };
  struct Machine {
    std::string name;
    int boot = 1;
    double uptime_s = 100;
    bool cut = false;
    std::vector<Process> processes;
    std::vector<RemoteProgram> held;
  };

  Machine& MachineOf(const RankHost& host) { return machines_[static_cast<size_t>(std::stoi(host.node.substr(4)))]; }
  // Where a machine has what lies at `path` for it.
  std::string On(const Machine& machine, const std::string& path) const;
  std::string Answer(Machine& machine, const RemoteProgram& program);
  std::optional<std::string> AnswerOfCopied(Machine& machine, const std::string& text);
  std::string Mirror(const Machine& machine, const std::string& text) const;
  std::string Facts(const Machine& machine, bool of_look) const;
  std::string BootOf(const Machine& machine) const;
  std::string Launch(Machine& machine, const RemoteProgram& program);
  std::string Look(Machine& machine, const std::string& text);
  std::string Signal(Machine& machine, const std::string& text);
  std::string Marks(const Machine& machine) const;
  void Claim(Machine& machine, Process& process);
  void End(Machine& machine, Process& process, int code, bool by_tpd);
  void StepProcess(Machine& machine, Process& process);
  void Drop(Machine& machine);
  std::string Record(const Machine& machine, const Process& process, const std::string& rest) const;

  mutable std::mutex mutex_;
  Random random_;
  const PlantedBug bug_;
  const std::string own_roots_;
  Faults faults_;
  std::vector<Machine> machines_;
  std::map<std::pair<std::string, int>, int> begun_;
  int64_t next_pid_ = 1000;
};

// The cluster as a backend owns it.
class SimShell final : public RemoteShell {
 public:
  explicit SimShell(SimCluster& cluster) : cluster_(cluster) {}
  RemoteResult Run(const RankHost& host, const RemoteProgram& program, absl::Time) override {
    return cluster_.Run(host, program);
  }
  void Cancel() override {}

 private:
  SimCluster& cluster_;
};

class SimCopier final : public Copier {
 public:
  explicit SimCopier(SimCluster& cluster) : cluster_(cluster) {}
  absl::Status Copy(const CopyOrder& order, const std::function<void(int64_t)>&, int, absl::Time) override {
    return cluster_.Copy(order);
  }

 private:
  SimCluster& cluster_;
};

}  // namespace tp::node
