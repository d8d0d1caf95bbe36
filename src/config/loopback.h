// Which hosts are this machine and nothing else. Pure.
#pragma once

#include <algorithm>
#include <string_view>

namespace tp::config {

// `localhost`, `::1`, and addresses that begin with 127.
inline bool IsLoopback(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  const bool digits = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return digits && host.substr(0, 4) == "127." && std::count(host.begin(), host.end(), '.') == 3 &&
         host.back() != '.' && host.find("..") == std::string_view::npos;
}

}  // namespace tp::config
