#include "auth/identity.h"

#include <string>

#include <gtest/gtest.h>

#include "auth/roles.h"

namespace tp::auth {
namespace {

using store::Role;

TEST(UserName, AcceptsWhatIsSafeAsAPathComponent) {
  for (const char* name : {"a", "_svc", "ana", "ana-2", "a_b", "root"}) EXPECT_TRUE(CheckUserName(name).ok()) << name;
  EXPECT_TRUE(CheckUserName(std::string(32, 'a')).ok());
}

TEST(UserName, RefusesEverythingElse) {
  const std::string with_nul("a\0b", 3);
  for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string("a/b"),
                                  std::string("A"), std::string("1a"), std::string("-a"), std::string("a b"),
                                  std::string("a\n"), std::string("\xc3\xa9"), with_nul, std::string(33, 'a')}) {
    EXPECT_EQ(CheckUserName(name).code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST(Roles, NamesRoundTrip) {
  for (const Role role : {Role::kViewer, Role::kUser, Role::kOperator, Role::kAdmin}) {
    EXPECT_EQ(ParseRole(Name(role)), role);
  }
  EXPECT_FALSE(ParseRole("root").has_value());
}

TEST(Roles, HigherRolesMayDoWhatLowerOnesMay) {
  constexpr char kSubmit[] = "/tp.v1.RunService/SubmitRun";
  EXPECT_EQ(CheckMayCall({"v", Role::kViewer}, kSubmit).code(), absl::StatusCode::kPermissionDenied);
  for (const Role role : {Role::kUser, Role::kOperator, Role::kAdmin}) {
    EXPECT_TRUE(CheckMayCall({"u", role}, kSubmit).ok());
  }
  EXPECT_TRUE(CheckMayCall({"v", Role::kViewer}, "/tp.v1.RunService/GetRun").ok());
}

TEST(Roles, UnknownMethodIsRefusedEvenToAdmins) {
  EXPECT_EQ(CheckMayCall({"a", Role::kAdmin}, "/tp.v1.RunService/Nothing").code(), absl::StatusCode::kPermissionDenied);
}

TEST(Roles, ContentBelongsToTheOwner) {
  EXPECT_TRUE(MayReadContent({"ana", Role::kUser}, "ana"));
  EXPECT_FALSE(MayReadContent({"bob", Role::kUser}, "ana"));
  EXPECT_TRUE(MayReadContent({"bob", Role::kOperator}, "ana"));
  EXPECT_FALSE(MayReadEnvironment({"bob", Role::kOperator}, "ana"));
  EXPECT_TRUE(MayReadEnvironment({"bob", Role::kAdmin}, "ana"));
}

}  // namespace
}  // namespace tp::auth
