#include "base/file.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace tp {
namespace {

class ReadSmallFileTest : public ::testing::Test {
 protected:
  ReadSmallFileTest() { std::filesystem::create_directories(path_); }
  ~ReadSmallFileTest() override { std::filesystem::remove_all(path_); }

  absl::StatusOr<std::optional<std::string>> Read(const std::string& content, size_t max_bytes) {
    std::ofstream(path_ + "/file", std::ios::binary) << content;
    auto directory = OpenDirectory(path_);
    EXPECT_TRUE(directory.ok()) << directory.status();
    return ReadSmallFile(*directory, "file", max_bytes);
  }

  const std::string path_ = ::testing::TempDir() + "tp-file-" + std::to_string(::getpid());
};

TEST_F(ReadSmallFileTest, TheEndOfALargerOne) {
  const absl::StatusOr<Directory> directory = OpenDirectory(path_);
  ASSERT_TRUE(directory.ok());
  EXPECT_EQ(ReadFileEnd(*directory, "file", 3).value(), std::nullopt);
  for (const auto& [content, end] :
       std::vector<std::pair<std::string, std::string>>{{"", ""}, {"ab", "ab"}, {"abc", "abc"}, {"abcdef", "def"}}) {
    std::ofstream(path_ + "/file", std::ios::binary) << content;
    EXPECT_EQ(ReadFileEnd(*directory, "file", 3).value(), end);
  }
}

TEST_F(ReadSmallFileTest, AllOfItUpToTheLimit) {
  for (const size_t size : {0u, 1u, 4095u, 4096u, 4097u, 100'000u}) {
    const std::string content(size, 'x');
    for (const size_t limit : {size, size + 1, size + 100'000}) {
      const auto read = Read(content, limit);
      ASSERT_TRUE(read.ok()) << size << " of at most " << limit << ": " << read.status();
      EXPECT_EQ(**read, content);
    }
    if (size == 0) continue;
    EXPECT_FALSE(Read(content, size - 1).ok()) << size;
  }
}

TEST_F(ReadSmallFileTest, AFileThatSaysItIsEmptyIsReadWhole) {
  auto directory = OpenDirectory("/proc/self");
  ASSERT_TRUE(directory.ok());
  const auto read = ReadSmallFile(*directory, "smaps", size_t{64} << 20);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_GT((*read)->size(), 4096u);
}

// A manifest may have 64 MiB and has a few hundred bytes: reading it once cost half a second of zeroes.
TEST_F(ReadSmallFileTest, TakesMemoryForWhatIsThereAndNotForWhatMayBe) {
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  ASSERT_TRUE(Read("small", size_t{64} << 20).ok());
  const auto before = faults();
  ASSERT_TRUE(Read("small", size_t{64} << 20).ok());
  EXPECT_LT(faults() - before, 100);
}

}  // namespace
}  // namespace tp
