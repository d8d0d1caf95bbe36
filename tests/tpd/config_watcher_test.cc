#include "tpd/config_watcher.h"

#include <condition_variable>
#include <mutex>

#include "config_directory.h"

namespace tp::tpd {
namespace {

using std::chrono::milliseconds;

class ConfigWatcherTest : public ConfigDirectory {
 protected:
  // What only inotify can tell in time: the files are looked at once an hour.
  static constexpr WatchTimes kByNotice = {
      .quiet = milliseconds(20), .longest = milliseconds(200), .look = milliseconds(3'600'000)};
  static constexpr WatchTimes kByLook = {
      .quiet = milliseconds(20), .longest = milliseconds(200), .look = milliseconds(20)};

  void Watch(WatchTimes times) {
    auto watcher = ConfigWatcher::Start(
        config_.string(),
        [this] {
          const std::lock_guard lock(mutex_);
          ++changes_;
          changed_.notify_all();
        },
        times);
    ASSERT_TRUE(watcher.ok()) << watcher.status();
    watcher_ = *std::move(watcher);
  }

  // Waits for one more change than there has been.
  ::testing::AssertionResult Noticed() {
    std::unique_lock lock(mutex_);
    const int before = seen_;
    if (!changed_.wait_for(lock, std::chrono::seconds(30), [&] { return changes_ > before; })) {
      return ::testing::AssertionFailure() << "nothing noticed in 30 s";
    }
    seen_ = changes_;
    return ::testing::AssertionSuccess();
  }

  int changes() {
    const std::lock_guard lock(mutex_);
    return changes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int changes_ = 0;
  int seen_ = 0;
  std::unique_ptr<ConfigWatcher> watcher_;
};

TEST_F(ConfigWatcherTest, NoticesAWriteInPlace) {
  Watch(kByNotice);
  Write("registry.yaml", Registry(12));
  EXPECT_TRUE(Noticed());
}

TEST_F(ConfigWatcherTest, NoticesAReplacementByRename) {
  Watch(kByNotice);
  WriteTo(config_ / ".registry.yaml.swp", Registry(2));
  std::filesystem::rename(config_ / ".registry.yaml.swp", config_ / "registry.yaml");
  EXPECT_TRUE(Noticed());
  WriteTo(config_ / ".again", Registry(3));
  std::filesystem::rename(config_ / ".again", config_ / "registry.yaml");
  EXPECT_TRUE(Noticed());
}

// A mounted ConfigMap: files are links through ..data, which is a link that is swapped by rename.
TEST_F(ConfigWatcherTest, NoticesASwappedLink) {
  const auto release = [&](const std::string& name, int cards) {
    std::filesystem::create_directory(config_ / name);
    WriteTo(config_ / name / "registry.yaml", Registry(cards));
    std::filesystem::create_directory_symlink(name, config_ / "..data_tmp");
    std::filesystem::rename(config_ / "..data_tmp", config_ / "..data");
  };
  release("..1", 1);
  std::filesystem::remove(config_ / "registry.yaml");
  std::filesystem::create_symlink("..data/registry.yaml", config_ / "registry.yaml");
  Watch(kByNotice);
  release("..2", 2);
  EXPECT_TRUE(Noticed());
}

TEST_F(ConfigWatcherTest, NoticesAFileThatGoesAndComes) {
  Watch(kByNotice);
  std::filesystem::remove(config_ / "registry.yaml");
  EXPECT_TRUE(Noticed());
  Write("registry.yaml", Registry(1));
  EXPECT_TRUE(Noticed());
}

TEST_F(ConfigWatcherTest, ADirectoryThatIsReplacedIsWatchedAgain) {
  Watch(kByLook);
  std::filesystem::rename(config_, root_ / "old");
  EXPECT_TRUE(Noticed());
  std::filesystem::create_directory(config_);
  Write("registry.yaml", Registry(2));
  EXPECT_TRUE(Noticed());
}

TEST_F(ConfigWatcherTest, AFileBehindALinkToElsewhereIsLookedAt) {
  WriteTo(root_ / "far.yaml", Registry(1));
  std::filesystem::remove(config_ / "registry.yaml");
  std::filesystem::create_symlink(root_ / "far.yaml", config_ / "registry.yaml");
  Watch(kByLook);
  WriteTo(root_ / "far.yaml", Registry(12));
  EXPECT_TRUE(Noticed());
}

TEST_F(ConfigWatcherTest, OtherFilesAreNoChange) {
  Watch(kByNotice);
  Write("notes.txt", "hello\n");
  Write("registry.yaml", Registry(12));
  EXPECT_TRUE(Noticed());
  EXPECT_EQ(changes(), 1);
}

}  // namespace
}  // namespace tp::tpd
