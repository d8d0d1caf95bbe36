#include "api/reconcile.h"

#include <string>
#include <utility>
#include <vector>

#include "api/mutation.h"
#include "api/request.h"
#include "base/status.h"
#include "core/reconcile.h"
#include "store/each_run.h"

namespace tp::api {
namespace {

// Of more findings than this the first: an answer has a size.
constexpr int kMostFindings = 1000;

absl::StatusOr<std::vector<core::LiveObject>> LiveObjects(store::Reader& reader) {
  std::vector<core::LiveObject> live;
  store::RunFilter filter;
  filter.words = {core::RunWord::kSubmitted, core::RunWord::kPending, core::RunWord::kRunning};
  const absl::Status status = store::EachRun(reader, filter, [&live](const core::RunWithSteps& run) {
    for (const core::Step& step : run.steps) {
      if (!step.attempt) continue;
      const core::Attempt& attempt = *step.attempt;
      // Before its ranks are up, and once they have ended, the engine may well have nothing of it.
      const bool runs = attempt.meter && !attempt.meter->closed_unix_us;
      live.push_back({attempt.shape.backend, attempt.key, run.run.id(), runs});
    }
    return absl::OkStatus();
  });
  TP_RETURN_IF_ERROR(status);
  return live;
}

v1::ReconcileFindingKind FindingKindOf(core::FindingKind kind) {
  switch (kind) {
    case core::FindingKind::kOrphan:
      return v1::RECONCILE_FINDING_KIND_ORPHAN;
    case core::FindingKind::kForeign:
      return v1::RECONCILE_FINDING_KIND_FOREIGN;
    case core::FindingKind::kMissing:
      return v1::RECONCILE_FINDING_KIND_MISSING;
  }
  return v1::RECONCILE_FINDING_KIND_UNSPECIFIED;
}

absl::StatusOr<std::vector<core::Finding>> Look(Context& context) {
  TP_ASSIGN_OR_RETURN(const auto before, LiveObjects(context.reader));
  TP_ASSIGN_OR_RETURN(const std::vector<core::SeenObject> seen, context.inventory());
  TP_ASSIGN_OR_RETURN(const auto after, LiveObjects(context.reader));
  return core::Reconcile({.name = context.facts.deployment, .epoch = context.facts.epoch}, seen, before, after);
}

void Fill(const std::vector<core::Finding>& findings, v1::ReconcileResponse* response) {
  for (const core::Finding& finding : findings) {
    if (response->findings_size() == kMostFindings) return;
    v1::ReconcileFinding* to = response->add_findings();
    to->set_kind(FindingKindOf(finding.kind));
    to->set_backend(finding.backend);
    to->set_key(finding.key);
    to->set_sentence(finding.sentence);
  }
}

loop::SweepOrphans SweepOf(std::vector<core::Finding> findings) {
  loop::SweepOrphans sweep;
  for (core::Finding& finding : findings) {
    if (finding.target) sweep.orphans.push_back({std::move(finding.backend), *std::move(finding.target)});
  }
  return sweep;
}

}  // namespace

void Reconcile(Context& context, const Call& call, const v1::ReconcileRequest& request, v1::ReconcileResponse* response,
               const Done& done) {
  absl::StatusOr<std::vector<core::Finding>> findings = Look(context);
  if (!findings.ok()) return done(findings.status());
  Fill(*findings, response);
  if (request.dry_run()) return done(absl::OkStatus());
  ChangeWithNote(context, call, request, response, done, SweepOf(*std::move(findings)));
}

}  // namespace tp::api
