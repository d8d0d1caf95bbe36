// The real `tp` against a server inside the test.
#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/time.h"
#include "fake_server.h"
#include "program.h"
#include "temp_dir.h"

namespace tp::cli {

class CommandTest : public testing::Test {
 protected:
  CommandTest();

  // `arguments` without the program's name.
  Finished Tp(const std::vector<std::string>& arguments);
  std::unique_ptr<Program> Start(const std::vector<std::string>& arguments);

  FakeServer server_;
  TempDir data_;     // tpd's data directory, with client.json
  TempDir project_;  // where tp runs
  ProgramOptions options_;
};

// A run of one step, created so long ago.
v1::Run MakeRun(int64_t n, const std::string& name, v1::RunState state, absl::Duration age = absl::Hours(3));

// `text` with every RFC 3339 time replaced by TIME.
std::string WithoutTimes(const std::string& text);

}  // namespace tp::cli
