// Who may be told of a run, and of what.
#include "core/notice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "core/run.h"

namespace tp::core {
namespace {

using ::testing::HasSubstr;

Receivers Some() {
  Receivers receivers;
  receivers.webhooks["chat"] = {.url = "https://chat.example.org/x", .secret_file = "/etc/tp/chat", .on = {}};
  receivers.webhooks["pager"] = {.url = "https://pager.example.org/y", .secret_file = "/etc/tp/pager", .on = {}};
  return receivers;
}

std::string Refusal(const Notice& notice, const Receivers& receivers) {
  const absl::Status status = CheckNotices({notice}, receivers);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << notice.to;
  return std::string(Message(status));
}

TEST(NoticeEvent, IsWhatARunHasComeTo) {
  const std::vector<std::pair<RunWord, std::optional<NoticeEvent>>> all = {
      {RunWord::kQueued, std::nullopt},          {RunWord::kSubmitted, std::nullopt},
      {RunWord::kPending, std::nullopt},         {RunWord::kRunning, std::nullopt},
      {RunWord::kPaused, NoticeEvent::kPaused},  {RunWord::kSucceeded, NoticeEvent::kSucceeded},
      {RunWord::kFailed, NoticeEvent::kFailed},  {RunWord::kStopped, NoticeEvent::kStopped},
      {RunWord::kPartial, NoticeEvent::kFailed},
  };
  ASSERT_EQ(all.size(), static_cast<size_t>(kRunWordCount));
  for (const auto& [word, event] : all) EXPECT_EQ(NoticeEventOf(word), event) << Name(word);
}

TEST(MailAddress, IsOneThatNeedsNoQuotes) {
  for (const char* good : {"bob@example.org", "a.b+c_d%e@x", "Bob1@EXAMPLE-1.org"}) {
    EXPECT_TRUE(IsMailAddress(good)) << good;
  }
  for (const char* bad : {"",
                          "bob",
                          "@",
                          "@x",
                          "bob@",
                          "-f@x",
                          "a@-x",
                          ".a@x",
                          "a@b@c",
                          "a b@x",
                          "a@x\n",
                          "a@x\r\nBcc: b@y",
                          "a;b@x",
                          "\"a\"@x",
                          "a@x y",
                          "a@x,b@y",
                          "<a@x>",
                          "\xc3\xbc@x",
                          "a@[127.0.0.1]",
                          "$(id)@x",
                          "`id`@x",
                          "|id@x"}) {
    EXPECT_FALSE(IsMailAddress(bad)) << bad;
  }
  EXPECT_FALSE(IsMailAddress(std::string(300, 'a') + "@x"));
}

TEST(CheckNotices, TakesReceiversThatThereAre) {
  Receivers receivers = Some();
  receivers.mail.emplace();
  const absl::Status status = CheckNotices(
      {{"chat", {NoticeEvent::kFailed}}, {"bob@example.org", {NoticeEvent::kSucceeded, NoticeEvent::kPaused}}},
      receivers);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(CheckNotices({}, {}).ok());
}

TEST(CheckNotices, SaysWhatThereIsInstead) {
  const std::vector<NoticeEvent> on = {NoticeEvent::kFailed};
  EXPECT_EQ(Refusal({"chta", on}, Some()), "notify: there is no receiver 'chta'; did you mean chat?");
  EXPECT_EQ(Refusal({"zzzzzz", on}, Some()), "notify: there is no receiver 'zzzzzz'; there are chat, pager");
  EXPECT_EQ(Refusal({"chat", on}, {}), "notify: there is no receiver 'chat': an admin has to name it in tpd.yaml");
  EXPECT_EQ(Refusal({"bob@example.org", on}, Some()),
            "notify: this server sends no mail to bob@example.org: an admin has to set notify.mail in tpd.yaml");
  EXPECT_THAT(Refusal({"http://169.254.169.254/x", on}, Some()), HasSubstr("for admins to set up"));
  EXPECT_THAT(Refusal({"-oops@example.org", on}, Some()), HasSubstr("is not a mail address"));
  EXPECT_THAT(Refusal({"\x1b[31m", on}, Some()), HasSubstr("\\x1b"));
  EXPECT_EQ(Refusal({"chat", {}}, Some()), "notify: 'chat' is told of nothing: write `on`");
  EXPECT_THAT(Refusal({"chat", {NoticeEvent::kFailed, NoticeEvent::kFailed}}, Some()), HasSubstr("twice"));
  const std::vector<Notice> many(17, Notice{"chat", on});
  EXPECT_FALSE(CheckNotices(many, Some()).ok());
}

}  // namespace
}  // namespace tp::core
