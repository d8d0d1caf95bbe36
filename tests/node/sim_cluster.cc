#include "tests/node/sim_cluster.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <tuple>

#include <fmt/format.h>

#include "absl/strings/escaping.h"
#include "base/file.h"
#include "tests/launch/temp_dir.h"

namespace tp::node {
namespace {

using ::tp::testing::ReadText;

std::string Between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t begin = text.find(before);
  if (begin == std::string::npos) return "";
  const size_t end = text.find(after, begin + before.size());
  return text.substr(begin + before.size(), end - begin - before.size());
}

// The quoted word behind `before`.
std::string Quoted(const std::string& text, const std::string& before) { return Between(text, before + "'", "'"); }

std::string Unquoted(const std::string& word) { return word.substr(1, word.size() - 2); }

// The words of lines that begin with `first`; paths of these tests hold no blanks.
std::vector<std::vector<std::string>> Lines(const std::string& text, const std::string& first) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(first + " ")) continue;
    std::istringstream words(line);
    std::vector<std::string> each;
    for (std::string word; words >> word;) each.push_back(word);
    lines.push_back(each);
  }
  return lines;
}

// Links it as tp-rank does: the first one stays.
void LinkRecord(const std::string& dir, const std::string& name, const std::string& bytes) {
  const auto directory = OpenDirectory(dir);
  if (directory.ok()) LinkNewFile(*directory, name, bytes, 0660, Sync::kNone).status().IgnoreError();
}

}  // namespace

SimCluster::SimCluster(int hosts, uint64_t seed, PlantedBug bug, std::string own_roots)
    : random_(seed), bug_(bug), own_roots_(std::move(own_roots)) {
  for (int host = 0; host < hosts; ++host) {
    machines_.push_back({.name = fmt::format("node{}", host), .processes = {}, .held = {}});
  }
}

void SimCluster::SetFaults(const Faults& faults) {
  const std::lock_guard lock(mutex_);
  faults_ = faults;
}

RankHost SimCluster::HostOf(int host) const { return {fmt::format("node{}", host), fmt::format("10.0.0.{}", host)}; }

std::string SimCluster::On(const Machine& machine, const std::string& path) const {
  return own_roots_.empty() ? path : fmt::format("{}/{}{}", own_roots_, machine.name, path);
}

std::string SimCluster::BootOf(const Machine& machine) const {
  return fmt::format("{}-{}", machine.name, machine.boot);
}

std::string SimCluster::Facts(const Machine& machine, bool of_look) const {
  const bool lies = of_look && bug_ == PlantedBug::kBootIdChanges;
  return fmt::format("host {}\nboot {}{}\nup {:.2f}\n", machine.name, BootOf(machine), lies ? "x" : "",
                     machine.uptime_s);
}

RemoteResult SimCluster::Run(const RankHost& host, const RemoteProgram& program) {
  const std::lock_guard lock(mutex_);
  Machine& machine = MachineOf(host);
  const bool is_launch = program.text.find("TP_LAUNCH_MARK=") != std::string::npos && !program.body.empty();
  const auto timeout = [](bool may_have_run) {
    return TransportFailure{TransportKind::kTimeout, "does not answer: nothing came", may_have_run};
  };
  if (machine.cut) return timeout(false);
  if (random_.Chance(faults_.lost_order)) return timeout(true);
  if (is_launch && random_.Chance(faults_.held_order)) {
    machine.held.push_back(program);
    return timeout(true);
  }
  std::string out = Answer(machine, program);
  if (random_.Chance(faults_.lost_answer)) return timeout(true);
  if (random_.Chance(faults_.half_answer)) {
    // What the frame of a real shell would not let through; here the answer's own lines must notice.
    out.resize(static_cast<size_t>(random_.Between(0, static_cast<int64_t>(out.size()))));
    out.resize(out.rfind('\n') == std::string::npos ? 0 : out.rfind('\n') + 1);
  }
  return RemoteReply{0, std::move(out)};
}

