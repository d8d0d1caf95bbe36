#include "config/server_config.h"

#include <algorithm>
#include <charconv>

#include "base/duration.h"
#include "base/status.h"
#include "config/backend_config.h"
#include "config/loopback.h"
#include "config/order_keys.h"
#include "config/scalar_types.h"
#include "core/ids.h"
#include "decode/json_type.h"

namespace tp::config {
namespace {

using decode::AddMismatch;
using decode::At;
using decode::Boolean;
using decode::ByteSize;
using decode::Choice;
using decode::DurationBetween;
using decode::Key;
using decode::ListOf;
using decode::Name;
using decode::Optional;
using decode::Problems;
using decode::Record;
using decode::RequiredKey;
using decode::Schema;
using decode::SmallInteger;
using decode::Text;
using decode::Type;
using decode::YamlValue;

constexpr absl::Duration kShortest = absl::Milliseconds(100);
constexpr absl::Duration kDay = absl::Hours(24);
constexpr absl::Duration kYear = absl::Hours(24 * 365);

// --- Scalars of this file -------------------------------------------------------------------------

// `host:port`, IPv6 addresses in brackets.
std::optional<ListenAddress> ParseListenAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;
  }
  ListenAddress address;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  const bool whole = error == std::errc{} && end == port.data() + port.size();
  if (!whole || host.empty() || address.port < 0 || address.port > 65535) return std::nullopt;
  address.host = std::string(host);
  return address;
}

Type<ListenAddress> ListenType() {
  Type<ListenAddress> type;
  type.words = "host:port on the loopback interface";
  type.schema = {{"type", "string"}, {"pattern", "^.+:[0-9]{1,5}$"}};
  type.decode = [](const YamlValue& value, Problems& problems, ListenAddress& out) {
    const bool scalar = value.kind == YamlValue::Kind::kScalar;
    const std::optional<ListenAddress> address = scalar ? ParseListenAddress(value.text) : std::nullopt;
    if (!address) {
      AddMismatch(value, "an address and a port such as 127.0.0.1:7411", problems);
      return false;
    }
    if (!IsLoopback(address->host)) {
      problems.Add(value.at,
                   fmt::format("{} is not on the loopback interface: without TLS anybody on the network could "
                               "read tokens and run jobs; listen on 127.0.0.1 and reach it through ssh -L",
                               Quoted(address->host)));
      return false;
    }
    out = *address;
    return true;
  };
  type.text = [](const ListenAddress& address) { return address.text(); };
  return type;
}

Type<std::string> DeploymentType() {
  const auto check = [](const std::string& name) -> std::optional<std::string> {
    const absl::Status status = core::CheckDeploymentName(name);
    if (status.ok()) return std::nullopt;
    return std::string(Message(status));
  };
  return Text("a letter and up to nine of [a-z0-9]", check, "^[a-z][a-z0-9]{0,9}$");
}

bool DecodeCardIds(const Type<std::vector<int>>& ids, const YamlValue& value, Problems& problems,
                   std::vector<int>& out) {
  bool good = ids.decode(value, problems, out);
  for (size_t i = 0; good && i < out.size(); ++i) {
    if (std::count(out.begin(), out.end(), out[i]) == 1) continue;
    problems.Add(value.items[i].at, fmt::format("card {} is here twice", out[i]));
    good = false;
  }
  return good;
}

Type<DockerCards> DockerCardsType() {
  Type<DockerCards> type;
  Type<std::vector<int>> ids = ListOf(SmallInteger(0, 63), "list of card indices");
  ids.schema["uniqueItems"] = true;
  type.words = "all, none, or a list of card indices";
  type.schema = {{"anyOf", {Schema{{"enum", {"all", "none"}}}, ids.schema}}};
  type.decode = [words = type.words, ids](const YamlValue& value, Problems& problems, DockerCards& out) {
    if (value.kind == YamlValue::Kind::kList) {
      out.kind = DockerCards::Kind::kList;
      return DecodeCardIds(ids, value, problems, out.ids);
    }
    if (value.kind == YamlValue::Kind::kScalar && (value.text == "all" || value.text == "none")) {
      out.kind = value.text == "all" ? DockerCards::Kind::kAll : DockerCards::Kind::kNone;
      return true;
    }
    AddMismatch(value, words, problems);
    return false;
  };
  type.text = [](const DockerCards&) { return std::string("all"); };
  return type;
}

Type<std::string> BackendNameType() {
  std::vector<std::pair<std::string, std::string>> choices;
  for (const std::string& name : BackendNames()) choices.emplace_back(name, name);
  return Choice(choices);
}

// --- Sections -------------------------------------------------------------------------------------

Type<ServerFile::Server> ServerType() {
  using Server = ServerFile::Server;
  return Record<Server>(
      "server", {Key("listen", &Server::listen, ListenType(), "Where the API listens. Port 0 takes any free one."),
                 Key("deployment", &Server::deployment, DeploymentType(),
                     "Name of this deployment; part of every engine object's key. Never change it while jobs run.")});
}

