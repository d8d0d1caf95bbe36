#include "config/reference.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace tp::config {
namespace {

TEST(Reference, ThePageInDocsIsCurrent) {
  std::ifstream file(TP_SOURCE_DIR "/docs/configuration-reference.md", std::ios::binary);
  ASSERT_TRUE(file.is_open());
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(page, ReferencePage()) << "run: config_reference > docs/configuration-reference.md";
}

}  // namespace
}  // namespace tp::config
