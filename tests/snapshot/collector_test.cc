#include "snapshot/collector.h"

#include <future>

#include <gtest/gtest.h>

#include "base/status.h"
#include "sample.h"

namespace tp::snapshot {
namespace {

class CollectorTest : public StoreTest {
 protected:
  // The first report of a collector that looks all the time.
  absl::StatusOr<Collected> FirstReport(const absl::StatusOr<absl::flat_hash_set<std::string>>& needed) {
    std::promise<absl::StatusOr<Collected>> reported;
    std::once_flag once;
    CollectorOptions options;
    options.interval = absl::Milliseconds(1);
    options.needed = [&] { return needed; };
    options.report = [&](const absl::StatusOr<Collected>& collected) {
      std::call_once(once, [&] { reported.set_value(collected); });
    };
    const Collector collector(*store_, std::move(options));
    return reported.get_future().get();
  }
};

TEST_F(CollectorTest, CollectsByItself) {
  Put({"one", "two"});
  const auto needed = Commit({File("a", "one")});
  ASSERT_TRUE(Commit({File("a", "two")}).ok());
  now_ += limits_.grace + absl::Seconds(1);
  const auto report = FirstReport(absl::flat_hash_set<std::string>{needed->id});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->snapshots, 1);
  EXPECT_EQ(report->bytes, 3);
  EXPECT_TRUE(HasBlob("one"));
}

TEST_F(CollectorTest, WithoutKnowingWhatIsNeededNothingIsCollected) {
  Put({"one"});
  ASSERT_TRUE(Commit({File("a", "one")}).ok());
  now_ += limits_.grace + absl::Seconds(1);
  EXPECT_EQ(FirstReport(Unavailable("the database is locked")).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(HasBlob("one"));
}

TEST_F(CollectorTest, StopsAtOnce) {
  CollectorOptions options;
  options.interval = absl::Hours(24);
  options.needed = [] { return absl::flat_hash_set<std::string>(); };
  options.report = [](const absl::StatusOr<Collected>&) { FAIL() << "no round was due"; };
  const Collector collector(*store_, std::move(options));
}

}  // namespace
}  // namespace tp::snapshot