Type<ServerFile::Storage> StorageType() {
  using Storage = ServerFile::Storage;
  return Record<Storage>(
      "storage", {Key("root", &Storage::root, AbsolutePath(),
                      "Where runs keep output, results and records. Default: `runs` in tpd's data directory.")});
}

Type<ServerFile::Snapshots> SnapshotsType() {
  using Snapshots = ServerFile::Snapshots;
  constexpr int64_t kLargest = int64_t{1} << 50;
  return Record<Snapshots>("snapshots", {Key("max_size", &Snapshots::max_size, ByteSize(1 << 20, kLargest),
                                             "Largest working directory that can be submitted."),
                                         Key("max_user_size", &Snapshots::max_user_size, ByteSize(1 << 20, kLargest),
                                             "What all snapshots of one user may come to.")});
}

Type<core::Policy> PolicyType() {
  using core::Policy;
  const auto grace = DurationBetween(absl::ZeroDuration(), kDay);
  const auto repeat = DurationBetween(kShortest, absl::Hours(1));
  const auto budget = SmallInteger(0, 1000);
  std::vector<decode::Field<Policy>> keys = {
      Key("stop_grace", &Policy::stop_grace, grace, "Between TERM and KILL."),
      Key("pause_grace", &Policy::pause_grace, grace, "Between a pause's warning and TERM: time for a checkpoint."),
      Key("start_timeout", &Policy::start_timeout, DurationBetween(absl::Seconds(1), kYear),
          "From cards granted to all ranks up; then the attempt fails (start_timeout)."),
      Key("user_retries", &Policy::user_retries, budget, "Automatic retries after a job's own failure (user_exit)."),
      Key("infrastructure_retries", &Policy::infrastructure_retries, budget,
          "Automatic retries after a failure that was not the job's: node_lost, preempted, evicted, gpu_lost, "
          "storage, lost."),
      Key("retry_cooldown", &Policy::retry_cooldown, grace, "Pause before an automatic retry."),
      Key("idle_after", &Policy::idle_after, DurationBetween(absl::ZeroDuration(), absl::Hours(24 * 30)),
          "A job whose cards all compute nothing for so long is shown so, and those who asked are told; nothing is "
          "ended. 0s: never."),
      Key("relaunch_backoff", &Policy::relaunch_backoff, repeat,
          "Delay before a launch that never ran is tried again; doubles each time."),
      Key("relaunch_backoff_max", &Policy::relaunch_backoff_max, DurationBetween(kShortest, kDay), "What it grows to."),
      Key("kill_repeat", &Policy::kill_repeat, repeat, "How often KILL is repeated until a tree is gone."),
      Key("fence_repeat", &Policy::fence_repeat, repeat, "How often a fence that failed is tried again."),
      Key("absent_grace", &Policy::absent_grace, repeat, "Between the sightings that make an absence certain."),
      Key("absent_confirmations", &Policy::absent_confirmations, SmallInteger(2, 100), "How many of them."),
  };
  for (decode::Field<Policy>& key : OrderKeys()) keys.push_back(std::move(key));
  return Record<Policy>("scheduling", std::move(keys));
}

Type<ServerFile::Accounting> AccountingType() {
  using Accounting = ServerFile::Accounting;
  return Record<Accounting>("accounting", {Key("timezone", &Accounting::timezone, TimeZone(),
                                               "Zone whose months GPU-hours are counted by.")});
}

Type<ServerFile::Platform> PlatformType() {
  using Platform = ServerFile::Platform;
  using Docker = ServerFile::Docker;
  return Record<Platform>(
      "platform",
      {Key("default_backend", &Platform::default_backend, Optional(BackendNameType()),
           "Backend of the executors cpu/default and gpu/default where `jobs.executors` does not define them. "
           "Default: kubernetes_job inside a cluster, else local."),
       Key("docker", &Platform::docker,
           Record<Docker>("platform.docker", {Key("reserved_gpu_device_ids", &Docker::reserved_gpu_device_ids,
                                                  DockerCardsType(), "Cards that the docker backend may use.")}),
           "The machine that the docker backend runs on.")});
}

// An executor before its backend says what its `config` is.
struct RawExecutor {
  std::string provider;
  std::string profile;
  std::string backend;
  std::optional<YamlValue> config;
};

Type<RawExecutor> RawExecutorType() {
  const auto provider = Choice<std::string>({{"cpu", "cpu"}, {"gpu", "gpu"}, {"gpu_distributed", "gpu_distributed"}});
  const auto config = decode::Raw("the backend's keys, see `executor_defaults`", {{"type", "object"}});
  return Record<RawExecutor>(
      "an executor",
      {RequiredKey("provider", &RawExecutor::provider, provider, "What kind of jobs it runs."),
       RequiredKey("profile", &RawExecutor::profile, Name("name"), "Its name; a series points at `provider/profile`."),
       RequiredKey("backend", &RawExecutor::backend, BackendNameType(), "The engine."),
       Key("config", &RawExecutor::config, Optional(config),
           "Over `executor_defaults` of the backend: mappings merge, lists replace.")});
}

