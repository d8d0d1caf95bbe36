// store_fixture FILE: makes a database of the present format that holds its WriteHistory(). How it becomes a
// fixture is told in fixtures/README.md.
#include <cstdio>

#include "history.h"
#include "store/schema.h"
#include "store/sqlite_store.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: store_fixture FILE\n", stderr);
    return 64;
  }
  auto store = tp::store::SqliteStore::Open(argv[1], nullptr);
  if (!store.ok()) {
    std::fprintf(stderr, "%s\n", store.status().ToString().c_str());
    return 1;
  }
  tp::store::WriteHistory(**store, tp::store::ProductMigrations().back().version);
  return 0;
}
