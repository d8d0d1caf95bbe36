#include "backends/node/copied/copy_in.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "backends/node/copied/mirror_script.h"
#include "backends/node/copied/trees.h"
#include "backends/node/crew.h"
#include "backends/node/gang_launch.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"

namespace tp::node {
namespace {

constexpr absl::Duration kAskLimit = absl::Seconds(60);
// In a row, without a byte in between.
constexpr int kMostFailures = 4;

bool IsDirectory(const std::string& path) {
  struct stat about {};
  return lstat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

// Nothing while storage says what it should.
absl::Status CopyInProblem(const std::string& said, const std::string& node, const std::string& root) {
  if (said == "ok") return absl::OkStatus();
  if (said == "noroot") {
    return FailedPrecondition("{} has no directory {}: make it there, writable for the user that tpd logs in as", node,
                              root);
  }
  if (said == "shared") {
    return FailedPrecondition(
        "{} sees in {} what tpd sees there, so nothing is to be copied: set backends.node.storage to shared", node,
        root);
  }
  if (said.starts_with("missing ")) {
    return FailedPrecondition("{0} has no {1}: install the package {2} there", node, said.substr(8),
                              said == "missing rsync" ? "rsync" : "coreutils");
  }
  if (said.starts_with("nowrite")) {
    const bool full = said.find("No space left") != std::string::npos;
    return FailedPrecondition("{} cannot write to {}{}{}", node, root, said.substr(7), full ? ": free some of it" : "");
  }
  return Unavailable("{} does not say whether it can take the files of a job", node);
}

class CopyIntoHosts {
 public:
  CopyIntoHosts(const LaunchSpec& spec, const CopySite& site, CopyJob& job)
      : spec_(spec), site_(site), job_(job), run_(RunDirectoryOf(spec.paths.attempt_dir)) {}
  ~CopyIntoHosts() {
    if (directory_.fd.valid()) unlinkat(directory_.fd.get(), (".shared." + token_).c_str(), 0);
  }

  absl::Status Run() {
    TP_RETURN_IF_ERROR(Begin());
    const std::vector<HostShare> shares = ShareOut(spec_);
    std::vector<absl::Status> results(shares.size());
    ForEachAtOnce(shares.size(), [&](size_t i) {
      results[i] = CopyUntilDone(shares[i]);
      // All ranks or none: nobody waits for the others.
      if (!results[i].ok()) job_.CallOff();
    });
    absl::Status worst;
    for (const absl::Status& result : results) {
      if (worst.ok() || (absl::IsCancelled(worst) && !result.ok())) worst = result;
    }
    return worst;
  }

 private:
  // Of one machine.
  struct Track {
    bool began = false;  // it has answered
    bool moved_bytes = false;
  };

  absl::Status Begin() {
    const auto stopped = [this] { return job_.called_off(); };
    TP_ASSIGN_OR_RETURN(directory_, OpenDirectory(spec_.paths.attempt_dir));
    token_ = RandomName();
    TP_RETURN_IF_ERROR(ReplaceFile(directory_, ".shared." + token_, token_, 0660, Sync::kNone));
    TP_ASSIGN_OR_RETURN(work_bytes_, BytesInTree(spec_.paths.work_dir, stopped));
    TP_RETURN_IF_ERROR(MakeDirectoriesBeneath(spec_.paths.attempt_dir, ".copied", 02770).status());
    // Under its name it is whole; another launch call of the attempt may have made it.
    const std::string base = BaseOf(spec_.paths.attempt_dir);
    const std::string making = fmt::format("{}.{}", base, token_);
    TP_RETURN_IF_ERROR(RemoveCopies(base));
    TP_RETURN_IF_ERROR(MakeDirectoriesBeneath(CopiesOf(spec_.paths.attempt_dir), "base." + token_, 02770).status());
    for (const char* tree : {"output", "results"}) {
      TP_ASSIGN_OR_RETURN(const LinkedTree linked,
                          LinkTree(fmt::format("{}/{}", run_, tree), fmt::format("{}/{}", making, tree), stopped));
      output_bytes_ += linked.bytes;
      has_output_ = has_output_ || linked.files > 0;
    }
    if (rename(making.c_str(), base.c_str()) != 0) return ErrnoStatus(errno, "rename to", base);
    return absl::OkStatus();
  }

  static absl::Status RemoveCopies(const std::string& path) {
    TP_ASSIGN_OR_RETURN(const Directory parent, OpenDirectory(path.substr(0, path.rfind('/'))));
    return RemoveTree(parent, path.substr(path.rfind('/') + 1));
  }

  absl::Status CopyUntilDone(const HostShare& share) {
    const std::string& node = share.host.node;
    Track track;
    for (int failures = 0;; ++failures) {
      track.moved_bytes = false;
      const absl::Status copied = CopyOnce(share, track);
      // One that does not answer from the beginning is not waited for: the job may run elsewhere.
      if (!absl::IsUnavailable(copied) || !track.began) return copied;
      if (track.moved_bytes) failures = 0;
      if (failures == kMostFailures) return copied;
      const absl::Duration pause = TryAgainAfter(failures);
      job_.Tell(node, fmt::format("the copy to {} broke off and goes on in {}: {}", node, absl::FormatDuration(pause),
                                  Message(copied)));
      if (!job_.Wait(node, pause)) return Error(absl::StatusCode::kCancelled, "the copy was called off");
    }
  }

  absl::Status CopyOnce(const HostShare& share, Track& track) {
    const std::string& node = share.host.node;
    const std::shared_ptr<HostLink> link = site_.links.Of(share.host);
    job_.Tell(node, fmt::format("makes {} ready for the job's files", node));
    TP_RETURN_IF_ERROR(site_.owed.Settle(*link, absl::Now() + kAskLimit));
    CopyOrder order{.host = share.host, .direction = CopyDirection::kToHost, .source = {}, .target = {}};
    order.mark = MarkOfStep();
    const CopyInPlace place{site_.storage_root, spec_.paths.attempt_dir, spec_.paths.results_dir, token_, order.mark};
    const HostAnswer answer = link->Ask({.text = CopyInProgram(place), .body = {}}, absl::Now() + kAskLimit);
    if (const auto* silence = std::get_if<HostSilence>(&answer)) return Unavailable("{}", silence->why);
    const auto& reply = std::get<HostReply>(answer);
    TP_RETURN_IF_ERROR(CopyInProblem(reply.storage, node, site_.storage_root));
    track.began = true;
    TP_RETURN_IF_ERROR(CopyAttempt(order, track));
    return CopyOutput(order, share, reply.words, track);
  }

  std::string MarkOfStep() const {
    const std::string& attempt = spec_.paths.attempt_dir;
    Sha256 name;
    name.Update(attempt.substr(0, attempt.rfind('-')));
    return name.HexDigest().substr(0, 32);
  }

  std::function<void(int64_t)> Progress(const std::string& node, const std::string& what, int64_t total, Track& track) {
    const std::string begin = fmt::format("copies {} to {}", what, node);
    job_.Tell(node, begin);
    return [this, node, begin, total, &track](int64_t bytes) {
      track.moved_bytes = track.moved_bytes || bytes > 0;
      job_.Tell(node, fmt::format("{}: {}", begin, ProgressWords(bytes, total)));
    };
  }

  absl::Status CopyAttempt(CopyOrder order, Track& track) {
    order.source = order.target = spec_.paths.attempt_dir;
    order.filters = {"+ /work/***", "+ /spec.json", "+ /overrides*.json", "- *"};
    return CopyInTurn(site_, order, job_, Progress(order.host.node, "the snapshot", work_bytes_, track));
  }

  // Where other attempts of the run have their output on the machine, what is there is newer than what tpd has.
  absl::Status CopyOutput(CopyOrder order, const HostShare& share, const std::string& words, Track& track) {
    int others = 1;
    int output_there = 1;
    std::string word;
    std::istringstream(words) >> word >> others >> output_there;
    order.filters = {"+ /output/***", "+ /results/***", "- *"};
    order.source = BaseOf(spec_.paths.attempt_dir);
    order.target = run_;
    order.only_missing = others > 0;
    order.delete_others = others == 0;
    if (has_output_ || output_there > 0) {
      TP_RETURN_IF_ERROR(CopyInTurn(site_, order, job_, Progress(order.host.node, "output", output_bytes_, track)));
    }
    order.filters.clear();
    order.delete_others = false;
    for (const RankLaunch& rank : share.spec.ranks) {
      for (const char* tree : {"output", "results"}) {
        order.source = fmt::format("{}/{}/{}{}-{}", run_, tree, kOfRank, rank.pool, rank.rank);
        order.target = fmt::format("{}/{}", run_, tree);
        if (!IsDirectory(order.source)) continue;
        TP_RETURN_IF_ERROR(CopyInTurn(site_, order, job_, Progress(order.host.node, "output of the rank", 0, track)));
      }
    }
    job_.Tell(order.host.node, "");
    return absl::OkStatus();
  }

  const LaunchSpec& spec_;
  const CopySite& site_;
  CopyJob& job_;
  const std::string run_;
  Directory directory_;
  std::string token_;
  int64_t work_bytes_ = 0;
  int64_t output_bytes_ = 0;
  bool has_output_ = false;
};

}  // namespace

absl::Status CopyIn(const LaunchSpec& spec, const CopySite& site, CopyJob& job) {
  return CopyIntoHosts(spec, site, job).Run();
}

}  // namespace tp::node
