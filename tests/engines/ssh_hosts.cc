#include "tests/engines/ssh_hosts.h"

#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "base/subprocess.h"

namespace tp::testing {
namespace {

constexpr int kTaken = 4;
constexpr int kFirstId = 64;
constexpr int kLastId = 127;
constexpr absl::Duration kLimit = absl::Seconds(60);

absl::StatusOr<CommandResult> Call(int id, const std::vector<std::string>& words) {
  Command command{.argv = {TP_TEST_SSH_HOSTS},
                  .env = {"LC_ALL=C", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                          fmt::format("TP_HOSTS_ID={}", id), fmt::format("TP_HOSTS_OWNER={}", getpid())},
                  .stdin_bytes = {}};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  return RunCommand(command, absl::Now() + kLimit);
}

}  // namespace

SshHosts::SshHosts(int count) : count_(count) {
  // Two test programs at once have different instances.
  for (id_ = kFirstId; id_ <= kLastId && !up_; ++id_) {
    const auto result = Call(id_, {"up", std::to_string(count)});
    if (result.ok() && result->exit_code == kTaken) continue;
    up_ = result.ok() && result->exit_code == 0;
    if (!up_) {
      ADD_FAILURE() << "no sshd hosts: " << (result.ok() ? result->err : result.status().ToString());
      return;
    }
    break;
  }
  if (!up_) ADD_FAILURE() << "no sshd hosts: every instance is taken";
}

SshHosts::~SshHosts() {
  if (up_) Call(id_, {"down"}).status().IgnoreError();
}

std::string SshHosts::Node(int host) const { return fmt::format("node{}", host); }
std::string SshHosts::Address(int host) const { return fmt::format("10.214.{}.{}", id_, 10 + host); }
std::string SshHosts::directory() const { return fmt::format("/tmp/tp-hosts-{}", id_); }

void SshHosts::Do(const std::vector<std::string>& words) const {
  const auto result = Call(id_, words);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->exit_code, 0) << words[0] << ": " << result->err;
}

std::string SshHosts::Exec(int host, const std::vector<std::string>& words) const {
  std::vector<std::string> command = {"exec", std::to_string(host)};
  command.insert(command.end(), words.begin(), words.end());
  const auto result = Call(id_, command);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->out : "";
}

}  // namespace tp::testing
