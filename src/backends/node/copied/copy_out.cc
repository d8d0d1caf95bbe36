#include "backends/node/copied/copy_out.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "backends/node/copied/mirror_script.h"
#include "backends/node/copied/trees.h"
#include "backends/node/crew.h"
#include "base/file.h"
#include "base/status.h"

namespace tp::node {
namespace {

constexpr char kCopiedOut[] = ".copied-out";
constexpr size_t kMaxMarkBytes = 16 * 1024;
constexpr absl::Duration kReadyLimit = absl::Minutes(5);
constexpr size_t kLogDigits = 20;

struct RankPlace {
  int pool = 0;
  int rank = 0;
  RankHost host;
  std::string name() const { return fmt::format("{}-{}", pool, rank); }
};

std::vector<RankPlace> PlacesIn(const AttemptTarget& target) {
  std::vector<RankPlace> places;
  for (size_t pool = 0; pool < target.ranks_per_pool.size(); ++pool) {
    for (int rank = 0; rank < target.ranks_per_pool[pool]; ++rank) {
      const size_t i = places.size();
      places.push_back({static_cast<int>(pool), rank,
                        i < target.hosts.size() ? target.hosts[i] : RankHost{.node = {}, .address = {}}});
    }
  }
  return places;
}

// Of files that a rank's runner and job write into the attempt's directory, those that are kept.
bool IsLogOf(const std::string& name, const RankPlace& place, bool first) {
  const std::string log = place.name() + ".log";
  if (name == log || name == place.name() + ".system.log") return true;
  if (first && name == "metrics.jsonl") return true;
  if (!name.starts_with(log + ".") || name.size() != log.size() + 1 + kLogDigits) return false;
  return name.find_first_not_of("0123456789", log.size() + 1) == std::string::npos;
}

// A pattern of rsync's that stands for itself.
std::string Literal(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

absl::Status SyncFilesystemOf(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || syncfs(fd.get()) != 0) return ErrnoStatus(errno, "sync", path);
  return absl::OkStatus();
}

class CopyFromHosts {
 public:
  CopyFromHosts(const AttemptTarget& target, const CopySite& site, CopyJob& job)
      : target_(target),
        site_(site),
        job_(job),
        run_(RunDirectoryOf(target.attempt_dir)),
        attempt_(target.attempt_dir.substr(target.attempt_dir.rfind('/') + 1)),
        places_(PlacesIn(target)) {}

  absl::Status Run() {
    std::vector<absl::Status> brought(places_.size());
    ForEachAtOnce(places_.size(), [&](size_t i) { brought[i] = BringUntilDone(i); });
    CopiedOut done;
    for (size_t i = 0; i < places_.size(); ++i) {
      if (absl::IsNotFound(brought[i])) {
        done.lost_nodes.insert(places_[i].host.node);
      } else if (!brought[i].ok()) {
        return brought[i];
      }
    }
    job_.Tell("", "puts the output of all ranks together");
    for (size_t i = 0; i < places_.size(); ++i) TP_RETURN_IF_ERROR(PutInPlace(i));
    TP_RETURN_IF_ERROR(SyncFilesystemOf(run_));
    TP_RETURN_IF_ERROR(Mark(done));
    // What is left of it is in nobody's way.
    RemoveTree(*OpenDirectory(target_.attempt_dir), ".copied").IgnoreError();
    return absl::OkStatus();
  }

 private:
  // NOT_FOUND: it will not come.
  absl::Status BringUntilDone(size_t i) {
    const RankPlace& place = places_[i];
    const std::string& node = place.host.node;
    if (!HasClaimed(place)) return absl::OkStatus();
    for (int failures = 0;; ++failures) {
      if (job_.given_up(node)) return NotFound("{} was declared dead", node);
      const absl::Status brought = Bring(i);
      if (brought.ok()) job_.Tell(node, "");
      if (brought.ok() || absl::IsNotFound(brought) || absl::IsCancelled(brought)) return brought;
      job_.Tell(node, fmt::format("output of {} is still to be copied: {}", node, Message(brought)));
      if (!job_.Wait(node, TryAgainAfter(failures)) && !job_.given_up(node)) {
        return Error(absl::StatusCode::kCancelled, "the copy was called off");
      }
    }
  }

  bool HasClaimed(const RankPlace& place) const {
    struct stat about {};
    return stat(fmt::format("{}/{}.claim", target_.attempt_dir, place.name()).c_str(), &about) == 0;
  }

  absl::Status Bring(size_t i) {
    const RankPlace& place = places_[i];
    const std::string& node = place.host.node;
    const std::shared_ptr<HostLink> link = site_.links.Of(place.host);
    const HostAnswer answer = link->Ask(
        {.text = CopyOutProgram(target_.attempt_dir, place.pool, place.rank), .body = {}}, absl::Now() + kReadyLimit);
    if (const auto* silence = std::get_if<HostSilence>(&answer)) return Unavailable("{}", silence->why);
    const std::string& words = std::get<HostReply>(answer).words;
    if (words == "gone") return NotFound("{} no longer has the files of {}", node, target_.key);
    int64_t total = 0;
    std::string word;
    std::istringstream(words) >> word >> total;
    if (word != "ready") return Unavailable("{} does not say whether the files of the job can be copied", node);
    const std::string begin = fmt::format("copies output from {}", node);
    job_.Tell(node, begin);
    TP_RETURN_IF_ERROR(
        MakeDirectoriesBeneath(target_.attempt_dir, fmt::format(".copied/from-{}", place.name()), 02770).status());
    return CopyInTurn(site_, OrderFor(i), job_, [this, &node, &begin, total](int64_t bytes) {
      job_.Tell(node, fmt::format("{}: {}", begin, ProgressWords(bytes, total)));
    });
  }

