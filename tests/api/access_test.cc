// Who may call what, over the wire.
#include <string>

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "auth/roles.h"
#include "server_fixture.h"
#include "tp/v1/log.pb.h"
#include "tp/v1/quota.pb.h"
#include "tp/v1/registry.pb.h"
#include "tp/v1/run.grpc.pb.h"
#include "tp/v1/snapshot.pb.h"
#include "tp/v1/system.grpc.pb.h"
#include "tp/v1/usage.pb.h"
#include "tp/v1/window.pb.h"

namespace tp::api {
namespace {

// Every method of every service of the API, as gRPC writes it.
std::vector<const google::protobuf::MethodDescriptor*> AllMethods() {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const google::protobuf::FileDescriptor* file :
       {v1::Run::descriptor()->file(), v1::ReadLogRequest::descriptor()->file(), v1::BlobHeader::descriptor()->file(),
        v1::Series::descriptor()->file(), v1::UsageRow::descriptor()->file(), v1::Standing::descriptor()->file(),
        v1::SeriesWindows::descriptor()->file(), v1::WhoAmIRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) methods.push_back(file->service(s)->method(m));
    }
  }
  return methods;
}

std::string PathOf(const google::protobuf::MethodDescriptor& method) {
  return "/" + method.service()->full_name() + "/" + method.name();
}

// An empty request; the status of the call.
grpc::Status CallEmpty(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                       grpc::ClientContext* context) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(context, method, &queue);
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
  };
  grpc::Status status;
  call->StartCall(nullptr);
  next();
  call->WriteLast(grpc::ByteBuffer(nullptr, 0), grpc::WriteOptions(), nullptr);
  next();
  call->Finish(&status, nullptr);
  next();
  return status;
}

class AccessTest : public ServerTest {};

TEST_F(AccessTest, EveryMethodHasARole) {
  EXPECT_GE(AllMethods().size(), 22u);
  for (const auto* method : AllMethods()) {
    EXPECT_TRUE(auth::RequiredRole(PathOf(*method)).has_value()) << PathOf(*method) << " needs a row in auth/roles.cc";
  }
}

TEST_F(AccessTest, NothingAnswersWithoutAToken) {
  for (const auto* method : AllMethods()) {
    grpc::ClientContext context;
    const grpc::Status status = CallEmpty(channel(), PathOf(*method), &context);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << PathOf(*method) << status.error_message();
  }
}

TEST_F(AccessTest, ViewersChangeNothing) {
  int denied = 0;
  for (const auto* method : AllMethods()) {
    if (*auth::RequiredRole(PathOf(*method)) == store::Role::kViewer) continue;
    const auto context = As("vera", store::Role::kViewer);
    EXPECT_EQ(CallEmpty(channel(), PathOf(*method), context.get()).error_code(), grpc::StatusCode::PERMISSION_DENIED)
        << PathOf(*method);
    ++denied;
  }
  EXPECT_GE(denied, 6);
  EXPECT_TRUE(loop_.commands().empty());
}

TEST_F(AccessTest, WhoAmI) {
  const auto stub = v1::SystemService::NewStub(channel());
  v1::WhoAmIResponse response;
  ASSERT_TRUE(stub->WhoAmI(As("ana", store::Role::kOperator).get(), {}, &response).ok());
  EXPECT_EQ(response.user(), "ana");
  EXPECT_EQ(response.role(), "operator");
}

TEST_F(AccessTest, AGarbledTokenIsRefused) {
  for (const std::string& value : {std::string("Bearer nonsense"), std::string("Basic eDp5"), std::string("Bearer ")}) {
    const auto stub = v1::SystemService::NewStub(channel());
    grpc::ClientContext context;
    context.AddMetadata("authorization", value);
    v1::WhoAmIResponse response;
    EXPECT_EQ(stub->WhoAmI(&context, {}, &response).error_code(), grpc::StatusCode::UNAUTHENTICATED) << value;
  }
}

}  // namespace
}  // namespace tp::api
