// From a change of a run to what is sent, and to whom.
#include "notify/notification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sample.h"

namespace tp::notify {
namespace {

using core::NoticeEvent;
using core::RunWord;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const Sender kSender{.deployment = "lab", .instance = "0123456789abcdef"};

std::vector<std::string> WhoGets(const std::vector<Notification>& all) {
  std::vector<std::string> who;
  for (const Notification& one : all) who.push_back(one.receiver + (one.recipient.empty() ? "" : ":" + one.recipient));
  return who;
}

TEST(Notifications, GoToWhomTheOwnerAndTheAdminsNamed) {
  const Feeds feeds = {{"all", {NoticeEvent::kFailed, NoticeEvent::kStopped}}, {"chat", {}}};
  const auto wants = [&feeds](RunWord word) {
    return WhoGets(NotificationsOf(Change(7, word,
                                          {{"chat", {NoticeEvent::kFailed}},
                                           {"bob@x", {NoticeEvent::kFailed, NoticeEvent::kSucceeded}},
                                           {"eve@x", {NoticeEvent::kPaused}},
                                           {"chat", {NoticeEvent::kFailed}},
                                           {"all", {NoticeEvent::kFailed}}}),
                                   feeds, kSender));
  };
  EXPECT_THAT(wants(RunWord::kFailed), ElementsAre("all", "chat", "mail:bob@x")) << "each once";
  EXPECT_THAT(wants(RunWord::kPartial), ElementsAre("all", "chat", "mail:bob@x"));
  EXPECT_THAT(wants(RunWord::kSucceeded), ElementsAre("mail:bob@x"));
  EXPECT_THAT(wants(RunWord::kPaused), ElementsAre("mail:eve@x"));
  EXPECT_THAT(wants(RunWord::kStopped), ElementsAre("all"));
  EXPECT_THAT(wants(RunWord::kRunning), IsEmpty());
}

TEST(Notifications, OfAWebhookAreJson) {
  const auto all = NotificationsOf(Change(7, RunWord::kFailed, {{"chat", {NoticeEvent::kFailed}}}), {}, kSender);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].id, "msg_0123456789abcdef_7");
  EXPECT_EQ(all[0].run, 42);
  const nlohmann::json expected = {{"type", "run.failed"},
                                   {"timestamp", "2026-01-01T00:00:00.123Z"},
                                   {"data",
                                    {{"schema_version", 1},
                                     {"deployment", "lab"},
                                     {"run", "train-42"},
                                     {"name", "train"},
                                     {"owner", "ana"},
                                     {"project", "vision"},
                                     {"step", "main"},
                                     {"old_state", "RUNNING"},
                                     {"new_state", "FAILED"},
                                     {"reason", "rank 0 ended with exit 3"},
                                     {"retry_count", 1}}}};
  EXPECT_EQ(nlohmann::json::parse(all[0].body), expected);
}

TEST(Notifications, OfIdleCardsGoToWhoAskedForThem) {
  store::WordChange change =
      Change(7, RunWord::kRunning, {{"chat", {NoticeEvent::kIdle}}, {"bob@x.org", {NoticeEvent::kIdle}}});
  change.row.from = RunWord::kRunning;
  change.row.reason = "its 16 cards have done nothing for 42 min";
  const auto all = NotificationsOf(change, {{"all", {NoticeEvent::kFailed}}}, kSender);
  ASSERT_THAT(WhoGets(all), ElementsAre("chat", "mail:bob@x.org"));
  const nlohmann::json body = nlohmann::json::parse(all[0].body);
  EXPECT_EQ(body["type"], "run.idle");
  EXPECT_EQ(body["data"]["new_state"], "RUNNING");
  EXPECT_EQ(body["data"]["reason"], "its 16 cards have done nothing for 42 min");
  EXPECT_THAT(all[1].body, HasSubstr("Subject: [lab] train-42 is idle\r\n"));
}

TEST(Notifications, OfMailAreWholeMails) {
  const auto all = NotificationsOf(Change(7, RunWord::kFailed, {{"bob@x.org", {NoticeEvent::kFailed}}}), {}, kSender);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].body.substr(0, 60), "To: bob@x.org\r\nSubject: [lab] train-42 FAILED\r\nDate: Thu, 01");
  EXPECT_THAT(all[0].body, HasSubstr("\r\nMessage-ID: <msg_0123456789abcdef_7@tpd>\r\n"));
  EXPECT_THAT(all[0].body, HasSubstr("\r\n\r\ntrain-42: RUNNING -> FAILED\r\nreason   rank 0 ended with exit 3\r\n"));
}

TEST(Notifications, WhatAnEngineSaidSteersNothing) {
  store::WordChange change =
      Change(7, RunWord::kFailed, {{"bob@x", {NoticeEvent::kFailed}}, {"chat", {NoticeEvent::kFailed}}});
  change.row.reason = "a\r\nBcc: eve@x\r\n\r\n\x1b[31m\xff\xc2\x9b" + std::string(5000, 'x');
  for (const Notification& one : NotificationsOf(change, {}, kSender)) {
    EXPECT_THAT(one.body, Not(HasSubstr("\nBcc"))) << one.receiver;
    EXPECT_THAT(one.body, Not(HasSubstr("\x1b")));
    EXPECT_THAT(one.body, Not(HasSubstr("\xff")));
    EXPECT_LT(one.body.size(), 2000u);
  }
}

TEST(Notifications, TheSameChangeHasTheSameIdAndAnotherAnother) {
  const std::vector<core::Notice> notify = {{"chat", {NoticeEvent::kFailed}}};
  const auto first = NotificationsOf(Change(7, RunWord::kFailed, notify), {}, kSender);
  EXPECT_EQ(first, NotificationsOf(Change(7, RunWord::kFailed, notify), {}, kSender));
  EXPECT_NE(first[0].id, NotificationsOf(Change(9, RunWord::kFailed, notify), {}, kSender)[0].id);
  const Sender other{.deployment = "lab", .instance = "fedcba9876543210"};
  EXPECT_NE(first[0].id, NotificationsOf(Change(7, RunWord::kFailed, notify), {}, other)[0].id);
}

}  // namespace
}  // namespace tp::notify