  CopyOrder OrderFor(size_t i) const {
    const RankPlace& place = places_[i];
    const std::string logs = fmt::format("+ /attempts/{}/{}", Literal(attempt_), place.name());
    CopyOrder order{.host = place.host, .direction = CopyDirection::kFromHost, .source = run_, .target = {}};
    order.target = CameFrom(target_.attempt_dir, place.pool, place.rank);
    order.filters = {fmt::format("- /output/{}*", kOfRank),
                     fmt::format("- /results/{}*", kOfRank),
                     "- .tp-partial/",
                     "+ /output/***",
                     "+ /results/***",
                     "+ /attempts/",
                     fmt::format("+ /attempts/{}/", Literal(attempt_)),
                     logs + ".log",
                     logs + ".log.*",
                     logs + ".system.log"};
    if (i == 0) order.filters.push_back(fmt::format("+ /attempts/{}/metrics.jsonl", Literal(attempt_)));
    order.filters.emplace_back("- *");
    order.except_as_in = {BaseOf(target_.attempt_dir), run_};
    order.lock = CopiesOf(target_.attempt_dir) + "/lock-" + place.name();
    return order;
  }

  absl::Status PutInPlace(size_t i) {
    const RankPlace& place = places_[i];
    const auto stopped = [this] { return job_.called_off(); };
    const std::string from = CameFrom(target_.attempt_dir, place.pool, place.rank);
    for (const char* tree : {"output", "results"}) {
      const std::string into = fmt::format("{}/{}", run_, tree);
      TP_RETURN_IF_ERROR(MakeDirectoriesBeneath(run_, tree, 02770).status());
      TP_RETURN_IF_ERROR(MergeTree({.from = fmt::format("{}/{}", from, tree),
                                    .into = into,
                                    .base = fmt::format("{}/{}", BaseOf(target_.attempt_dir), tree),
                                    .of_rank = fmt::format("{}{}", kOfRank, place.name()),
                                    .first = i == 0},
                                   stopped));
    }
    return PutLogs(place, from, i == 0);
  }

  // Readers take the current log for what follows the newest segment, so it is away while segments come.
  absl::Status PutLogs(const RankPlace& place, const std::string& from, bool first) {
    const absl::StatusOr<Directory> source = OpenDirectory(fmt::format("{}/attempts/{}", from, attempt_));
    if (absl::IsNotFound(source.status())) return absl::OkStatus();
    TP_RETURN_IF_ERROR(source.status());
    TP_ASSIGN_OR_RETURN(const Directory target, OpenDirectory(target_.attempt_dir));
    std::vector<std::string> names;
    std::error_code error;
    const std::filesystem::directory_iterator end;
    for (std::filesystem::directory_iterator entry(source->path, error); !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (IsLogOf(name, place, first) && entry->symlink_status(error).type() == std::filesystem::file_type::regular) {
        names.push_back(name);
      }
    }
    if (error) return Unavailable("{} cannot be listed: {}", source->path, error.message());
    const std::string current = place.name() + ".log";
    const bool replaces = std::find(names.begin(), names.end(), current) != names.end();
    if (replaces && unlinkat(target.fd.get(), current.c_str(), 0) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, "replace", target.At(current));
    }
    std::sort(names.rbegin(), names.rend());  // segments before the current one
    for (const std::string& name : names) {
      if (renameat(source->fd.get(), name.c_str(), target.fd.get(), name.c_str()) != 0) {
        return ErrnoStatus(errno, "rename to", target.At(name));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Mark(const CopiedOut& done) {
    TP_ASSIGN_OR_RETURN(const Directory directory, OpenDirectory(target_.attempt_dir));
    std::string text;
    for (const std::string& node : done.lost_nodes) text += fmt::format("lost={}\n", node);
    return ReplaceFile(directory, kCopiedOut, text + "end\n", 0660, Sync::kDurable);
  }

  const AttemptTarget& target_;
  const CopySite& site_;
  CopyJob& job_;
  const std::string run_;
  const std::string attempt_;
  const std::vector<RankPlace> places_;
};

}  // namespace

absl::StatusOr<std::optional<CopiedOut>> ReadCopiedOut(const std::string& attempt_dir) {
  const absl::StatusOr<Directory> directory = OpenDirectory(attempt_dir);
  if (absl::IsNotFound(directory.status())) return std::optional<CopiedOut>();
  TP_RETURN_IF_ERROR(directory.status());
  TP_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, ReadSmallFile(*directory, kCopiedOut, kMaxMarkBytes));
  if (!bytes || !bytes->ends_with("end\n")) return std::optional<CopiedOut>();
  CopiedOut done;
  std::istringstream text(*bytes);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("lost=")) done.lost_nodes.insert(line.substr(5));
  }
  return std::optional(std::move(done));
}

absl::Status CopyOut(const AttemptTarget& target, const CopySite& site, CopyJob& job) {
  return CopyFromHosts(target, site, job).Run();
}

}  // namespace tp::node
