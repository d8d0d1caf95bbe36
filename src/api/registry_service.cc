#include "api/registry_service.h"

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "api/committed_capacity.h"
#include "api/convert.h"
#include "config/executors.h"
#include "core/resource.h"
#include "core/withheld.h"

namespace tp::api {
namespace {

constexpr std::string_view kListSeries = "/tp.v1.RegistryService/ListSeries";
constexpr std::string_view kListProfiles = "/tp.v1.RegistryService/ListProfiles";
constexpr std::string_view kListExecutors = "/tp.v1.RegistryService/ListExecutors";
constexpr std::string_view kGetRegistryStatus = "/tp.v1.RegistryService/GetRegistryStatus";

std::string BackendOf(const core::Registry& registry, const core::Series& series) {
  const auto executor = registry.executors.find(series.executor);
  return executor == registry.executors.end() ? "" : executor->second.backend;
}

// Nodes out of service have no free cards.
absl::Status Series(Context& context, const loop::NodesAnswer& nodes, v1::ListSeriesResponse* response) {
  const std::shared_ptr<const core::Registry> registry = context.registry();
  TP_ASSIGN_OR_RETURN(core::Capacity capacity, CommittedCapacity(context.reader, *registry));
  core::NodeBook book;
  for (const core::NodeMark& mark : nodes.marks) book.Put(mark);
  capacity.Withhold(core::WithheldBy(book, nodes.elsewhere));
  response->set_registry_version(registry->version);
  for (const auto& [name, series] : registry->series) {
    v1::Series* to = response->add_series();
    to->set_name(name);
    to->set_description(series.description);
    to->set_gpus_per_node(series.gpus_per_node);
    to->set_nodes(static_cast<int32_t>(series.nodes.size()));
    to->set_total_cards(capacity.TotalCards(name));
    to->set_free_cards(capacity.FreeCards(name));
    to->set_virtual_cards(series.virtual_cards);
    to->set_backend(BackendOf(*registry, series));
  }
  return absl::OkStatus();
}

absl::Status Profiles(Context& context, v1::ListProfilesResponse* response) {
  const std::shared_ptr<const core::Registry> registry = context.registry();
  response->set_registry_version(registry->version);
  for (const auto& [name, profile] : registry->profiles) {
    v1::Profile* to = response->add_profiles();
    to->set_name(name);
    to->set_series(profile.series);
    to->set_description(profile.description);
    to->set_default_total(profile.default_total);
    if (const auto shape = core::ResolveShape(*registry, {name}); shape.ok()) {
      to->set_default_shape(core::DescribeShape(*shape));
    }
  }
  return absl::OkStatus();
}

void Executors(Context& context, v1::ListExecutorsResponse* response) {
  const std::shared_ptr<const core::Registry> registry = context.registry();
  response->set_registry_version(registry->version);
  for (const auto& [name, executor] : registry->executors) {
    v1::Executor* to = response->add_executors();
    to->set_name(name);
    to->set_backend(executor.backend);
    to->set_config_json(config::MaskedConfig(executor));
    for (const auto& [series_name, series] : registry->series) {
      if (series.executor == name) to->add_series(series_name);
      if (series.executor_distributed == name) to->add_distributed_series(series_name);
    }
  }
}

void AddLines(const std::string& text, v1::RegistryFault* fault) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) fault->add_problems(line);
}

absl::Status Status(Context& context, v1::GetRegistryStatusResponse* response) {
  const RegistryStatus status = context.configuration.Status();
  response->set_version(status.version);
  *response->mutable_loaded_at() = ToProto(status.loaded_at);
  response->set_source_sha256(status.source_sha256);
  response->set_directory(status.directory);
  if (status.last_fault) {
    *response->mutable_last_fault()->mutable_at() = ToProto(status.last_fault->at);
    AddLines(status.last_fault->text, response->mutable_last_fault());
  }
  response->set_differs_on_disk(status.differs_on_disk);
  for (const std::string& key : status.restart_keys) response->add_restart_keys(key);
  TP_ASSIGN_OR_RETURN(const std::vector<std::string> faults, CommittedCardFaults(context.reader, *context.registry()));
  for (const std::string& fault : faults) response->add_card_faults(fault);
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* RegistryService::ListSeries(grpc::CallbackServerContext* server_context,
                                                      const v1::ListSeriesRequest* /*request*/,
                                                      v1::ListSeriesResponse* response) {
  return RunUnary(
      context_, context_.calls, server_context, kListSeries, [=, this](const Call& /*call*/, const Done& done) {
        context_.loop.Post(loop::NodesQuery(), [=, this](absl::StatusOr<loop::NodesAnswer> nodes) {
          if (!nodes.ok()) return done(nodes.status());
          context_.calls.Post([=, this, nodes = *std::move(nodes)] { done(Series(context_, nodes, response)); });
        });
      });
}

grpc::ServerUnaryReactor* RegistryService::ListExecutors(grpc::CallbackServerContext* server_context,
                                                         const v1::ListExecutorsRequest* /*request*/,
                                                         v1::ListExecutorsResponse* response) {
  return RunUnarySync(context_, context_.calls, server_context, kListExecutors, [=, this](const Call& /*call*/) {
    Executors(context_, response);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* RegistryService::ListProfiles(grpc::CallbackServerContext* server_context,
                                                        const v1::ListProfilesRequest* /*request*/,
                                                        v1::ListProfilesResponse* response) {
  return RunUnarySync(context_, context_.calls, server_context, kListProfiles,
                      [=, this](const Call& /*call*/) { return Profiles(context_, response); });
}

grpc::ServerUnaryReactor* RegistryService::GetRegistryStatus(grpc::CallbackServerContext* server_context,
                                                             const v1::GetRegistryStatusRequest* /*request*/,
                                                             v1::GetRegistryStatusResponse* response) {
  return RunUnarySync(context_, context_.files, server_context, kGetRegistryStatus,
                      [=, this](const Call& /*call*/) { return Status(context_, response); });
}

}  // namespace tp::api