// For each backend: where an executor names it, its config has the backend's keys.
Schema ConfigsByBackend() {
  Schema rules = Schema::array();
  for (const std::string& backend : BackendNames()) {
    const Schema named = {{"properties", {{"backend", {{"const", backend}}}}},
                          {"required", Schema::array({"backend"})}};
    rules.push_back({{"if", named}, {"then", {{"properties", {{"config", BackendConfigType(backend).schema}}}}}});
  }
  return rules;
}

Type<ExecutorEntry> ExecutorType() {
  const Type<RawExecutor> raw_type = RawExecutorType();
  Type<ExecutorEntry> type;
  type.words = raw_type.words;
  type.record = raw_type.record;
  type.schema = raw_type.schema;
  type.schema["allOf"] = ConfigsByBackend();
  type.decode = [raw_type](const YamlValue& value, Problems& problems, ExecutorEntry& out) {
    RawExecutor raw;
    bool good = raw_type.decode(value, problems, raw);
    if (raw.config && !raw.backend.empty()) {
      good = BackendConfigType(raw.backend).decode(*raw.config, problems, out.config) && good;
    }
    out.provider = std::move(raw.provider);
    out.profile = std::move(raw.profile);
    out.backend = std::move(raw.backend);
    return good;
  };
  return type;
}

Type<ServerFile::Jobs> JobsType() {
  using Jobs = ServerFile::Jobs;
  return Record<Jobs>("jobs", {Key("executors", &Jobs::executors, ListOf(At(ExecutorType()), "list of executors"),
                                   "cpu/default and gpu/default exist in any case."),
                               Key("executor_defaults", &Jobs::executor_defaults, ExecutorDefaultsType(),
                                   "What every executor of a backend starts from."),
                               Key("log_max_size", &Jobs::log_max_size, ByteSize(int64_t{1} << 16, int64_t{1} << 44),
                                   "Cap of one rank's log; the oldest part goes first."),
                               Key("heartbeat", &Jobs::heartbeat, DurationBetween(kShortest, absl::Minutes(5)),
                                   "How often a rank gives a sign of life.")});
}

Type<ServerFile> MakeServerFileType() {
  return Record<ServerFile>(
      "tpd.yaml", {Key("server", &ServerFile::server, ServerType(), "The daemon itself."),
                   Key("storage", &ServerFile::storage, StorageType(), "Where things are kept."),
                   Key("snapshots", &ServerFile::snapshots, At(SnapshotsType()), "Limits of what is uploaded."),
                   Key("scheduling", &ServerFile::scheduling, At(PolicyType()), "Graces, retries, patience, order."),
                   Key("quotas", &ServerFile::quotas, QuotaType(),
                       "What each user may hold; over it, jobs wait. `tp admin quota` says otherwise for one of them."),
                   Key("notify", &ServerFile::notify, ReceiversType(),
                       "Who can be told what becomes of runs. Users choose among these."),
                   Key("accounting", &ServerFile::accounting, AccountingType(), "How usage is counted."),
                   Key("platform", &ServerFile::platform, PlatformType(), "The control plane."),
                   Key("backends", &ServerFile::backends, EnginesType(), "How the engines are reached."),
                   Key("jobs", &ServerFile::jobs, JobsType(), "How jobs are run.")});
}

std::string WithoutTrailingSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

std::string ListenAddress::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

const Type<ServerFile>& ServerFileType() {
  static const Type<ServerFile> type = MakeServerFileType();
  return type;
}

ServerConfig BuildServerConfig(const ServerFile& file, bool in_kubernetes, Problems& problems) {
  ServerConfig config;
  config.listen = file.server.listen;
  config.deployment = file.server.deployment;
  config.storage_root = WithoutTrailingSlashes(file.storage.root);
  config.snapshots = {.max_bytes = file.snapshots.value.max_size, .max_user_bytes = file.snapshots.value.max_user_size};
  config.policy = file.scheduling.value;
  config.log_max_bytes = file.jobs.log_max_size;
  config.heartbeat = file.jobs.heartbeat;
  config.accounting_zone = file.accounting.timezone;
  config.default_backend = file.platform.default_backend.value_or(in_kubernetes ? "kubernetes_job" : "local");
  config.docker_cards = file.platform.docker.reserved_gpu_device_ids;
  config.engines = file.backends.value;
  CheckEngines(file.backends, problems);
  if (config.snapshots.max_bytes > config.snapshots.max_user_bytes) {
    problems.Add(file.snapshots.at, "max_size is larger than max_user_size: nobody could submit so much");
  }
  if (config.policy.relaunch_backoff > config.policy.relaunch_backoff_max) {
    problems.Add(file.scheduling.at, fmt::format("relaunch_backoff ({}) is longer than relaunch_backoff_max ({})",
                                                 DurationText(config.policy.relaunch_backoff),
                                                 DurationText(config.policy.relaunch_backoff_max)));
  }
  return config;
}

}  // namespace tp::config
