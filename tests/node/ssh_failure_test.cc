#include "backends/node/ssh_failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tp::node {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Case {
  const char* name;
  const char* err;
  TransportKind kind;
  bool may_have_run;
};

std::string NameOfCase(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

class SshSays : public ::testing::TestWithParam<Case> {};

TEST_P(SshSays, IsUnderstood) {
  const TransportFailure failure = JudgeSsh(255, GetParam().err, false);
  EXPECT_EQ(failure.kind, GetParam().kind) << failure.why;
  EXPECT_EQ(failure.may_have_run, GetParam().may_have_run);
  EXPECT_FALSE(failure.why.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, SshSays,
    ::testing::Values(
        Case{"refused", "ssh: connect to host n port 22: Connection refused\r\n", TransportKind::kRefused, false},
        Case{"connect_timeout", "ssh: connect to host n port 22: Connection timed out\r\n", TransportKind::kTimeout,
             false},
        Case{"frozen", "Connection timed out during banner exchange\r\n", TransportKind::kTimeout, false},
        Case{"session_timeout", "Timeout, server n not responding: timed out", TransportKind::kTimeout, true},
        Case{"no_route", "ssh: connect to host n port 22: No route to host\r\n", TransportKind::kUnreachable, false},
        Case{"no_name", "ssh: Could not resolve hostname n: Name or service not known\r\n", TransportKind::kUnknownName,
             false},
        Case{"key_unknown", "No ED25519 host key is known for n\r\nHost key verification failed.\r\n",
             TransportKind::kKeyUnknown, false},
        Case{"key_changed", "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\r\nHost key verification failed.\r\n",
             TransportKind::kKeyChanged, false},
        Case{"auth", "root@n: Permission denied (publickey).\r\n", TransportKind::kAuth, false},
        Case{"config", "/x: line 1: Bad configuration option: foo\r\n", TransportKind::kLocal, false},
        Case{"closed", "Connection closed by remote host\r\n", TransportKind::kLost, true},
        Case{"silent", "", TransportKind::kLost, true}),
    NameOfCase);

TEST(JudgeSsh, ABegunProgramMayHaveRunWhateverIsSaid) {
  const TransportFailure failure = JudgeSsh(255, "Connection refused", true);
  EXPECT_EQ(failure.kind, TransportKind::kLost);
  EXPECT_TRUE(failure.may_have_run);
}

// Only ssh's own exit code speaks of ssh.
TEST(JudgeSsh, WhatAProgramPrintsIsNotTakenForSsh) {
  const TransportFailure failure = JudgeSsh(1, "Permission denied", false);
  EXPECT_EQ(failure.kind, TransportKind::kLost);
  EXPECT_TRUE(failure.may_have_run);
}

TEST(JudgeSsh, HostileWordsStayOnOneLineAndShort) {
  const TransportFailure failure =
      JudgeSsh(255, std::string(5000, 'x') + "\n\x1b[31mred\x07" + std::string(5000, 'y'), false);
  EXPECT_LT(failure.why.size(), 250u);
  EXPECT_THAT(failure.why, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace tp::node
