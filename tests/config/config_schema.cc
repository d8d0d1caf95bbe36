// config_schema server|registry: the JSON Schema, as `tpd schema` prints it, without what tpd links.
#include <cstdio>
#include <string_view>

#include "config/schemas.h"

int main(int argc, char** argv) {
  const std::string_view kind = argc == 2 ? argv[1] : "";
  if (kind != "server" && kind != "registry") return 2;
  std::fputs((kind == "server" ? tp::config::ServerSchema() : tp::config::RegistrySchema()).c_str(), stdout);
  return 0;
}