std::string SimCluster::Answer(Machine& machine, const RemoteProgram& program) {
  const std::string& text = program.text;
  const bool is_look = text.find("\nq() {") != std::string::npos;
  std::string out = Facts(machine, is_look);
  if (!program.body.empty()) return out + Launch(machine, program);
  if (!own_roots_.empty()) {
    if (const std::optional<std::string> answer = AnswerOfCopied(machine, text)) return out + *answer;
  }
  if (text.find("storage noroot") != std::string::npos) return out + "env HOME=/root\nstorage ok\n";
  if (text.find("TP_RANK_TOKEN") != std::string::npos) return out + Marks(machine);
  if (text.find("\ns() {") != std::string::npos) return out + Signal(machine, text);
  if (is_look) {
    out += Look(machine, text);
    if (text.find("marks end") != std::string::npos) out += Marks(machine);
    out += Mirror(machine, text);
  }
  return out;
}

// The programs of copied/mirror_script.h, by what they are told from one another by.
std::optional<std::string> SimCluster::AnswerOfCopied(Machine& machine, const std::string& text) {
  if (text.find("TP_COPY_MARK=") != std::string::npos) {
    const std::string attempt = On(machine, Quoted(text, " dir="));
    std::filesystem::create_directories(attempt);
    LinkRecord(attempt, "fence", "open\n");
    return "others 0 0\nstorage ok\n";
  }
  if (text.find("echo gone") != std::string::npos) return "ready 0\n";
  if (text.find(".fence.$$") != std::string::npos) {
    const std::string attempt = On(machine, Quoted(text, " d="));
    std::filesystem::create_directories(attempt);
    LinkRecord(attempt, "attempt.claim", Quoted(text, "printf '%s' "));
    const std::string id = Between(text, "\ni=", " ");
    std::string claim;
    absl::Base64Escape(ReadText(attempt + "/attempt.claim"), &claim);
    return fmt::format("copy {} attempt {}\n", id, claim);
  }
  if (text.find("echo removed") != std::string::npos && text.find("rm -rf") != std::string::npos) {
    std::filesystem::remove_all(On(machine, Quoted(text, " d=")));
    return "removed\n";
  }
  if (text.find("\ns() {") == std::string::npos) return std::nullopt;
  const std::string attempt = On(machine, Quoted(text, "\nd="));
  if (text.find("echo closed") != std::string::npos && std::filesystem::exists(attempt)) {
    tp::testing::WriteText(attempt + "/fence", "closed\n");
  }
  return Signal(machine, text);
}

std::string SimCluster::Mirror(const Machine& machine, const std::string& text) const {
  std::string out;
  for (const std::vector<std::string>& words : Lines(text, "m")) {
    const std::string attempt = On(machine, Unquoted(words[2]));
    const std::vector<std::tuple<char, std::string, std::string>> files = {{'a', "attempt", "attempt.claim"},
                                                                           {'c', "claim", words[3] + ".claim"},
                                                                           {'s', "started", words[3] + ".started"},
                                                                           {'e', "ended", words[3] + ".exit"}};
    for (const auto& [letter, kind, name] : files) {
      const std::string path = attempt + "/" + name;
      if (words[4].find(letter) == std::string::npos || !std::filesystem::exists(path)) continue;
      std::string bytes;
      absl::Base64Escape(ReadText(path), &bytes);
      out += fmt::format("copy {} {} {}\n", words[1], kind, bytes);
    }
  }
  return text.find("copies end") == std::string::npos ? out : out + "copies end\n";
}

