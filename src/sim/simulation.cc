#include "sim/simulation.h"

#include "sim/admin.h"
#include "sim/card_watch.h"
#include "sim/final_checks.h"
#include "sim/fleet.h"
#include "sim/monitor.h"
#include "sim/promises.h"
#include "sim/server.h"
#include "sim/sink.h"
#include "sim/units.h"
#include "sim/users.h"
#include "sim/world.h"

namespace tp::sim {
namespace {

// Faults that were under way and backoffs end within this, and so does every job.
constexpr int64_t kLongestCalm = 48 * kHour;
constexpr int64_t kMostCalmEvents = 2'000'000;
constexpr int64_t kLookEveryEvents = 50;
constexpr int kAllRuns = 1'000'000;

class Simulation {
 public:
  explicit Simulation(const SimulationPlan& plan)
      : plan_(plan),
        rng_(plan.seed),
        options_(Options::Draw(plan.seed, rng_)),
        policy_(options_.policy),
        timeline_(options_.start_unix_us),
        journal_(timeline_, plan.print),
        world_(options_, timeline_, rng_, journal_),
        sink_(options_, timeline_, rng_, journal_, world_),
        promises_(journal_),
        monitor_(*plan.defects.table, policy_, timeline_, journal_, world_, promises_),
        table_(*plan.defects.table, monitor_),
        server_(options_, plan_.defects, table_.table(), timeline_, rng_, journal_, sink_),
        users_(options_, plan_.defects, timeline_, rng_, journal_, server_, promises_),
        admin_(options_, timeline_, rng_, journal_, server_),
        cards_(options_, timeline_, rng_, journal_, world_) {
    if (plan.defects.claims_ignored) world_.IgnoreClaims();
    world_.SetChanged([this](const std::string& key) { sink_.Wake(key); });
    sink_.OnLaunch([this](const AttemptTarget& target, const LaunchSpec& spec) {
      monitor_.Launching(server_.store(), target, spec);
    });
    server_.Watch({
        .turned = [this] { monitor_.Turned(server_.loop(), server_.Quiet()); },
        .committed = [this](const store::Txn& txn) { monitor_.Committed(txn); },
        .restarted =
            [this] {
              monitor_.Restarted(server_.loop());
              ++restarts_;
              cards_.Started();
            },
        .died = [this] { cards_.Died(); },
    });
    cards_.Connect({.seen = [this](loop::CardsSeen seen) { server_.Post(std::move(seen)); },
                    .broke = [this](const core::NodePart& part) { admin_.SeeTo(part); }});
    sink_.OnLookWanted([this](const std::string&) { cards_.LookSoon(); });
    admin_.OnMended([this](const core::NodePart& part) { world_.MendCard(part); });
  }

  SimulationResult Run() {
    users_.SeedPipelines();
    server_.Start();
    world_.StartOutages();
    server_.StartCrashes();
    server_.StartClockSets();
    users_.Start();
    admin_.Start();
    cards_.StartWear();
    Stormy();
    if (!journal_.failed()) Calmly();
    if (!journal_.failed()) CheckAtRest(server_, world_, promises_, monitor_, timeline_.wall(), journal_);
    return Result();
  }

 private:
  void Stormy() {
    while (timeline_.executed() < plan_.events && !journal_.failed()) timeline_.Step();
  }

  void Calmly() {
    journal_.Note("the world is calm from here on");
    Calm(options_);
    world_.EndOutages();
    users_.Stop();
    admin_.Stop();
    server_.Reload(std::make_shared<core::Registry>(MakeFleet(options_, false)));
    const int64_t deadline_us = timeline_.now_us() + kLongestCalm;
    for (int64_t events = 1; !journal_.failed(); ++events) {
      const bool look = events % kLookEveryEvents == 0;
      if (look && Content() && AtRest(server_, world_)) return;
      if (timeline_.now_us() > deadline_us || events > kMostCalmEvents || !timeline_.Step()) {
        if (AtRest(server_, world_) && Content()) return;
        journal_.Break("it does not come to rest: {}", Restless(server_, world_));
        return;
      }
    }
  }

  bool Content() const { return users_.Content() && admin_.Content(); }

  SimulationResult Result() {
    const auto page = server_.store().ListRuns({}, std::nullopt, kAllRuns);
    for (const core::RunWithSteps& run : page->runs) {
      for (const core::Step& step : run.steps) {
        journal_.Note("in the end {}.{} is {}, attempts {}, retries {}", step.ref.run, step.ref.step,
                      core::Name(step.state), step.attempts, step.retry_count);
      }
    }
    const store::Meta meta = *server_.store().ReadMeta();
    journal_.Note("in the end revision {}, ledger {} {}", meta.revision, meta.ledger_seq, meta.ledger_hash);
    SimulationResult result{plan_.seed,
                            journal_.broken(),
                            journal_.hash(),
                            timeline_.executed(),
                            meta.next_run - 1,
                            restarts_ - 1,
                            {journal_.last().begin(), journal_.last().end()},
                            monitor_.coverage()};
    return result;
  }

  const SimulationPlan& plan_;
  Rng rng_;
  Options options_;
  const core::Policy policy_;
  Timeline timeline_;
  Journal journal_;
  World world_;
  SimSink sink_;
  Promises promises_;
  Monitor monitor_;
  WatchedTable table_;
  Server server_;
  Users users_;
  Admin admin_;
  CardWatch cards_;
  int64_t restarts_ = 0;
};

}  // namespace

SimulationResult Simulate(const SimulationPlan& plan) { return Simulation(plan).Run(); }

}  // namespace tp::sim
