#include "cli/render/configuration.h"

#include <fmt/ranges.h>

#include "cli/render/forecast.h"
#include "cli/render/table.h"
#include "cli/render/text.h"
#include "cli/render/time.h"

namespace tp::cli {
namespace {

std::string KindName(v1::ConfigurationChangeKind kind) {
  switch (kind) {
    case v1::CONFIGURATION_CHANGE_KIND_ADDED:
      return "added";
    case v1::CONFIGURATION_CHANGE_KIND_REMOVED:
      return "removed";
    case v1::CONFIGURATION_CHANGE_KIND_CHANGED:
      return "changed";
    default:  // of a newer server
      return "-";
  }
}

std::string RestartLine(const google::protobuf::RepeatedPtrField<std::string>& keys) {
  if (keys.empty()) return "";
  return EscapeControl(fmt::format("with a restart of tpd only: {}", fmt::join(keys, ", "))) + "\n";
}

}  // namespace

std::string ReloadPage(const v1::ReloadConfigurationResponse& response, const ReloadView& view,
                       const Terminal& terminal) {
  std::string page =
      view.dry_run ? fmt::format("registry version {} is in force; the files would bring", response.registry_version())
                   : fmt::format("registry version {} is in force", response.registry_version());
  page += response.changes().empty() ? ": no change\n" : ":\n";
  for (const v1::ConfigurationChange& change : response.changes()) {
    page += EscapeControl(fmt::format("  {} {} {}", change.what(), change.name(), KindName(change.kind()))) + "\n";
  }
  page += RestartLine(response.restart_keys());
  return response.changes().empty() ? page : page + ForecastText(response.forecast(), view.wide, terminal);
}

std::string RegistryStatusPage(const v1::GetRegistryStatusResponse& status, absl::Time now) {
  const std::string directory = status.directory().empty() ? "built-in files" : status.directory();
  std::string page = EscapeControl(fmt::format("version {}, loaded {} from {}", status.version(),
                                               RelativeTime(FromProto(status.loaded_at()), now), directory)) +
                     "\n" + EscapeControl(fmt::format("files {}", status.source_sha256())) + "\n";
  if (status.differs_on_disk()) page += "the files on disk are not what is in force\n";
  page += RestartLine(status.restart_keys());
  for (const std::string& fault : status.card_faults()) page += EscapeControl(fault) + "\n";
  if (!status.has_last_fault()) return page;
  page += fmt::format("the last reload failed {}:\n", RelativeTime(FromProto(status.last_fault().at()), now));
  for (const std::string& problem : status.last_fault().problems()) page += "  " + EscapeControl(problem) + "\n";
  return page;
}

std::string ReceiverTable(const v1::ListReceiversResponse& response, const Terminal& terminal, absl::Time now) {
  Table table({{"NAME"},
               {"WAITING", Align::kRight},
               {"DELIVERED", Align::kRight},
               {"GIVEN UP", Align::kRight},
               {"LAST FAILURE", Align::kLeft, true}});
  for (const v1::Receiver& receiver : response.receivers()) {
    std::string failure;
    if (receiver.has_last_failed_at()) {
      failure = fmt::format("{}: {}", RelativeTime(FromProto(receiver.last_failed_at()), now), receiver.last_error());
    }
    table.AddRow({{receiver.configured() ? receiver.name() : receiver.name() + " (not in tpd.yaml)"},
                  {std::to_string(receiver.waiting())},
                  {std::to_string(receiver.delivered())},
                  {std::to_string(receiver.given_up())},
                  {failure}});
  }
  return table.Render(terminal);
}

}  // namespace tp::cli
