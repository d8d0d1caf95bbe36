#include "auth/roles.h"

#include "base/status.h"

namespace tp::auth {
namespace {

using store::Role;

struct MethodRole {
  std::string_view method;
  Role role;
};

constexpr MethodRole kMethodRoles[] = {
    {"/tp.v1.RunService/SubmitRun", Role::kUser},
    {"/tp.v1.RunService/GetRun", Role::kViewer},
    {"/tp.v1.RunService/ListRuns", Role::kViewer},
    {"/tp.v1.RunService/WatchRun", Role::kViewer},
    {"/tp.v1.RunService/WatchEvents", Role::kViewer},
    {"/tp.v1.RunService/StopRun", Role::kUser},
    {"/tp.v1.RunService/PauseRun", Role::kUser},
    {"/tp.v1.RunService/SteerRuns", Role::kUser},
    {"/tp.v1.RunService/ResumeRun", Role::kUser},
    {"/tp.v1.RunService/RetryRun", Role::kUser},
    {"/tp.v1.RunService/UpdateRun", Role::kUser},
    {"/tp.v1.RunService/CloneRun", Role::kUser},
    {"/tp.v1.RunService/RemoveRun", Role::kUser},
    {"/tp.v1.RunService/ExplainRun", Role::kViewer},
    {"/tp.v1.RunService/ListQueue", Role::kViewer},
    {"/tp.v1.RunService/ListRunEvents", Role::kViewer},
    {"/tp.v1.RunService/ListResults", Role::kViewer},
    {"/tp.v1.RunService/ReadResult", Role::kViewer},
    {"/tp.v1.RunService/ReadMetrics", Role::kViewer},
    {"/tp.v1.LogService/ReadLog", Role::kViewer},
    {"/tp.v1.SnapshotService/GetSnapshot", Role::kViewer},
    {"/tp.v1.SnapshotService/GetSnapshotLimits", Role::kViewer},
    {"/tp.v1.SnapshotService/FindMissingBlobs", Role::kUser},
    {"/tp.v1.SnapshotService/PutBlobs", Role::kUser},
    {"/tp.v1.SnapshotService/CommitManifest", Role::kUser},
    {"/tp.v1.RegistryService/ListSeries", Role::kViewer},
    {"/tp.v1.RegistryService/ListProfiles", Role::kViewer},
    {"/tp.v1.RegistryService/ListExecutors", Role::kViewer},
    {"/tp.v1.RegistryService/GetRegistryStatus", Role::kOperator},
    {"/tp.v1.UsageService/QueryUsage", Role::kViewer},
    {"/tp.v1.UsageService/ListIntervals", Role::kViewer},
    {"/tp.v1.QuotaService/GetStanding", Role::kViewer},
    {"/tp.v1.QuotaService/ListQuotas", Role::kOperator},
    {"/tp.v1.QuotaService/SetQuota", Role::kAdmin},
    {"/tp.v1.QuotaService/RemoveQuotaRule", Role::kAdmin},
    {"/tp.v1.WindowService/ListWindows", Role::kViewer},
    {"/tp.v1.WindowService/HoldWindowOpen", Role::kAdmin},
    {"/tp.v1.NodeService/ListNodes", Role::kViewer},
    {"/tp.v1.NodeService/MarkNode", Role::kOperator},
    {"/tp.v1.NodeService/ClearNode", Role::kOperator},
    {"/tp.v1.SystemService/GetServerInfo", Role::kViewer},
    {"/tp.v1.SystemService/WhoAmI", Role::kViewer},
    {"/tp.v1.SystemService/ReloadConfiguration", Role::kAdmin},
    {"/tp.v1.SystemService/Reconcile", Role::kAdmin},
    {"/tp.v1.SystemService/ListReceivers", Role::kOperator},
};

bool IsTheirsOrOperator(const Identity& caller, std::string_view owner) {
  return caller.user == owner || caller.role >= Role::kOperator;
}

}  // namespace

std::optional<Role> RequiredRole(std::string_view method) {
  for (const MethodRole& row : kMethodRoles) {
    if (row.method == method) return row.role;
  }
  return std::nullopt;
}

absl::Status CheckMayCall(const Identity& caller, std::string_view method) {
  const auto required = RequiredRole(method);
  if (required && caller.role >= *required) return absl::OkStatus();
  return Error(absl::StatusCode::kPermissionDenied, "{} is a {} and {} needs the role {}: ask an admin", caller.user,
               Name(caller.role), method.substr(method.rfind('/') + 1), required ? Name(*required) : "admin");
}

bool MayReadContent(const Identity& caller, std::string_view owner) { return IsTheirsOrOperator(caller, owner); }

bool MayReadEnvironment(const Identity& caller, std::string_view owner) {
  return caller.user == owner || caller.role >= Role::kAdmin;
}

bool MayReadNameInQueue(const Identity& caller, std::string_view owner) { return IsTheirsOrOperator(caller, owner); }

bool MayReadStanding(const Identity& caller, std::string_view user) { return IsTheirsOrOperator(caller, user); }

}  // namespace tp::auth
