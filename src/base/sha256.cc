#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cstdlib>

#include <fmt/format.h>

namespace tp {
namespace {

// SHA-256 without an engine fails only where memory does.
void Require(bool done) {
  if (!done) std::abort();
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  Require(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::string_view bytes) {
  Require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::HexDigest() {
  std::array<unsigned char, 32> digest{};
  Require(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

}  // namespace tp
