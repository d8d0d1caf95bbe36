#include "tpd/client_file.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "auth/secret_file.h"

namespace tp::tpd {
namespace {

std::string PathIn(const std::string& data_directory) { return data_directory + "/client.json"; }

}  // namespace

absl::Status WriteClientFile(const std::string& data_directory, const std::string& address,
                             const std::string& token_file) {
  const nlohmann::ordered_json content = {{"address", address}, {"token_file", token_file}};
  return auth::WriteSecretFile(PathIn(data_directory), content.dump() + "\n");
}

void RemoveClientFile(const std::string& data_directory) { unlink(PathIn(data_directory).c_str()); }

}  // namespace tp::tpd
