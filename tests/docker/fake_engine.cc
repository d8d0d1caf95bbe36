#include "fake_engine.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/file.h"
#include "base/status.h"
#include "launch/record.h"
#include "tests/launch/temp_dir.h"

namespace tp::docker::test {
namespace {

using nlohmann::json;
using ::tp::testing::ReadText;
using ::tp::testing::WriteText;

constexpr absl::Duration kLatestStart = absl::Seconds(5);

std::string Decoded(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string Between(const std::string& text, const std::string& before, char after) {
  const size_t at = text.find(before);
  if (at == std::string::npos) return "";
  const size_t begin = at + before.size();
  return text.substr(begin, text.find(after, begin) - begin);
}

EngineResponse Words(int status, const std::string& words) { return {status, json({{"message", words}}).dump()}; }

std::string Record(const FakeEngine::Rank& rank, const std::string& fields) {
  return fmt::format("tp-record 1\nkey={}\nnonce={}\npool={}\nrank={}\nhost=box\nboot_id=b\n{}end\n", rank.key,
                     rank.nonce, rank.pool, rank.rank, fields);
}

bool Exists(const std::string& path) { return !ReadText(path).empty(); }

}  // namespace

absl::StatusOr<EngineResponse> FakeEngine::Handle(const EngineRequest& request) {
  if (down_ || random_.Between(0, 999) < losses_) return Unavailable("the docker engine does not answer");
  EngineResponse response = Carry(request);
  if (random_.Between(0, 999) < losses_) return Unavailable("the answer is lost");
  return response;
}

EngineResponse FakeEngine::Carry(const EngineRequest& request) {
  const std::string& path = request.path;
  if (path == "/version") return {200, R"({"ApiVersion":"1.41","MinAPIVersion":"1.12"})"};
  if (path == "/info") return {200, R"({"Runtimes":{"runc":{}}})"};
  if (path.starts_with("/images/")) {
    const std::string image = Decoded(Between(path, "/images/", '/'));
    return std::count(images_.begin(), images_.end(), image) > 0 ? EngineResponse{200, "{}"} : Words(404, "no image");
  }
  if (path.starts_with("/networks"))
    return path.find("filters") != std::string::npos ? EngineResponse{200, "[]"} : EngineResponse{201, "{}"};
  if (path.starts_with("/containers/create")) return Create(Decoded(Between(path, "name=", '&')), request.body);
  if (path.starts_with("/containers/json")) return {200, ListOf(path).dump()};
  if (path.starts_with("/exec/")) {
    const std::string id = Between(path, "/exec/", '/');
    if (path.ends_with("/json")) return {200, R"({"Running":false,"ExitCode":0})"};
    const std::string order = execs_[id];
    const size_t space = order.find(' ');
    if (Box* box = Find(order.substr(0, space)); box != nullptr && box->state == "running") {
      Signal(*box, order.substr(space + 1));
    }
    return {200, ""};
  }
  const std::string rest = path.substr(std::string("/containers/").size());
  const std::string id = rest.substr(0, rest.find_first_of("/?"));
  return OnContainer(request, id, rest.substr(id.size()));
}

EngineResponse FakeEngine::Create(const std::string& name, const std::string& body) {
  if (boxes_.contains(name)) return Words(409, "Conflict. The container name is already in use");
  const json wanted = json::parse(body);
  Box box;
  box.id = fmt::format("id{}", next_++);
  box.name = name;
  for (const auto& [key, value] : wanted["Labels"].items()) box.labels[key] = value.get<std::string>();
  for (const json& device : wanted["HostConfig"].value("Devices", json::array())) {
    box.devices.push_back(device["PathOnHost"].get<std::string>());
  }
  const std::vector<std::string> words = wanted["Cmd"].get<std::vector<std::string>>();
  for (size_t i = 1; i + 1 < words.size() && words[i] != "--"; i += 2) {
    if (words[i] == "--dir") box.plays.dir = words[i + 1];
    if (words[i] == "--key") box.plays.key = words[i + 1];
    if (words[i] == "--nonce") box.plays.nonce = words[i + 1];
    if (words[i] == "--pool") box.plays.pool = words[i + 1];
    if (words[i] == "--rank") box.plays.rank = words[i + 1];
  }
  boxes_[name] = box;
  return {201, json({{"Id", box.id}}).dump()};
}

FakeEngine::Box* FakeEngine::Find(const std::string& id) {
  for (auto& [name, box] : boxes_) {
    if (name == id || box.id == id) return &box;
  }
  return nullptr;
}

EngineResponse FakeEngine::OnContainer(const EngineRequest& request, const std::string& id, const std::string& what) {
  Box* const box = Find(id);
  if (box == nullptr) return Words(404, "No such container");
  if (request.method == "DELETE") {
    boxes_.erase(box->name);
    return {204, ""};
  }
  if (what == "/start" && random_.Between(0, 999) < losses_) {
    late_starts_.push_back(box->name);
    return Words(500, "try again");
  }
  if (what == "/start") return Start(*box);
  if (what == "/exec") {
    if (box->state != "running") return Words(409, "container is not running");
    const std::string exec = fmt::format("x{}", next_++);
    execs_[exec] = box->name + " " + json::parse(request.body)["Cmd"].back().get<std::string>();
    return {201, json({{"Id", exec}}).dump()};
  }
  if (what.starts_with("/kill")) {
    if (box->state != "running") return Words(409, "not running");
    box->state = "exited";
    box->exit_code = 137;
    return {204, ""};
  }
  const json state = {{"Status", box->state},
                      {"ExitCode", box->exit_code},
                      {"OOMKilled", false},
                      {"Error", ""},
                      {"StartedAt", box->starts == 0 ? "0001-01-01T00:00:00Z" : "2026-12-01T00:00:00Z"},
                      {"FinishedAt", "2026-12-01T00:00:01Z"}};
  return {200,
          json({{"Id", box->id}, {"Name", "/" + box->name}, {"State", state}, {"Config", {{"Labels", box->labels}}}})
              .dump()};
}

// An exited container runs again, as real engines do it.
EngineResponse FakeEngine::Start(Box& box) {
  if (box.state == "running") return {304, ""};
  ++box.starts;
  box.state = "running";
  const std::string claim = box.plays.dir + "/attempt.claim";
  if (!Exists(claim)) {
    WriteText(claim, fmt::format("tp-record 1\nkey={}\nowner=launch\nnonce={}\nhost=box\nboot_id=b\nrandom=r\nend\n",
                                 box.plays.key, box.plays.nonce));
  }
  const auto owner = launch::ParseAttemptClaim(ReadText(claim), box.plays.key);
  const bool mine = owner && !owner->fenced && owner->nonce == box.plays.nonce;
  const std::string own = fmt::format("{}/{}-{}", box.plays.dir, box.plays.pool, box.plays.rank);
  const bool fenced = !mine || ReadText(box.plays.dir + "/fence") != "open\n";
  const bool claimed = Exists(own + ".claim");
  if ((fenced && breach_ != Breach::kRanksIgnoreTheFence) || (claimed && breach_ != Breach::kRanksIgnoreTheClaim)) {
    box.state = "exited";
    box.exit_code = 76;
    return {204, ""};
  }
  WriteText(own + ".claim", Record(box.plays, "runner=tp-rank\nrunner_pid=1\nrunner_start_ticks=1\nrandom=r\n"));
  WriteText(own + ".started", Record(box.plays, "started_boot_us=1000\nstarted_unix_us=1000\nprecision_us=0\n"));
  ++jobs_[fmt::format("{}/{}", box.plays.key, box.plays.rank)];
  box.runs_job = true;
  return {204, ""};
}

void FakeEngine::Pass(absl::Duration length) {
  if (breach_ == Breach::kStartsAgain || breach_ == Breach::kRanksIgnoreTheClaim) {
    for (auto& [name, box] : boxes_) {
      if (box.state == "exited" && random_.Chance(20)) Start(box);
    }
  }
  while (!late_starts_.empty() && (length >= kLatestStart || random_.Chance(100))) {
    if (Box* box = Find(late_starts_.front()); box != nullptr) Start(*box);
    late_starts_.erase(late_starts_.begin());
  }
}

void FakeEngine::End(Box& box, int code, const std::string& by) {
  const std::string own = fmt::format("{}/{}-{}", box.plays.dir, box.plays.pool, box.plays.rank);
  WriteText(
      own + ".exit",
      Record(box.plays, fmt::format("started_boot_us=1000\nstarted_unix_us=1000\nended_boot_us=2000\n"
                                    "ended_unix_us=2000\nexit=exited\ncode={}\nterm_signal=0\nsignalled={}\n"
                                    "signalled_by={}\n",
                                    breach_ == Breach::kRecordsAllAsWell ? 0 : code, by.empty() ? "no" : "yes", by)));
  box.state = "exited";
  box.exit_code = code;
  if (code == 0 && by.empty()) ended_well_.insert(box.plays.key);
}

std::vector<std::string> FakeEngine::DevicesInUse() const {
  std::vector<std::string> devices;
  for (const auto& [name, box] : boxes_) {
    if (box.state == "running") devices.insert(devices.end(), box.devices.begin(), box.devices.end());
  }
  return devices;
}

void FakeEngine::Signal(Box& box, const std::string& order) {
  if (order != "warn" && breach_ != Breach::kAnswersWithoutDoing) End(box, 143, "tpd");
}

std::vector<FakeEngine::Box*> FakeEngine::RunningBoxes() {
  std::vector<Box*> running;
  for (auto& [name, box] : boxes_) {
    if (box.state == "running") running.push_back(&box);
  }
  return running;
}

void FakeEngine::EndOne(int code) {
  const std::vector<Box*> running = RunningBoxes();
  if (!running.empty())
    End(*running[static_cast<size_t>(random_.Between(0, static_cast<int64_t>(running.size()) - 1))], code, "");
}

void FakeEngine::Copy(const std::string& name, const std::string& copy) {
  Box box = boxes_.at(name);
  box.name = copy;
  box.id = fmt::format("id{}", next_++);
  box.state = "exited";
  boxes_[copy] = box;
}

void FakeEngine::KillOne() {
  const std::vector<Box*> running = RunningBoxes();
  if (running.empty()) return;
  Box& box = *running[static_cast<size_t>(random_.Between(0, static_cast<int64_t>(running.size()) - 1))];
  box.state = "exited";
  box.exit_code = 137;
}

int FakeEngine::Running(const std::string& key) const {
  return static_cast<int>(std::count_if(boxes_.begin(), boxes_.end(), [&](const auto& item) {
    return item.second.plays.key == key && item.second.state == "running";
  }));
}

int FakeEngine::MostStarts() const {
  int most = 0;
  for (const auto& [name, box] : boxes_) most = std::max(most, box.starts);
  return most;
}

int FakeEngine::JobsRun(const std::string& key, int rank) const {
  const auto found = jobs_.find(fmt::format("{}/{}", key, rank));
  return found == jobs_.end() ? 0 : found->second;
}

json FakeEngine::ListOf(const std::string& path) const {
  const json filters = json::parse(Decoded(Between(path, "filters=", '&')));
  const bool all = path.find("all=1") != std::string::npos;
  json list = json::array();
  for (const auto& [name, box] : boxes_) {
    bool wanted = all || box.state == "running";
    if (breach_ == Breach::kListsTooFew && box.state == "running") wanted = false;
    for (const json& label : filters["label"]) {
      const std::string text = label.get<std::string>();
      const auto found = box.labels.find(text.substr(0, text.find('=')));
      wanted = wanted && found != box.labels.end() && found->second == text.substr(text.find('=') + 1);
    }
    const bool lies = breach_ == Breach::kTellsLivingAsExited && box.state == "running";
    const std::string state = lies ? "exited" : box.state;
    if (wanted) {
      list.push_back({{"Id", box.id}, {"Names", {"/" + name}}, {"Labels", box.labels}, {"State", state}});
    }
  }
  return list;
}

}  // namespace tp::docker::test
