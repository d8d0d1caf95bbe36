#include "tpd/in_kubernetes.h"

#include <unistd.h>

#include <cstdlib>

namespace tp::tpd {

bool InKubernetes(const char* service_host, const std::string& token_file) {
  return service_host != nullptr && *service_host != '\0' && access(token_file.c_str(), R_OK) == 0;
}

bool InKubernetes() {
  return InKubernetes(std::getenv("KUBERNETES_SERVICE_HOST"), "/var/run/secrets/kubernetes.io/serviceaccount/token");
}

}  // namespace tp::tpd
