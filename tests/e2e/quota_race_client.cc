// quota_race_client SERVER ROUNDS: in each round clients of two users submit and stop jobs while an admin edits
// their quotas, all at once. Ends with nothing of them left waiting. stdin: lines `USER TOKEN`, the admin's first,
// then the two users'.
#include <array>
#include <barrier>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "tests/bench/rpc_client.h"
#include "tp/v1/quota.grpc.pb.h"
#include "tp/v1/run.grpc.pb.h"

namespace {

using tp::load::Authorize;
using tp::load::Check;
using tp::load::Connect;

constexpr int kClients = 8;

struct User {
  std::string name;
  std::string token;
};

std::string RequestId(int client, int call) { return "race-" + std::to_string(client) + "-" + std::to_string(call); }

// One of several of the same user: each round it submits a job or stops one of its own.
class Client {
 public:
  Client(const std::string& server, int number, User user)
      : number_(number),
        user_(std::move(user)),
        stub_(tp::v1::RunService::NewStub(Connect(server, number))),
        dice_(number) {}

  void Round() {
    if (mine_.empty() || Dice(2) == 0) {
      Submit();
    } else {
      StopOne();
    }
  }

  void StopAll() {
    while (!mine_.empty()) StopOne();
  }

 private:
  size_t Dice(size_t sides) { return std::uniform_int_distribution<size_t>(0, sides - 1)(dice_); }

  void Submit() {
    static const std::array<const char*, 5> kProfiles = {"g:1", "g:2", "g:4", "g:8", "cpu:1"};
    tp::v1::SubmitRunRequest request;
    request.set_request_id(RequestId(number_, calls_++));
    request.set_name("race");
    tp::v1::StepSpec* step = request.add_steps();
    step->set_name("race");
    step->add_profiles(kProfiles.at(Dice(kProfiles.size())));
    step->add_argv("sleep");
    step->add_argv(Dice(2) == 0 ? "0" : "0.2");
    grpc::ClientContext context;
    Authorize(context, user_.token);
    tp::v1::SubmitRunResponse response;
    Check(stub_->SubmitRun(&context, request, &response));
    mine_.push_back(response.run().id());
  }

  // That it is over already is as good. UNAVAILABLE: it ended this moment, and the call is made again.
  void StopOne() {
    std::swap(mine_.at(Dice(mine_.size())), mine_.back());
    tp::v1::StopRunRequest request;
    request.set_request_id(RequestId(number_, calls_++));
    request.set_run(mine_.back());
    mine_.pop_back();
    grpc::Status status = Stop(request);
    while (status.error_code() == grpc::StatusCode::UNAVAILABLE) status = Stop(request);
    if (status.error_code() != grpc::StatusCode::FAILED_PRECONDITION) Check(status);
  }

  grpc::Status Stop(const tp::v1::StopRunRequest& request) {
    grpc::ClientContext context;
    Authorize(context, user_.token);
    tp::v1::StopRunResponse response;
    return stub_->StopRun(&context, request, &response);
  }

  const int number_;
  const User user_;
  const std::unique_ptr<tp::v1::RunService::Stub> stub_;
  std::minstd_rand dice_;
  int calls_ = 0;
  std::vector<std::string> mine_;  // that it has not stopped
};

class Admin {
 public:
  Admin(const std::string& server, User admin, std::array<User, 2> users)
      : admin_(std::move(admin)),
        users_(std::move(users)),
        stub_(tp::v1::QuotaService::NewStub(Connect(server, kClients))),
        dice_(kClients) {}

  // Raises or lowers a user's limits.
  void Round() {
    static const std::array<int64_t, 6> kCards = {0, 2, 4, 8, 16, -1};
    static const std::array<int64_t, 6> kJobs = {0, 1, 2, 3, 6, -1};
    tp::v1::SetQuotaRequest request;
    request.set_request_id(RequestId(kClients, calls_++));
    request.set_user(users_.at(Dice(users_.size())).name);
    request.mutable_limits()->set_gpus(kCards.at(Dice(kCards.size())));
    request.mutable_limits()->set_jobs(kJobs.at(Dice(kJobs.size())));
    (*request.mutable_limits()->mutable_series_gpus())["g"] = kCards.at(Dice(kCards.size()));
    grpc::ClientContext context;
    Authorize(context, admin_.token);
    tp::v1::SetQuotaResponse response;
    Check(stub_->SetQuota(&context, request, &response));
  }

 private:
  size_t Dice(size_t sides) { return std::uniform_int_distribution<size_t>(0, sides - 1)(dice_); }

  const User admin_;
  const std::array<User, 2> users_;
  const std::unique_ptr<tp::v1::QuotaService::Stub> stub_;
  std::minstd_rand dice_;
  int calls_ = 0;
};

void Race(const std::string& server, int rounds, const User& admin, const std::array<User, 2>& users) {
  std::barrier round(kClients + 1);
  std::vector<std::thread> threads;
  for (int number = 0; number < kClients; ++number) {
    threads.emplace_back([&, number] {
      Client client(server, number, users.at(static_cast<size_t>(number) % users.size()));
      for (int i = 0; i < rounds; ++i) {
        round.arrive_and_wait();
        client.Round();
      }
      client.StopAll();
    });
  }
  Admin editor(server, admin, users);
  for (int i = 0; i < rounds; ++i) {
    round.arrive_and_wait();
    editor.Round();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  User admin;
  std::array<User, 2> users;
  std::cin >> admin.name >> admin.token;
  for (User& user : users) std::cin >> user.name >> user.token;
  if (argc != 3 || !std::cin) {
    std::cerr << "usage: see the head of tests/e2e/quota_race_client.cc\n";
    return 2;
  }
  Race(argv[1], std::stoi(argv[2]), admin, users);
  return 0;
}
