#include "base/secret_names.h"

#include <gtest/gtest.h>

namespace tp {
namespace {

TEST(LooksSecret, GoesByTheWordsOfTheName) {
  for (const char* name : {"HF_TOKEN", "WANDB_API_KEY", "aws_secret_access_key", "DB_PASSWORD", "GITHUB_PAT", "AUTH",
                           "AUTH_HEADER", "PGPASSWORD", "clientSecret", "SSH_KEYS"}) {
    EXPECT_TRUE(LooksSecret(name, "x")) << name;
  }
  for (const char* name :
       {"TOKENIZERS_PARALLELISM", "NCCL_DEBUG", "KEYBOARD", "AUTHOR", "PATH", "PWD", "TP_RUN_ID", "MASTER_PORT", ""}) {
    EXPECT_FALSE(LooksSecret(name, "x")) << name;
  }
}

TEST(LooksSecret, SeesPasswordsInAddresses) {
  EXPECT_TRUE(LooksSecret("DATABASE_URL", "postgres://me:hunter2@db/x"));
  EXPECT_FALSE(LooksSecret("DATABASE_URL", "postgres://db:5432/x@y"));
  EXPECT_FALSE(LooksSecret("MAIL", "me:hunter2@db"));
}

}  // namespace
}  // namespace tp
