// People in front of the API: they submit, stop, pause, resume and retry, lose answers, lose patience,
// and ask again with the same request id. The API's part (remembered answers, reading what is stored)
// is played as src/api plays it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/defects.h"
#include "sim/journal.h"
#include "sim/options.h"
#include "sim/promises.h"
#include "sim/rng.h"
#include "sim/server.h"
#include "sim/timeline.h"

namespace tp::sim {

inline const std::vector<std::string> kOwners = {"ada", "bob", "eve"};
inline constexpr std::string_view kAdmin = "root";

class Users {
 public:
  // All outlive the users.
  Users(const Options& options, const Defects& defects, Timeline& timeline, Rng& rng, Journal& journal, Server& server,
        Promises& promises);

  // Runs of several steps, as if submitted before tpd's last start. Call before Server::Start.
  void SeedPipelines();
  void Start();
  void Stop() { acting_ = false; }
  // Nobody waits for an answer.
  bool Content() const { return waiting_ == 0; }

 private:
  struct Request {
    std::string id;
    Ask ask = Ask::kSubmit;
    loop::Principal who;
    int64_t run = 0;
    core::StepSpec spec;
    std::optional<core::ArraySpec> array;
    std::optional<std::pair<int64_t, core::AfterWhen>> after;
    std::string body;
    int tries = 0;
    bool done = false;
  };
  using Shared = std::shared_ptr<Request>;

  void ActLater();
  void Act();
  void ReloadLater(bool shrunk);
  core::StepSpec DrawSpec();
  void DrawSubmission(Request& request);
  loop::Principal DrawUser();

  void Send(const Shared& request);
  void SendAgainLater(const Shared& request, const Span& after);
  void Arrive(const Shared& request);
  bool AnswerRemembered(const Shared& request);
  void Gather(const Shared& request);
  std::optional<loop::Command> CommandOf(const Shared& request);
  void PassOne(const Shared& request);
  void PassTogether(const std::vector<Shared>& requests);
  loop::Action ActionOf(const Request& request, core::RunWithSteps stored) const;
  loop::SubmitRun SubmissionOf(const Request& request) const;
  loop::RetryRun RetryOf(core::RunWithSteps stored) const;
  void Answered(const Shared& request, int64_t order, const absl::StatusOr<loop::Answer>& answer);
  core::Holder HolderOf(const Request& request) const;
  void Receive(const Shared& request);
  void GiveUp(const Shared& request);

  const Options& options_;
  const Defects& defects_;
  Timeline& timeline_;
  Rng& rng_;
  Journal& journal_;
  Server& server_;
  Promises& promises_;
  std::vector<std::vector<std::string>> shapes_;
  std::vector<Shared> together_;  // about to be one call
  std::vector<int64_t> runs_;     // that somebody knows of
  std::map<int64_t, std::string> owners_;
  int64_t next_request_ = 1;
  int waiting_ = 0;
  bool acting_ = false;
};

}  // namespace tp::sim
