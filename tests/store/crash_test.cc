// A process that commits is killed at any moment: what it was told is durable is there, what is there is
// whole, and it is a prefix of what it was doing.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "author.h"
#include "base/fd.h"
#include "store/memory_store.h"
#include "store/open.h"
#include "temp_dir.h"

namespace tp::store {
namespace {

using core::JobState;

// Commit number `revision` of a fixed history; touches most tables.
Txn NextCommit(Author& author) {
  const int64_t i = author.meta().revision + 1;
  const core::Run run = author.NewRun(i % 3 == 0 ? "ana" : "ben", 2, At(i));
  if (run.n > 1) {
    author.Enter(Author::QueuedStep({run.n - 1, 0}, At(i - 1)), i % 2 == 0 ? JobState::kFailed : JobState::kSucceeded,
                 At(i));
  } else {
    author.AddEvent({run.n, 0}, JobState::kQueued, JobState::kQueued, At(i));
  }
  author.Bill(run.n, run.owner, At(i), At(i + 10), i % 9);
  const OutboxRow owed = author.Owe({{run.n, 0}, 1}, OutboxKind::kLaunch);
  if (owed.id > 3) author.Paid(owed.id - 3);
  author.Answer({run.owner, "request-" + std::to_string(i), "SubmitRun", "", run.n, ""});
  return author.Take();
}

// Commits until it is killed; writes a byte for each commit that returned OK.
[[noreturn]] void CommitForEver(const std::string& directory, int acknowledge) {
  auto opened = OpenStore(directory);
  if (!opened.ok() || opened->restored) _exit(1);
  Author author(opened->store->meta());
  for (;;) {
    if (!opened->store->Commit(NextCommit(author)).ok()) _exit(2);
    if (write(acknowledge, "c", 1) != 1) _exit(3);
  }
}

// Kills a committing process after it has acknowledged `commits`; returns how many it did in the end.
int64_t KillAfter(const std::string& directory, int64_t commits) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const pid_t child = fork();
  if (child == 0) CommitForEver(directory, to.get());
  to.reset();
  int64_t acknowledged = 0;
  char byte = 0;
  while (acknowledged < commits && read(from.get(), &byte, 1) == 1) ++acknowledged;
  kill(child, SIGKILL);
  while (read(from.get(), &byte, 1) == 1) ++acknowledged;
  int result = 0;
  EXPECT_EQ(waitpid(child, &result, 0), child);
  EXPECT_TRUE(WIFSIGNALED(result)) << "ended by itself: " << result;
  return acknowledged;
}

std::vector<core::RunWithSteps> AllRuns(Reader& reader) { return reader.ListRuns({}, std::nullopt, 100'000)->runs; }

TEST(Crash, EveryAcknowledgedCommitIsThereAndNothingByHalves) {
  const TempDir directory;
  std::mt19937_64 random(42);
  MemoryStore expected;
  Author author;
  int64_t acknowledged = 0;
  for (int crash = 0; crash < 25; ++crash) {
    acknowledged += KillAfter(directory.path(), static_cast<int64_t>(random() % 12));
    const auto opened = OpenStore(directory.path());
    ASSERT_TRUE(opened.ok()) << opened.status();
    ASSERT_FALSE(opened->restored.has_value());
    const int64_t revision = opened->store->meta().revision;
    ASSERT_GE(revision, acknowledged) << "an acknowledged commit is lost";
    ASSERT_LE(revision, acknowledged + 1) << "more than the one in flight";
    acknowledged = revision;

    while (author.meta().revision < revision) ASSERT_TRUE(expected.Commit(NextCommit(author)).ok());
    ASSERT_EQ(*opened->store->Load(), *expected.Load());
    ASSERT_EQ(AllRuns(*opened->reader), AllRuns(expected));
    ASSERT_EQ(*opened->reader->EventsAfter(0, 100'000), *expected.EventsAfter(0, 100'000));
    ASSERT_EQ(*opened->reader->Ledger({}, 0, 100'000), *expected.Ledger({}, 0, 100'000));
    ASSERT_TRUE(CheckLedger(*opened->reader).ok());
    ASSERT_EQ(*opened->store->database().Number("SELECT count(*) FROM pragma_integrity_check "
                                                "WHERE integrity_check <> 'ok'"),
              0);
    ASSERT_GE(opened->lock->state().run_mark, opened->store->meta().next_run);
  }
}

}  // namespace
}  // namespace tp::store
