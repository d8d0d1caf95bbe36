// Which environment variables look like secrets: their values are handed on to the job and never shown, by
// nothing of ours. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace tp {

inline constexpr std::string_view kMaskedValue = "***";

inline constexpr std::array<std::string_view, 19> kSecretWords = {
    "TOKEN",  "TOKENS",     "SECRET",      "SECRETS", "PASSWORD",      "PASSWD", "PASS", "PASSPHRASE", "KEY",    "KEYS",
    "APIKEY", "CREDENTIAL", "CREDENTIALS", "AUTH",    "AUTHORIZATION", "BEARER", "PAT",  "COOKIE",     "COOKIES"};
// Also written without a separator, as in PGPASSWORD.
inline constexpr std::array<std::string_view, 4> kSecretEndings = {"TOKEN", "SECRET", "PASSWORD", "PASSWD"};

inline bool IsSecretWord(std::string_view word) {
  return std::find(kSecretWords.begin(), kSecretWords.end(), word) != kSecretWords.end() ||
         std::any_of(kSecretEndings.begin(), kSecretEndings.end(),
                     [word](std::string_view ending) { return word.ends_with(ending); });
}

// By its words: HF_TOKEN and AWS_SECRET_ACCESS_KEY are, TOKENIZERS_PARALLELISM is not.
inline bool NameLooksSecret(std::string_view name) {
  std::string word;
  for (char c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
      word += c;
    } else {
      if (IsSecretWord(word)) return true;
      word.clear();
    }
  }
  return IsSecretWord(word);
}

// An address with a password in it: scheme://user:password@host
inline bool ValueLooksSecret(std::string_view value) {
  const size_t scheme = value.find("://");
  if (scheme == std::string_view::npos) return false;
  const std::string_view rest = value.substr(scheme + 3);
  const std::string_view authority = rest.substr(0, rest.find('/'));
  const size_t at = authority.rfind('@');
  return at != std::string_view::npos && authority.substr(0, at).find(':') != std::string_view::npos;
}

inline bool LooksSecret(std::string_view name, std::string_view value) {
  return NameLooksSecret(name) || ValueLooksSecret(value);
}

}  // namespace tp
