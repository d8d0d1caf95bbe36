// A docker engine in memory whose containers play ranks: a started one claims, starts and ends as the launch contract
// says, in the attempt directory. It loses answers, carries orders to start out later, and goes away as it is told.
// Single-threaded.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/time/time.h"
#include "backends/docker/engine_transport.h"
#include "base/random.h"

namespace tp::docker::test {

// What no engine and no rank may do, for an oracle to notice.
enum class Breach {
  kNone,
  kListsTooFew,  // running containers are left out
  kTellsLivingAsExited,
  kStartsAgain,  // by itself, what has ended
  kRanksIgnoreTheFence,
  kRanksIgnoreTheClaim,  // of their own container
  kAnswersWithoutDoing,  // orders to ranks
  kRecordsAllAsWell,     // an end record says 0, whatever the end was
};

class FakeEngine {
 public:
  struct Rank {
    std::string dir, key, nonce, pool, rank;
  };
  struct Box {
    std::string id;
    std::string name;
    std::map<std::string, std::string> labels;
    Rank plays;
    std::string state = "created";
    int exit_code = 0;
    int starts = 0;
    bool runs_job = false;  // it owns its rank
    std::vector<std::string> devices = {};
  };

  explicit FakeEngine(uint64_t seed, Breach breach = Breach::kNone) : random_(seed), breach_(breach) {}

  absl::StatusOr<EngineResponse> Handle(const EngineRequest& request);

  // One of the running ranks ends by itself with this code, or its container is killed by somebody.
  void EndOne(int code);
  void KillOne();
  // Time goes on.
  void Pass(absl::Duration length);
  void SetDown(bool down) { down_ = down; }
  void SetLosses(int64_t per_mille) { losses_ = per_mille; }

  bool down() const { return down_; }
  int Running(const std::string& key) const;
  int MostStarts() const;
  int JobsRun(const std::string& key, int rank) const;  // ranks that began the job, however often
  bool EndedWell(const std::string& key) const { return ended_well_.contains(key); }  // some rank of it did
  // Devices of running containers, one entry for each that has it.
  std::vector<std::string> DevicesInUse() const;
  const std::map<std::string, Box>& boxes() const { return boxes_; }
  std::vector<std::string>& images() { return images_; }
  // A container of the same labels under another name, as of an image that was committed from it.
  void Copy(const std::string& name, const std::string& copy);
  // What a pull prints and comes to.
  using Pull = std::function<absl::Status(const std::function<bool(std::string_view)>& line)>;
  void OnPull(Pull pull) { pull_ = std::move(pull); }
  absl::Status Stream(const std::function<bool(std::string_view)>& line) {
    return pull_ ? pull_(line) : absl::OkStatus();
  }

 private:
  EngineResponse Carry(const EngineRequest& request);
  EngineResponse Create(const std::string& name, const std::string& body);
  EngineResponse OnContainer(const EngineRequest& request, const std::string& id, const std::string& what);
  EngineResponse Start(Box& box);
  void Signal(Box& box, const std::string& order);
  void End(Box& box, int code, const std::string& by);
  Box* Find(const std::string& id);
  std::vector<Box*> RunningBoxes();
  nlohmann::json ListOf(const std::string& path) const;

  Random random_;
  const Breach breach_;
  std::vector<std::string> late_starts_;      // names
  std::map<std::string, Box> boxes_;          // by name
  std::map<std::string, std::string> execs_;  // id to `<container> <order>`
  std::map<std::string, int> jobs_;           // by key and rank
  std::set<std::string> ended_well_;          // keys
  std::vector<std::string> images_ = {"image"};
  Pull pull_;
  int next_ = 1;
  int64_t losses_ = 0;
  bool down_ = false;
};

// What a backend is given; the engine outlives it.
class FakeTransport final : public EngineTransport {
 public:
  explicit FakeTransport(FakeEngine& engine) : engine_(engine) {}
  absl::StatusOr<EngineResponse> Send(const EngineRequest& request, absl::Time) override {
    return engine_.Handle(request);
  }
  absl::Status Stream(const EngineRequest& request, absl::Duration,
                      const std::function<bool(std::string_view)>& line) override {
    return request.path.starts_with("/images") ? engine_.Stream(line) : absl::OkStatus();
  }
  void Cancel() override {}

 private:
  FakeEngine& engine_;
};

}  // namespace tp::docker::test
