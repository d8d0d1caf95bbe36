// tpd: wiring of the command line.
#include <pthread.h>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>

#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include "base/status.h"
#include "tpd/config_commands.h"
#include "tpd/daemon.h"
#include "tpd/data_dir.h"
#include "tpd/faults.h"
#include "tpd/fsck.h"
#include "tpd/logging.h"

namespace tp::tpd {
namespace {

constexpr char kVersion[] = TP_VERSION;

struct ServeArguments {
  std::string data;
  std::string config;
  std::string log_format = "text";
  std::string log_level = "info";
};

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "tpd: %s\n", std::string(Message(status)).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

// The signals that the main thread takes one by one. Blocked before there is any other thread;
// programs that tpd starts get a clean mask.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

// tp-rank lies beside tpd.
std::string RankBinary() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "tp-rank").string();
}

absl::StatusOr<DaemonOptions> OptionsOf(const ServeArguments& arguments) {
  DaemonOptions options;
  std::string data = arguments.data;
  if (data.empty()) {
    TP_ASSIGN_OR_RETURN(data, DefaultDataDirectory());
  }
  TP_ASSIGN_OR_RETURN(options.data_directory, PrepareDirectory(data));
  options.config_directory = arguments.config;
  options.rank_binary = RankBinary();
  options.version = kVersion;
  TP_RETURN_IF_ERROR(ArmFaults(options));
  return options;
}

// Until SIGTERM or SIGINT; SIGHUP reads the configuration again.
void RunUntilSignalled(Daemon& daemon, const sigset_t& signals) {
  constexpr timespec kTick = {.tv_sec = 1, .tv_nsec = 0};
  for (;;) {
    const int signal = sigtimedwait(&signals, nullptr, &kTick);
    if (signal == SIGHUP) {
      daemon.Reload();
    } else if (signal > 0) {
      spdlog::info("{}: tpd ends, jobs go on", signal == SIGTERM ? "SIGTERM" : "SIGINT");
      return;
    }
    daemon.CheckHealth();
  }
}

int Serve(const ServeArguments& arguments) {
  if (auto status = CheckLogLevel(arguments.log_level); !status.ok()) return Fail(status);
  const sigset_t signals = BlockSignals();
  StartLogging(arguments.log_format == "json" ? LogFormat::kJson : LogFormat::kText, arguments.log_level);
  auto options = OptionsOf(arguments);
  absl::Status status = options.status();
  if (status.ok()) {
    spdlog::info("tpd {} starts, data in {}", kVersion, options->data_directory);
    auto daemon = Daemon::Start(*std::move(options));
    status = daemon.status();
    if (status.ok()) {
      spdlog::info("serving on {}", (*daemon)->address());
      RunUntilSignalled(**daemon, signals);
    }
  }
  StopLogging();
  return status.ok() ? 0 : Fail(status);
}

int Fsck(const std::string& data_argument) {
  std::string data = data_argument;
  if (data.empty()) {
    auto found = DefaultDataDirectory();
    if (!found.ok()) return Fail(found.status());
    data = *std::move(found);
  }
  const auto checked = CheckDatabase(data);
  if (!checked.ok()) return Fail(checked.status());
  std::printf("%s\n", checked->c_str());
  return 0;
}

// 2 for every way in which files cannot be used; problems stand alone on their lines.
int EndOfFiles(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(Message(status)).c_str());
  return status.ok() ? 0 : 2;
}

int Main(int argc, char** argv) {
  CLI::App app{"tpd runs the jobs of research teams on shared GPU clusters."};
  app.require_subcommand(1);
  ServeArguments serve;
  constexpr char kDataHelp[] = "Directory of tpd's own files [$TP_DATA_DIR, else /var/lib/tp or ~/.local/share/tp]";
  CLI::App* serve_command = app.add_subcommand("serve", "Run until SIGTERM; SIGHUP reads the configuration again");
  serve_command->add_option("--data", serve.data, kDataHelp);
  serve_command->add_option("--config", serve.config, "Directory of tpd.yaml and registry.yaml [built-in ones]");
  serve_command->add_option("--log-format", serve.log_format, "text or json")->check(CLI::IsMember({"text", "json"}));
  serve_command->add_option("--log-level", serve.log_level, "trace, debug, info, warning or error");
  CLI::App* fsck_command = app.add_subcommand("fsck", "Check that what is stored agrees with itself; changes nothing");
  fsck_command->add_option("--data", serve.data, kDataHelp);
  CLI::App* check_command =
      app.add_subcommand("check-config", "Check tpd.yaml and registry.yaml; exit 2 with each problem");
  check_command->add_option("--config", serve.config, "Directory of tpd.yaml and registry.yaml [built-in ones]");
  std::string schema_kind;
  CLI::App* schema_command = app.add_subcommand("schema", "Print the JSON Schema of a configuration file");
  schema_command->add_option("FILE", schema_kind, "server (tpd.yaml) or registry (registry.yaml)")
      ->required()
      ->check(CLI::IsMember({"server", "registry"}));
  std::string scenario;
  std::string format = "text";
  CLI::App* simulate_command = app.add_subcommand(
      "simulate", "Replay a workload under one or more policies, and compare them; docs/simulate.md");
  simulate_command->add_option("SCENARIO", scenario, "YAML file: hardware, workload, policies")->required();
  simulate_command->add_option("-o,--output", format, "text or json")->check(CLI::IsMember({"text", "json"}));
  CLI::App* version_command = app.add_subcommand("version", "Print the version");
  AddFaultPointsCommand(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (version_command->parsed()) {
    std::printf("tpd %s\n", kVersion);
    return 0;
  }
  if (check_command->parsed()) return EndOfFiles(CheckConfig(serve.config));
  if (simulate_command->parsed()) return EndOfFiles(PrintSimulation(scenario, format));
  if (schema_command->parsed()) {
    PrintSchema(schema_kind);
    return 0;
  }
  return fsck_command->parsed() ? Fsck(serve.data) : Serve(serve);
}

}  // namespace
}  // namespace tp::tpd

int main(int argc, char** argv) { return tp::tpd::Main(argc, argv); }
