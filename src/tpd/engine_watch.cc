#include "tpd/engine_watch.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/time/clock.h"
#include "base/status.h"

namespace tp::tpd {
namespace {

constexpr char kPoolBackend[] = "docker";
constexpr char kNotInPool[] = "others: platform.docker.reserved_gpu_device_ids leaves it out";

bool Launches(const core::Registry& registry, const core::Series& series, const std::string& backend) {
  for (const std::string& name : {series.executor, series.executor_distributed}) {
    const auto executor = registry.executors.find(name);
    if (executor != registry.executors.end() && executor->second.backend == backend) return true;
  }
  return false;
}

// Cards of each node that the backend launches on; none where they are virtual.
std::map<std::string, int> CardsOfNodes(const core::Registry& registry, const std::string& backend) {
  std::map<std::string, int> cards;
  for (const auto& [name, series] : registry.series) {
    if (series.virtual_cards || !Launches(registry, series, backend)) continue;
    for (const core::Node& node : series.nodes) {
      cards[node.name] = std::max(cards[node.name], series.gpus_per_node);
    }
  }
  return cards;
}

std::string AddressOf(const core::Registry& registry, const std::string& node) {
  for (const auto& [name, series] : registry.series) {
    for (const core::Node& one : series.nodes) {
      if (one.name == node) return one.address;
    }
  }
  return "";
}

bool InPool(const config::DockerCards& cards, int card) {
  switch (cards.kind) {
    case config::DockerCards::Kind::kAll:
      return true;
    case config::DockerCards::Kind::kNone:
      return false;
    case config::DockerCards::Kind::kList:
      return std::find(cards.ids.begin(), cards.ids.end(), card) != cards.ids.end();
  }
  return false;
}

}  // namespace

std::vector<RankHost> NodesOf(const core::Registry& registry, const std::string& backend) {
  std::map<std::string, std::string> addresses;
  for (const auto& [name, series] : registry.series) {
    if (!Launches(registry, series, backend)) continue;
    for (const core::Node& node : series.nodes) addresses[node.name] = node.address;
  }
  std::vector<RankHost> nodes;
  nodes.reserve(addresses.size());
  for (const auto& [name, address] : addresses) nodes.push_back({name, address});
  return nodes;
}

std::vector<core::CardHeldElsewhere> HeldElsewhere(const core::Registry& registry, const std::string& backend,
                                                   const std::vector<ForeignCard>& foreign,
                                                   const config::DockerCards& docker_cards) {
  std::vector<core::CardHeldElsewhere> held;
  for (const auto& [node, cards] : CardsOfNodes(registry, backend)) {
    for (int card = 0; card < cards; ++card) {
      if (backend == kPoolBackend && !InPool(docker_cards, card)) {
        held.push_back({{.node = node, .card = card}, kNotInPool});
        continue;
      }
      for (const ForeignCard& other : foreign) {
        if (other.card == card) held.push_back({{.node = node, .card = card}, other.holder});
      }
    }
  }
  return held;
}

EngineWatch::EngineWatch(EngineWatchOptions options) : options_(std::move(options)), thread_([this] { Work(); }) {}

EngineWatch::~EngineWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EngineWatch::LookSoon() {
  {
    const std::lock_guard lock(mutex_);
    look_soon_ = true;
  }
  changed_.notify_all();
}

void EngineWatch::Work() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    look_soon_ = false;
    lock.unlock();
    Round();
    lock.lock();
    LookUntil(absl::Now() + options_.interval, lock);
  }
}

// Looks that are asked for between two rounds. Many at once are one.
void EngineWatch::LookUntil(absl::Time next_round, std::unique_lock<std::mutex>& lock) {
  while (!stopped_) {
    const absl::Duration left = next_round - absl::Now();
    if (left <= absl::ZeroDuration()) return;
    changed_.wait_for(lock, absl::ToChronoMilliseconds(left), [this] { return stopped_ || look_soon_; });
    if (stopped_ || !look_soon_) return;
    changed_.wait_for(lock, absl::ToChronoMilliseconds(options_.pause), [this] { return stopped_; });
    look_soon_ = false;
    lock.unlock();
    const std::shared_ptr<const core::Registry> registry = options_.registry();
    for (const auto& [name, backend] : options_.backends) LookAtCards(*registry, name, *backend);
    lock.lock();
  }
}

void EngineWatch::LookAtCards(const core::Registry& registry, const std::string& name, Backend& backend) {
  std::vector<NodeCards> nodes;
  for (const auto& [node, cards] : CardsOfNodes(registry, name)) {
    if (cards > 0) nodes.push_back({.node = node, .address = AddressOf(registry, node), .cards = cards});
  }
  if (nodes.empty()) return;
  const absl::Time began = absl::Now();
  auto cards = backend.LookAtCards(nodes, began + options_.look_limit);
  if (!cards.ok()) {
    spdlog::warn("the cards of backend {} could not be looked at: {}", name, Message(cards.status()));
    return;
  }
  std::vector<core::CardFault> faults = core::NewFaults(*cards, told_[name]);
  options_.cards({.backend = name, .began = began, .cards = *std::move(cards), .faults = std::move(faults)});
}

// An engine that does not answer leaves what it said last: who held a card may well hold it still.
void EngineWatch::Round() {
  const std::shared_ptr<const core::Registry> registry = options_.registry();
  for (const auto& [name, backend] : options_.backends) {
    backend->SetNodes(NodesOf(*registry, name));
    backend->ProbeNodes(absl::Now() + options_.limit);
    const auto foreign = backend->ForeignCards(absl::Now() + options_.limit);
    if (!foreign.ok()) {
      spdlog::debug("backend {} does not say who holds its cards: {}", name, Message(foreign.status()));
      continue;
    }
    LookAtCards(*registry, name, *backend);
    options_.found({.backend = name, .cards = HeldElsewhere(*registry, name, *foreign, options_.docker_cards)});
  }
}

}  // namespace tp::tpd
