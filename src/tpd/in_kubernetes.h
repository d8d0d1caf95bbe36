// Whether this process runs in a pod: that decides the backend where the configuration names none.
#pragma once

#include <string>

namespace tp::tpd {

// By what kubelet gives every pod that may talk to its cluster: `service_host` is the value of
// KUBERNETES_SERVICE_HOST (null: not set), `token_file` the service account's.
bool InKubernetes(const char* service_host, const std::string& token_file);

// The same, of this process.
bool InKubernetes();

}  // namespace tp::tpd