// As far as these attempts need it: their output, and nothing but their output.
absl::Status SimCluster::Copy(const CopyOrder& order) {
  const std::lock_guard lock(mutex_);
  const Machine& machine = MachineOf(order.host);
  if (machine.cut || random_.Chance(faults_.broken_copy)) return absl::UnavailableError("the copy broke off");
  const bool there = order.direction == CopyDirection::kToHost;
  const std::string from = (there ? order.source : On(machine, order.source)) + "/output";
  const std::string to = (there ? On(machine, order.target) : order.target) + "/output";
  if (!std::filesystem::exists(from)) return absl::OkStatus();
  std::filesystem::create_directories(to);
  std::filesystem::copy(from, to,
                        std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  return absl::OkStatus();
}

std::string SimCluster::Launch(Machine& machine, const RemoteProgram& program) {
  if (Between(program.text, "[ \"$b\" = '", "'") != BootOf(machine)) return "late the machine was restarted\n";
  const double latest = std::stod(Between(program.text, "-le ", " "));
  if (machine.uptime_s > latest && bug_ != PlantedBug::kLateOrdersStart) return "late the order came too late\n";
  const std::string payload = program.body.substr(program.body.find('\n') + 1);
  std::vector<std::string> words;
  std::istringstream in(payload);
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "R")
      machine.processes.push_back({.pid = next_pid_++, .ticks = 7, .key = {}, .nonce = {}, .dir = {}});
    if (machine.processes.empty() || i + 1 == words.size() || words[i][0] != 'A') continue;
    Process& process = machine.processes.back();
    const std::string value = words[i + 1].substr(1);
    if (words[i] == "A--dir") process.dir = On(machine, value);
    if (words[i] == "A--key") process.key = value;
    if (words[i] == "A--nonce") process.nonce = value;
    if (words[i] == "A--rank") process.rank = std::stoi(value);
  }
  return "launched 0\n";
}

std::string SimCluster::Record(const Machine& machine, const Process& process, const std::string& rest) const {
  return fmt::format("tp-record 1\nkey={}\nnonce={}\npool=0\nrank={}\nhost={}\nboot_id={}\n{}end\n", process.key,
                     process.nonce, process.rank, machine.name, BootOf(machine), rest);
}

// As the launch contract has it: attempt.claim, its nonce, the own claim, the fence, then the job.
void SimCluster::Claim(Machine& machine, Process& process) {
  LinkRecord(process.dir, "attempt.claim", Record(machine, process, "owner=launch\nrandom=1\n"));
  const std::string owner = ReadText(process.dir + "/attempt.claim");
  const std::string runner =
      fmt::format("runner=tp-rank\nrunner_pid={}\nrunner_start_ticks={}\ncgroup=\n", process.pid, process.ticks);
  if (owner.find(fmt::format("\nnonce={}\n", process.nonce)) == std::string::npos) {
    process.runner = false;
    return;
  }
  const std::string name = fmt::format("{}/0-{}", process.dir, process.rank);
  const std::string mine = Record(machine, process, runner);
  LinkRecord(process.dir, fmt::format("0-{}.claim", process.rank), mine);
  if (ReadText(name + ".claim") != mine || ReadText(process.dir + "/fence") != "open\n") {
    process.runner = false;
    return;
  }
  process.claimed = process.job = true;
  ++begun_[{process.key, process.rank}];
  if (!own_roots_.empty()) {
    tp::testing::WriteText(fmt::format("{}/../../output/rank-{}", process.dir, process.rank), process.key);
  }
  LinkRecord(process.dir, fmt::format("0-{}.started", process.rank),
             Record(machine, process, runner + "pid=9\npid_start_ticks=9\nstarted_boot_us=5\nstarted_unix_us=5\n"));
}

void SimCluster::End(Machine& machine, Process& process, int code, bool by_tpd) {
  LinkRecord(process.dir, fmt::format("0-{}.exit", process.rank),
             Record(machine, process,
                    fmt::format("runner=tp-rank\nrunner_pid={}\nrunner_start_ticks={}\npid=9\npid_start_ticks=9\n"
                                "started_boot_us=5\nstarted_unix_us=5\nended_boot_us=9\nended_unix_us=9\nexit=exited\n"
                                "code={}\nterm_signal=0\nsignalled={}\nsignalled_by={}\n",
                                process.pid, process.ticks, code, by_tpd ? "yes" : "no", by_tpd ? "tpd" : "")));
  process.job = process.runner = false;
}

std::string SimCluster::Look(Machine& machine, const std::string& text) {
  std::string out;
  for (const std::vector<std::string>& words : Lines(text, "q")) {
    int code = 0;
    if (Unquoted(words[2]) != BootOf(machine)) code = 5;
    for (Process& process : machine.processes) {
      if (code == 5 || process.pid != std::stoll(words[3])) continue;
      if (process.runner) {
        code = 6;
      } else if (process.job && bug_ != PlantedBug::kReapLies) {
        process.job = random_.Chance(300);
        code = process.job ? 1 : 0;
      }
    }
    out += fmt::format("rank {} {}\n", words[1], code);
  }
  return out;
}

