#include "cli/run_list.h"

#include <algorithm>
#include <cctype>

#include "base/status.h"
#include "cli/render/runs.h"
#include "cli/render/time.h"
#include "cli/secrets.h"
#include "cli/submission.h"

namespace tp::cli {
namespace {

constexpr int64_t kPageSize = 200;

bool HoldsJobSlot(v1::JobState state) {
  return state == v1::JOB_STATE_SUBMITTED || state == v1::JOB_STATE_PENDING || state == v1::JOB_STATE_RUNNING;
}

absl::StatusOr<std::string> OwnerOf(Client& client, const ListFlags& flags) {
  if (flags.all_users) return std::string();
  if (!flags.user.empty()) return flags.user;
  TP_ASSIGN_OR_RETURN(const v1::WhoAmIResponse me, client.Call(&v1::SystemService::Stub::WhoAmI, v1::WhoAmIRequest()));
  return me.user();
}

absl::StatusOr<v1::ListRunsRequest> BuildRequest(const ListFlags& flags, const std::string& owner, absl::Time now) {
  v1::ListRunsRequest request;
  request.set_owner(owner);
  request.set_project(flags.project);
  request.set_show_removed(flags.removed);
  for (const std::string& text : flags.states) {
    TP_ASSIGN_OR_RETURN(const v1::RunState state, ParseRunState(text, "--state"));
    request.add_states(state);
  }
  TP_RETURN_IF_ERROR(ParseLabels(flags.labels, *request.mutable_labels()));
  if (!flags.since.empty()) {
    TP_ASSIGN_OR_RETURN(const absl::Time since, ParseInstant(flags.since, "--since", now));
    *request.mutable_active_after() = ToProto(since);
  }
  return request;
}

}  // namespace

absl::StatusOr<RunList> ListRuns(Client& client, const ListFlags& flags, absl::Time now) {
  RunList list;
  TP_ASSIGN_OR_RETURN(list.owner, OwnerOf(client, flags));
  TP_ASSIGN_OR_RETURN(v1::ListRunsRequest request, BuildRequest(flags, list.owner, now));
  do {
    const int64_t left = flags.limit > 0 ? flags.limit - static_cast<int64_t>(list.runs.size()) : kPageSize;
    request.set_page_size(static_cast<int32_t>(std::min(left, kPageSize)));
    TP_ASSIGN_OR_RETURN(v1::ListRunsResponse page, client.Call(&v1::RunService::Stub::ListRuns, request));
    for (v1::Run& run : *page.mutable_runs()) {
      MaskSecrets(run);
      list.runs.push_back(std::move(run));
    }
    request.set_page_token(page.next_page_token());
    list.more =
        flags.limit > 0 && static_cast<int64_t>(list.runs.size()) >= flags.limit && !page.next_page_token().empty();
  } while (!request.page_token().empty() && !list.more);
  return list;
}

absl::StatusOr<v1::RunState> ParseRunState(std::string_view text, std::string_view what) {
  std::string name = "RUN_STATE_";
  for (const char c : text) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  v1::RunState state = v1::RUN_STATE_UNSPECIFIED;
  if (v1::RunState_Parse(name, &state) && state != v1::RUN_STATE_UNSPECIFIED) return state;
  std::string known;
  for (int value = v1::RUN_STATE_UNSPECIFIED + 1; value <= v1::RunState_MAX; ++value) {
    known += (known.empty() ? "" : ", ") + StateName(static_cast<v1::RunState>(value));
  }
  return InvalidArgument("{} {}: no such state; there are {}", what, text, known);
}

UseSummary SummarizeUse(const std::vector<v1::Run>& runs) {
  UseSummary use;
  for (const v1::Run& run : runs) {
    if (run.state() == v1::RUN_STATE_QUEUED) ++use.queued;
    if (run.state() == v1::RUN_STATE_PAUSED) ++use.paused;
    for (const v1::Step& step : run.steps()) {
      if (!HoldsJobSlot(step.state())) continue;
      ++use.live_jobs;
      use.cards += step.cards();
    }
  }
  return use;
}

std::string UseSentence(std::string_view owner, const UseSummary& use) {
  return fmt::format("{}: {} card{} in use by {} job{}; {} queued, {} paused", owner.empty() ? "everyone" : owner,
                     use.cards, use.cards == 1 ? "" : "s", use.live_jobs, use.live_jobs == 1 ? "" : "s", use.queued,
                     use.paused);
}

}  // namespace tp::cli
