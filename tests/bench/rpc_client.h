// What the programs that put load on a running tpd share: a connection of one's own, and calls that must succeed.
#pragma once

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

namespace tp::load {

// A channel of its own for each client: real users do not share one.
inline std::shared_ptr<grpc::Channel> Connect(const std::string& server, int client) {
  grpc::ChannelArguments arguments;
  arguments.SetInt("tp.load.client", client);
  return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
}

inline void Authorize(grpc::ClientContext& context, const std::string& token) {
  context.AddMetadata("authorization", "Bearer " + token);
}

// Ends the program when the call failed.
inline void Check(const grpc::Status& status) {
  if (status.ok()) return;
  std::cerr << "a call failed: " << status.error_message() << "\n";
  std::exit(1);
}

}  // namespace tp::load
