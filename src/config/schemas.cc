#include "config/schemas.h"

#include "config/registry_file.h"
#include "config/server_config.h"

namespace tp::config {

std::string ServerSchema() { return decode::SchemaDocument(ServerFileType().schema, "tpd.yaml"); }

std::string RegistrySchema() { return decode::SchemaDocument(RegistryFileType().schema, "registry.yaml"); }

}  // namespace tp::config
