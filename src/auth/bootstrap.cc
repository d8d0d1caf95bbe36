#include "auth/bootstrap.h"

#include <pwd.h>
#include <unistd.h>

#include <vector>

#include "auth/identity.h"
#include "auth/secret_file.h"
#include "auth/token.h"
#include "base/status.h"

namespace tp::auth {
namespace {

absl::StatusOr<Token> LoadOrCreate(const std::string& path) {
  auto text = ReadSecretFile(path);
  if (text.ok()) {
    auto token = ParseToken(*text);
    if (token.ok()) return token;
    return FailedPrecondition("{} holds no token: remove it, tpd then writes a new one", path);
  }
  if (!absl::IsNotFound(text.status())) return text.status();
  Token token = MakeToken();
  TP_RETURN_IF_ERROR(WriteSecretFile(path, Text(token) + "\n"));
  return token;
}

}  // namespace

absl::StatusOr<store::TokenRow> LoadOrCreateBootstrapToken(const std::string& path, const std::string& user,
                                                           absl::Time now) {
  TP_RETURN_IF_ERROR(CheckUserName(user));
  TP_ASSIGN_OR_RETURN(const Token token, LoadOrCreate(path));
  return RowOf(token, {.user = user, .role = store::Role::kAdmin}, now);
}

absl::StatusOr<std::string> CurrentUserName() {
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  const uid_t uid = geteuid();
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return FailedPrecondition("uid {} has no name: add it to /etc/passwd, or run tpd as another user", uid);
  }
  std::string name = found->pw_name;
  TP_RETURN_IF_ERROR(CheckUserName(name));
  return name;
}

}  // namespace tp::auth
