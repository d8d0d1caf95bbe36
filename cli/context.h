// What every command gets: the global flags, the connection, and the two streams it talks on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/client.h"
#include "cli/exit_codes.h"
#include "cli/terminal.h"

namespace tp::cli {

enum class OutputFormat : uint8_t { kTable, kWide, kJson, kYaml, kName, kCsv };

struct Globals {
  ServerFlags server;
  OutputFormat output = OutputFormat::kTable;
  bool no_color = false;
  bool quiet = false;
};

class Context;
using Action = std::function<absl::StatusOr<ExitCode>(Context&)>;

class Context {
 public:
  Globals globals;
  // What stood behind `--`: the job's command.
  std::vector<std::string> command;
  bool has_command = false;
  // The chosen command's, set while the arguments are parsed.
  Action action;

  // Connects on first use.
  absl::StatusOr<Client*> Connect(absl::Duration patience = kConnectPatience);

  // Of stdout.
  Terminal terminal() const;

  // To stdout, as it is: the caller has escaped what others wrote.
  void Print(std::string_view text) const;
  // One sentence to stderr, escaped; nothing with -q.
  void Say(std::string_view sentence) const;
  // A question to stderr, escaped, also with -q.
  void Ask(std::string_view question) const;
  // An error to stderr, for people or, with -o json, for programs.
  void Report(const absl::Status& status) const;
  // What could not be written to stdout.
  absl::Status Flush() const;

 private:
  std::unique_ptr<Client> client_;
};

}  // namespace tp::cli