std::string SimCluster::Signal(Machine& machine, const std::string& text) {
  std::string out;
  const bool ends = text.find(own_roots_.empty() ? "\"$4\" warn" : "\"$3\" warn") == std::string::npos;
  for (const std::vector<std::string>& words : Lines(text, "s")) {
    int code = 3;
    for (Process& process : machine.processes) {
      const std::string dir = own_roots_.empty() ? Unquoted(words[2]) : On(machine, Quoted(text, "\nd="));
      const int rank = std::stoi(words[own_roots_.empty() ? 4 : 3]);
      if (process.dir != dir || process.rank != rank || !process.claimed || !process.runner) continue;
      code = 0;
      if (ends) End(machine, process, 143, true);
    }
    out += fmt::format("rank {} {} \n", words[1], code);
  }
  return out;
}

std::string SimCluster::Marks(const Machine& machine) const {
  std::string out;
  for (const Process& process : machine.processes) {
    if (!process.runner || bug_ == PlantedBug::kMarksAreHidden) continue;
    out += fmt::format("mark {} 1 {}/{}\n", process.pid, process.key, process.nonce);
  }
  return out + "marks end\n";
}

void SimCluster::StepProcess(Machine& machine, Process& process) {
  if (!process.runner) return;
  if (!process.claimed) {
    if (random_.Chance(500)) Claim(machine, process);
  } else if (random_.Chance(60)) {
    End(machine, process, static_cast<int>(random_.Between(0, 1)), false);
  }
}

void SimCluster::Drop(Machine& machine) {
  std::erase_if(machine.processes, [](const Process& process) { return !process.runner && !process.job; });
}

void SimCluster::Step() {
  const std::lock_guard lock(mutex_);
  const double passed = random_.Chance(80) ? 70 : 0.3;
  for (Machine& machine : machines_) {
    machine.uptime_s += passed;
    for (Process& process : machine.processes) StepProcess(machine, process);
    if (!machine.held.empty() && random_.Chance(60)) {
      const RemoteProgram program = machine.held.front();
      machine.held.erase(machine.held.begin());
      Launch(machine, program);
    }
    Drop(machine);
  }
}

void SimCluster::Settle() {
  const std::lock_guard lock(mutex_);
  for (Machine& machine : machines_) {
    for (const RemoteProgram& program : machine.held) Launch(machine, program);
    machine.held.clear();
    for (Process& process : machine.processes) {
      if (process.runner && !process.claimed) Claim(machine, process);
    }
    Drop(machine);
    machine.uptime_s += 120;
  }
}

void SimCluster::Cut(int host) {
  const std::lock_guard lock(mutex_);
  machines_[static_cast<size_t>(host)].cut = true;
}

void SimCluster::Mend(int host) {
  const std::lock_guard lock(mutex_);
  machines_[static_cast<size_t>(host)].cut = false;
}

void SimCluster::Reboot(int host) {
  const std::lock_guard lock(mutex_);
  Machine& machine = machines_[static_cast<size_t>(host)];
  machine.processes.clear();
  machine.held.clear();
  ++machine.boot;
  machine.uptime_s = 5;
}

void SimCluster::KillARunner(int host) {
  const std::lock_guard lock(mutex_);
  for (Process& process : machines_[static_cast<size_t>(host)].processes) {
    if (!process.runner || !process.claimed) continue;
    process.runner = false;
    return;
  }
}

int SimCluster::Begun(const std::string& key, int rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = begun_.find({key, rank});
  return found == begun_.end() ? 0 : found->second;
}

bool SimCluster::Lives(const std::string& key, int rank) const {
  const std::lock_guard lock(mutex_);
  for (const Machine& machine : machines_) {
    for (const Process& process : machine.processes) {
      if (process.key == key && process.rank == rank && process.job) return true;
    }
  }
  return false;
}

bool SimCluster::OnItsWay(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  for (const Machine& machine : machines_) {
    for (const Process& process : machine.processes) {
      if (process.key == key && process.runner && !process.claimed) return true;
    }
  }
  return false;
}

}  // namespace tp::node
