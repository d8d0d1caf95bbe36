#include "auth/digest.h"

#include <climits>
#include <cstdio>
#include <cstdlib>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/sha256.h"

namespace tp::auth {
namespace {

constexpr size_t kSha256Bytes = 32;

const unsigned char* Bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "tp: OpenSSL could not %s\n", what);
  std::abort();
}

}  // namespace

std::string HmacSha256(std::string_view key, std::string_view bytes) {
  std::string digest(kSha256Bytes, '\0');
  if (key.size() > INT_MAX || HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), Bytes(bytes), bytes.size(),
                                   Bytes(digest), nullptr) == nullptr) {
    Die("authenticate");
  }
  return digest;
}

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 digest;
  digest.Update(bytes);
  return digest.HexDigest();
}

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  if (count > INT_MAX || RAND_bytes(Bytes(bytes), static_cast<int>(count)) != 1) Die("get random bytes");
  return bytes;
}

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tp::auth
