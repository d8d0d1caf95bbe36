#include "tpd/in_kubernetes.h"

#include <gtest/gtest.h>

namespace tp::tpd {
namespace {

TEST(InKubernetes, NeedsTheServicesAddressAndTheAccountsToken) {
  const std::string token = "/proc/self/exe";  // any file that can be read
  const std::string none = token + ".none";
  EXPECT_TRUE(InKubernetes("10.96.0.1", token));
  EXPECT_FALSE(InKubernetes("10.96.0.1", none)) << "automountServiceAccountToken: false";
  EXPECT_FALSE(InKubernetes("", token));
  EXPECT_FALSE(InKubernetes(nullptr, token));
}

}  // namespace
}  // namespace tp::tpd
