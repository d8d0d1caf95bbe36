// The WHERE clause of a query whose conditions depend on a filter. Values are always bound, never spelled
// out, so that filters of one shape share a prepared statement.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "store/sqlite.h"

namespace tp::store {

class Where {
 public:
  using Value = std::variant<int64_t, std::string>;

  // `condition` has one `?` for each of `values`.
  void Add(std::string_view condition, std::vector<Value> values = {}) {
    sql_ += sql_.empty() ? " WHERE " : " AND ";
    sql_ += condition;
    for (Value& value : values) values_.push_back(std::move(value));
  }

  // With a blank in front; empty where there is no condition.
  const std::string& sql() const { return sql_; }

  void BindTo(Query& query) const {
    for (const Value& value : values_) std::visit([&](const auto& bound) { query.Bind(bound); }, value);
  }

 private:
  std::string sql_;
  std::vector<Value> values_;
};

}  // namespace tp::store
