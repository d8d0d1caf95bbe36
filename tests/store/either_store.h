// A store of one of the two kinds, for tests that hold for both.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "store/memory_store.h"
#include "store/sqlite_reader.h"
#include "store/sqlite_store.h"
#include "temp_dir.h"

namespace tp::store {

enum class Kind { kMemory, kSqlite };

class EitherStore {
 public:
  explicit EitherStore(Kind kind) : kind_(kind) {
    if (kind_ == Kind::kMemory) memory_ = std::make_unique<MemoryStore>();
    if (kind_ == Kind::kSqlite) OpenSqlite();
  }

  // What a restart finds.
  void Reopen() {
    if (kind_ == Kind::kMemory) {
      memory_ = memory_->Clone();
    } else {
      reader_.reset();
      sqlite_.reset();
      OpenSqlite();
    }
  }

  Store& store() { return kind_ == Kind::kMemory ? static_cast<Store&>(*memory_) : *sqlite_; }
  Reader& reader() { return kind_ == Kind::kMemory ? static_cast<Reader&>(*memory_) : *reader_; }

 private:
  void OpenSqlite() {
    auto store = SqliteStore::Open(directory_.At("tpd.db"), nullptr);
    ASSERT_TRUE(store.ok()) << store.status();
    sqlite_ = *std::move(store);
    auto reader = SqliteReader::Open(directory_.At("tpd.db"));
    ASSERT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
  }

  const Kind kind_;
  TempDir directory_;
  std::unique_ptr<MemoryStore> memory_;
  std::unique_ptr<SqliteStore> sqlite_;
  std::unique_ptr<SqliteReader> reader_;
};

// Fixture of a suite that runs once for each kind.
class EitherStoreTest : public testing::TestWithParam<Kind> {
 protected:
  Store& store() { return either_.store(); }
  Reader& reader() { return either_.reader(); }

  void Commit(const Txn& txn) {
    const absl::Status status = store().Commit(txn);
    ASSERT_TRUE(status.ok()) << status;
  }

  EitherStore either_{GetParam()};
};

inline std::string KindName(const testing::TestParamInfo<Kind>& kind) {
  return kind.param == Kind::kMemory ? "Memory" : "Sqlite";
}

#define TP_BOTH_STORES(suite) \
  INSTANTIATE_TEST_SUITE_P(Store, suite, testing::Values(Kind::kMemory, Kind::kSqlite), KindName)

}  // namespace tp::store
