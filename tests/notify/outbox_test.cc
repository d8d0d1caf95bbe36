// What is owed survives, once and in order.
#include "notify/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launch/temp_dir.h"

namespace tp::notify {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

Notification About(int64_t run, const std::string& id, const std::string& receiver = "chat",
                   const std::string& recipient = "") {
  return {.id = id, .receiver = receiver, .recipient = recipient, .run = run, .body = "body of " + id};
}

class OutboxTest : public ::testing::Test {
 protected:
  void SetUp() override { Reopen(100); }

  void Reopen(int64_t present) {
    outbox_.reset();
    auto opened = Outbox::Open(directory_.path() + "/notify.db", present);
    ASSERT_TRUE(opened.ok()) << opened.status();
    outbox_ = *std::move(opened);
  }

  void Append(const std::vector<Notification>& notifications, int64_t followed) {
    const absl::Status status = outbox_->Append(notifications, followed, kNow);
    ASSERT_TRUE(status.ok()) << status;
  }

  std::vector<std::string> NextIds(const std::string& receiver = "chat") {
    std::vector<std::string> ids;
    const auto next = outbox_->Next(receiver, 100);
    EXPECT_TRUE(next.ok()) << next.status();
    for (const Pending& pending : *next) ids.push_back(pending.notification.id);
    return ids;
  }

  void Record(const Verdict& verdict, const std::string& why = "") {
    const absl::Status status = outbox_->Record(outbox_->Next("chat", 1)->front(), verdict, {.why = why}, kNow);
    ASSERT_TRUE(status.ok()) << status;
  }

  const testing::TempDir directory_;
  std::unique_ptr<Outbox> outbox_;
};

TEST_F(OutboxTest, BeginsAtThePresentAndGoesOnWhereItWas) {
  EXPECT_EQ(outbox_->followed(), 100);
  const std::string instance = outbox_->instance();
  EXPECT_THAT(instance, SizeIs(16));
  Append({About(1, "a")}, 107);
  Reopen(120);
  EXPECT_EQ(outbox_->followed(), 107);
  EXPECT_EQ(outbox_->instance(), instance);
  EXPECT_THAT(NextIds(), ElementsAre("a"));
  Reopen(50);
  EXPECT_EQ(outbox_->followed(), 50) << "the main database is an older one";
}

TEST_F(OutboxTest, TheSameMessageIsOwedOnce) {
  Append({About(1, "a"), About(1, "a", "pager"), About(1, "a", "mail", "x@y"), About(1, "a", "mail", "z@y")}, 101);
  Append({About(1, "a")}, 101);
  EXPECT_THAT(NextIds(), ElementsAre("a"));
  EXPECT_THAT(NextIds("pager"), ElementsAre("a"));
  EXPECT_THAT(NextIds("mail"), ElementsAre("a", "a"));
}

TEST_F(OutboxTest, ARunsMessagesAreSentInOrder) {
  Append({About(1, "a"), About(2, "b"), About(1, "c")}, 103);
  EXPECT_THAT(NextIds(), ElementsAre("a", "b"));
  Record(TryAgain{kNow + absl::Seconds(5)}, "it answers 500");
  EXPECT_THAT(NextIds(), ElementsAre("b", "a")) << "what is tried next comes first, and c waits for a";
  Record(Delivered{});
  EXPECT_THAT(NextIds(), ElementsAre("a"));
  const Pending a = outbox_->Next("chat", 1)->front();
  EXPECT_EQ(a.tries, 1);
  EXPECT_EQ(a.created_at, kNow);
  EXPECT_EQ(a.next_try_at, kNow + absl::Seconds(5));
  EXPECT_EQ(a.notification, About(1, "a"));
  Record(GivenUp{}, "it answers 410");
  EXPECT_THAT(NextIds(), ElementsAre("c"));
}

TEST_F(OutboxTest, CountsWhatBecameOfThem) {
  Append({About(1, "a"), About(2, "b"), About(3, "c"), About(3, "c", "pager")}, 103);
  Record(Delivered{});
  Record(GivenUp{}, "it answers 404");
  Reopen(103);
  const auto tallies = outbox_->Tallies();
  ASSERT_TRUE(tallies.ok()) << tallies.status();
  const ReceiverStatus chat{.name = "chat",
                            .configured = false,
                            .waiting = 1,
                            .delivered = 1,
                            .given_up = 1,
                            .last_error = "it answers 404",
                            .last_failed_at = kNow};
  const ReceiverStatus pager{.name = "pager", .waiting = 1, .last_error = ""};
  EXPECT_THAT(*tallies, ElementsAre(chat, pager));
}

TEST_F(OutboxTest, KnowsWhatIsOld) {
  Append({About(1, "a")}, 101);
  EXPECT_THAT(*outbox_->OlderThan(kNow), IsEmpty());
  EXPECT_THAT(*outbox_->OlderThan(kNow + absl::Seconds(1)), SizeIs(1));
}

}  // namespace
}  // namespace tp::notify
