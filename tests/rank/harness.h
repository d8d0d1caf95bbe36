// What the tests of tp-rank share: an attempt directory, runners of three kinds, records.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tp::rank_test {

using Arguments = std::vector<std::string>;

enum class RunnerKind { kBinary, kDash, kBusybox };
std::string Name(RunnerKind kind);

// Exit codes of the contract.
inline constexpr int kTreeNotGone = 1, kProcessGone = 3, kNoRecord = 4, kOtherHost = 5, kRunnerAlive = 6, kUsage = 64,
                     kStorage = 75, kNotOwner = 76;

// Polls until the condition holds; false after a deadline that only a broken program meets.
bool Eventually(const std::function<bool()>& condition, std::chrono::seconds deadline = std::chrono::seconds(60));

std::string ReadFile(const std::filesystem::path& path);
void WriteFile(const std::filesystem::path& path, std::string_view content);

// A record's names and values; none when the file is absent or torn.
using Record = std::map<std::string, std::string>;
std::optional<Record> ReadRecord(const std::filesystem::path& path);

bool IsRunning(pid_t pid);

// A child process of the test. Killed when it goes out of scope.
class Child {
 public:
  struct Options {
    std::function<void()> before_exec;  // in the child
    std::string stdin_content;
    std::optional<Arguments> environment;
  };
  explicit Child(const Arguments& arguments) : Child(arguments, Options{}) {}
  Child(const Arguments& arguments, const Options& options);
  Child(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child& operator=(Child&&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  void Signal(int number) const;
  // The exit code, or 1000 + signal for a child that was killed.
  int Wait();
  bool HasEnded();

 private:
  pid_t pid_ = -1;
  std::optional<int> result_;
};

// Runs to the end; for programs that take no time.
int RunProgram(const Arguments& arguments);

// A directory of its own per test, removed at the end, with an attempt in it. Its key is unique, so
// that tests that run at once do not find one another's processes.
class Attempt {
 public:
  Attempt();
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  std::filesystem::path dir() const { return dir_; }
  const std::string& key() const { return key_; }
  std::filesystem::path work() const { return dir_ / "work"; }
  std::filesystem::path File(std::string_view suffix, int rank = 0) const;

  Record Started(int rank = 0) const;  // waits for it
  Record Exit(int rank = 0) const;     // fails the test when absent

  struct RunOptions {
    int rank = 0;
    std::string nonce = "nonce-1";
    Arguments extra;
  };
  // The words after the program's name.
  Arguments RunWords(const Arguments& job, const RunOptions& options) const;

  Child Start(RunnerKind kind, const Arguments& job, const RunOptions& options, const Child::Options& child = {}) const;
  Child Start(RunnerKind kind, const Arguments& job) const { return Start(kind, job, RunOptions{}); }

  // A subcommand that takes DIR POOL RANK, followed by more words.
  Arguments Command(RunnerKind kind, const Arguments& before, const Arguments& after = {}) const;
  int Order(RunnerKind kind, std::string_view order) const;

  // Files the job makes in its working directory to say how far it is.
  bool WaitForMark(std::string_view name) const;
  bool HasMark(std::string_view name) const;

 private:
  std::filesystem::path dir_;
  std::string key_;
};

// Program and first arguments of a kind of runner. The stand-in is taken from where no binary is.
Arguments Program(RunnerKind kind);

Arguments Shell(std::string_view script);

class AttemptTest : public testing::Test {
 protected:
  Attempt attempt_;
};

class RankTest : public AttemptTest, public testing::WithParamInterface<RunnerKind> {
 protected:
  bool is_binary() const { return GetParam() == RunnerKind::kBinary; }
};

#define TP_RANK_FOR_EVERY_KIND(suite)                                                                                \
  INSTANTIATE_TEST_SUITE_P(Kinds, suite,                                                                             \
                           testing::Values(::tp::rank_test::RunnerKind::kBinary, ::tp::rank_test::RunnerKind::kDash, \
                                           ::tp::rank_test::RunnerKind::kBusybox),                                   \
                           [](const testing::TestParamInfo<::tp::rank_test::RunnerKind>& info_of_test) {             \
                             return ::tp::rank_test::Name(info_of_test.param);                                       \
                           })

}  // namespace tp::rank_test
