#include "cli/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include <google/protobuf/map.h>

namespace tp::cli {
namespace {

constexpr std::array<std::string_view, 16> kSecretWords = {
    "TOKEN",  "TOKENS",     "SECRET",      "SECRETS", "PASSWORD", "PASSWD", "PASS", "PASSPHRASE",
    "APIKEY", "CREDENTIAL", "CREDENTIALS", "AUTH",    "BEARER",   "PAT",    "KEY",  "COOKIE",
};

bool IsSecretWord(std::string_view word) {
  return std::find(kSecretWords.begin(), kSecretWords.end(), word) != kSecretWords.end();
}

bool HasSecretWord(std::string_view name) {
  std::string word;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      continue;
    }
    if (IsSecretWord(word)) return true;
    word.clear();
  }
  return IsSecretWord(word);
}

// scheme://user:password@host
bool HasPasswordInAddress(std::string_view value) {
  const size_t scheme = value.find("://");
  if (scheme == std::string_view::npos) return false;
  const std::string_view rest = value.substr(scheme + 3);
  const std::string_view authority = rest.substr(0, rest.find('/'));
  const size_t at = authority.rfind('@');
  return at != std::string_view::npos && authority.substr(0, at).find(':') != std::string_view::npos;
}

void MaskMap(google::protobuf::Map<std::string, std::string>& environment) {
  for (auto& [name, value] : environment) {
    if (LooksSecret(name, value)) value = "***";
  }
}

}  // namespace

bool LooksSecret(std::string_view name, std::string_view value) {
  return HasSecretWord(name) || HasPasswordInAddress(value);
}

void MaskSecrets(v1::Run& run) {
  for (v1::Step& step : *run.mutable_steps()) {
    MaskMap(*step.mutable_spec()->mutable_env());
    MaskMap(*step.mutable_spec()->mutable_explicit_env());
  }
}

}  // namespace tp::cli
