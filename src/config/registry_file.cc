#include "config/registry_file.h"

#include "base/status.h"
#include "config/open_hours.h"
#include "config/scalar_types.h"
#include "core/resource.h"
#include "decode/text_or_list.h"

namespace tp::config {
namespace {

using decode::AddMismatch;
using decode::At;
using decode::Boolean;
using decode::ByteSize;
using decode::Choice;
using decode::DurationBetween;
using decode::Integer;
using decode::Key;
using decode::ListOf;
using decode::MapOf;
using decode::Name;
using decode::Optional;
using decode::Problems;
using decode::Raw;
using decode::Record;
using decode::RequiredKey;
using decode::Scalar;
using decode::Schema;
using decode::SmallInteger;
using decode::Text;
using decode::Type;
using decode::YamlValue;

// A variable and its value; both are checked here, as its name alone says little.
Type<EnvEntries> EnvType() {
  const auto pairs = MapOf(Scalar("name"), Scalar("text"), "mapping of variables");
  Type<EnvEntries> type;
  type.words = pairs.words;
  type.schema = pairs.schema;
  type.schema["propertyNames"] = {{"pattern", "^[A-Za-z_][A-Za-z0-9_]*$"},
                                  {"not", {{"pattern", "^(TP_.*|CUDA_VISIBLE_DEVICES|CUDA_DEVICE_ORDER)$"}}}};
  type.decode = [pairs](const YamlValue& value, Problems& problems, EnvEntries& out) {
    bool good = pairs.decode(value, problems, out);
    for (const auto& entry : out) {
      const absl::Status status = core::CheckVariable(entry.key, entry.value);
      if (status.ok()) continue;
      problems.Add(entry.at, std::string(Message(status)));
      good = false;
    }
    return good;
  };
  return type;
}

std::optional<std::string> WrongAddress(const std::string& address) {
  const bool plain = !address.empty() && address.size() <= 253 &&
                     address.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_") ==
                         std::string::npos;
  if (plain) return std::nullopt;
  return fmt::format("{} is no host name or address", Quoted(address));
}

Type<std::string> AddressType() { return Text("host name or address", WrongAddress, "^[A-Za-z0-9.:_-]{1,253}$"); }

// `node-1`, or {name: node-1, address: 10.0.0.1}.
Type<NodeEntry> NodeType() {
  const auto name = At(Name("name"));
  const auto record = Record<NodeEntry>(
      "a node", {RequiredKey("name", &NodeEntry::name, name, "Its name."),
                 Key("address", &NodeEntry::address, AddressType(), "How other ranks reach it. Default: its name.")});
  Type<NodeEntry> type;
  type.words = "a node";
  type.record = record.record;
  type.schema = {{"anyOf", {name.schema, record.schema}}};
  type.decode = [name, record](const YamlValue& value, Problems& problems, NodeEntry& out) {
    if (value.kind == YamlValue::Kind::kScalar) return name.decode(value, problems, out.name);
    if (value.kind == YamlValue::Kind::kMap) return record.decode(value, problems, out);
    AddMismatch(value, "a node: its name, or a mapping with name and address", problems);
    return false;
  };
  return type;
}

Type<OverrideEntries> OverridesType() {
  return MapOf(Name("framework"), Raw("overrides", {{"type", "object"}}), "mapping of framework to its overrides");
}

// A size, or `unlimited`.
Type<int64_t> MemlockType(const Type<int64_t>& size) {
  Type<int64_t> type;
  type.words = fmt::format("{}, or unlimited", size.words);
  type.schema = {{"anyOf", {size.schema, Schema{{"const", "unlimited"}}}}};
  type.decode = [size, words = type.words](const YamlValue& value, Problems& problems, int64_t& out) {
    if (value.kind == YamlValue::Kind::kScalar && value.text == "unlimited") {
      out = kUnlimited;
      return true;
    }
    Problems wrong_size("");
    if (size.decode(value, wrong_size, out)) return true;
    AddMismatch(value, fmt::format("a {}", words), problems);
    return false;
  };
  return type;
}

Type<RankLimits> PerCardType() {
  const Type<int64_t> size = ByteSize(int64_t{1} << 20, int64_t{1} << 50);
  return Record<RankLimits>(
      "per_card", {Key("cpus", &RankLimits::cpus, Optional(SmallInteger(1, 4096)), "Processor cores."),
                   Key("memory", &RankLimits::memory_bytes, Optional(size), "Main memory."),
                   Key("shm", &RankLimits::shm_bytes, Optional(size), "Shared memory (/dev/shm), part of `memory`."),
                   Key("memlock", &RankLimits::memlock_bytes, Optional(MemlockType(size)),
                       "Memory that may be locked, as RDMA needs.")});
}

}  // namespace

Type<WindowEntry> WindowType() {
  const auto grace = DurationBetween(absl::ZeroDuration(), absl::Hours(24));
  return Record<WindowEntry>(
      "a window",
      {Key("timezone", &WindowEntry::timezone, TimeZone(), "Zone of its times."),
       RequiredKey("open", &WindowEntry::open, OpenHours(),
                   "By day: monday to sunday, weekdays, weekend or daily. `22:00-07:00` ends on the next day."),
       Key("profiles", &WindowEntry::profiles, ListOf(At(Name("name")), "list of profiles"),
           "Only for jobs of these profiles. Default: all of the series."),
       Key("grace", &WindowEntry::grace, grace, "Between the warning and TERM when it closes."),
       Key("min_remaining", &WindowEntry::min_remaining, DurationBetween(absl::ZeroDuration(), absl::Hours(24 * 7)),
           "A job whose time limit fits no window starts only with this much time left.")});
}

namespace {

Type<decode::Entries<std::string, std::string>> LabelsType() {
  return MapOf(Scalar("label"), Text("text"), "mapping of text");
}

Type<SeriesEntry> SeriesType() {
  const auto executor = Optional(At(Text("provider/profile of an executor", nullptr, "^[^/]+/[^/]+$")));
  return Record<SeriesEntry>(
      "a series",
      {Key("description", &SeriesEntry::description, Text("text"), "For people."),
       RequiredKey("gpus_per_node", &SeriesEntry::gpus_per_node, SmallInteger(0, 64),
                   "Cards of a node. 0: a cpu series, whose totals count nodes."),
       Key("nodes", &SeriesEntry::nodes, ListOf(NodeType(), "list of nodes, each a name or a mapping"),
           "Its nodes, where tpd places jobs on them (local, node, docker)."),
       Key("virtual_cards", &SeriesEntry::virtual_cards, Boolean(),
           "The cards are declared and not looked for: to try things without accelerators."),
       Key("executor", &SeriesEntry::executor, executor,
           "What runs its jobs. Default: gpu/default, on a cpu series cpu/default."),
       Key("executor_distributed", &SeriesEntry::executor_distributed, executor,
           "The same for jobs of several nodes or pools. Default: `executor`."),
       Key("env", &SeriesEntry::env, EnvType(), "Environment of its jobs, such as NCCL's."),
       Key("locked_env", &SeriesEntry::locked_env, EnvType(), "Environment that no one overrides, not even --env."),
       Key("per_card", &SeriesEntry::per_card, At(PerCardType()),
           "What a job gets with each card, on a cpu series with each node. Default: what the engine gives."),
       Key("constraint", &SeriesEntry::constraint, Text("text"),
           "sbatch --constraint; slurm refuses a series without."),
       Key("node_selector", &SeriesEntry::node_selector, LabelsType(),
           "Labels of its nodes in kubernetes; over the executor's `node_selector`."),
       Key("windows", &SeriesEntry::windows, ListOf(WindowType(), "list of windows"),
           "When its jobs may run. Default: at any time.")});
}

Type<ShapeEntry> ShapeType() {
  return Record<ShapeEntry>("a shape",
                            {Key("env", &ShapeEntry::env, EnvType(), "Over the profile's."),
                             Key("overrides", &ShapeEntry::overrides, OverridesType(), "Over the profile's.")});
}

Type<ProfileEntry> ProfileType() {
  const auto total = Integer(1, 1'000'000);
  return Record<ProfileEntry>(
      "a profile", {RequiredKey("series", &ProfileEntry::series, At(Name("name")), "The series it is a preset of."),
                    Key("description", &ProfileEntry::description, Text("text"), "For people."),
                    Key("default_shape", &ProfileEntry::default_shape, At(total),
                        "Total that `--profile name` without one means: cards, on a cpu series nodes."),
                    Key("env", &ProfileEntry::env, EnvType(), "Environment, over the series'."),
                    Key("overrides", &ProfileEntry::overrides, OverridesType(),
                        "By framework: reaches jobs as $TP_OVERRIDES_FILE and TP_OVERRIDES_<FRAMEWORK>."),
                    Key("shapes", &ProfileEntry::shapes, MapOf(total, ShapeType(), "mapping of total to a shape"),
                        "What differs for a total: env and overrides merge over the profile's.")});
}

Type<RecipeEntry> RecipeType() {
  const auto limit = DurationBetween(absl::Seconds(1), absl::Hours(24 * 3650));
  return Record<RecipeEntry>(
      "a recipe",
      {Key("description", &RecipeEntry::description, Text("text"), "For people."),
       RequiredKey("command", &RecipeEntry::command, decode::Command(), "What it runs, in the run's own snapshot."),
       Key("profile", &RecipeEntry::profiles, At(decode::ProfileFlags()), "Its hardware. Default: the cpu executor."),
       Key("image", &RecipeEntry::image, Text("text"), "Its container image. Default: the run's."),
       Key("env", &RecipeEntry::env, EnvType(), "Environment; what the user's tp.yaml says wins."),
       Key("time_limit", &RecipeEntry::time_limit, Optional(limit), "Its most running time. Default: none.")});
}

Type<RegistryFile> MakeRegistryFileType() {
  const auto style = Choice<core::OverrideStyle>({{"argparse", core::OverrideStyle::kArgparse},
                                                  {"hydra", core::OverrideStyle::kHydra},
                                                  {"env", core::OverrideStyle::kEnv}});
  return Record<RegistryFile>(
      "registry.yaml",
      {Key("frameworks", &RegistryFile::frameworks, MapOf(Name("name"), style, "mapping of framework to its style"),
           "Style of TP_OVERRIDES_<FRAMEWORK>: argparse, hydra or env."),
       Key("series", &RegistryFile::series, MapOf(Name("name"), SeriesType(), "mapping of name to a series"),
           "Classes of accelerators."),
       Key("profiles", &RegistryFile::profiles, MapOf(Name("name"), ProfileType(), "mapping of name to a profile"),
           "What users name in --profile."),
       Key("recipes", &RegistryFile::recipes, MapOf(Name("name"), RecipeType(), "mapping of name to a recipe"),
           "Steps that every user may name in --then.")});
}

}  // namespace

const Type<RegistryFile>& RegistryFileType() {
  static const Type<RegistryFile> type = MakeRegistryFileType();
  return type;
}

}  // namespace tp::config
