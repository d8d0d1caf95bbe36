// Load on a running tpd, for scripts/bench. Prints one JSON object a call.
//   bench_client null-rpc CLIENTS SECONDS           authenticated calls that touch neither loop nor disk
//   bench_client submit CLIENTS SECONDS PROFILE     durable acknowledgements
//   bench_client jobs CLIENTS COUNT PROFILE CMD...  submits COUNT runs of CMD and follows them to their end
// Environment: TP_BENCH_SERVER (host:port), TP_BENCH_TOKEN_FILE.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "tests/bench/rpc_client.h"
#include "tp/v1/run.grpc.pb.h"
#include "tp/v1/system.grpc.pb.h"

namespace {

using Clock = std::chrono::steady_clock;
using tp::load::Authorize;
using tp::load::Check;

std::string Env(const char* name) {
  const char* value = std::getenv(name);
  if (!value) {
    std::cerr << "bench_client: set " << name << "\n";
    std::exit(2);
  }
  return value;
}

std::string Token() {
  std::ifstream file(Env("TP_BENCH_TOKEN_FILE"));
  std::string token;
  std::getline(file, token);
  return token;
}

std::shared_ptr<grpc::Channel> Connect(int client) { return tp::load::Connect(Env("TP_BENCH_SERVER"), client); }

// Calls `call(client, i)` from every client until the time is over or it says false; returns calls a second.
double Rate(int clients, double seconds, const std::function<bool(int, int)>& call) {
  std::atomic<int64_t> calls = 0;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration<double>(seconds);
  std::vector<std::thread> threads;
  for (int client = 0; client < clients; ++client) {
    threads.emplace_back([&, client] {
      for (int i = 0; Clock::now() < end && call(client, i); ++i) ++calls;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return static_cast<double>(calls) / std::chrono::duration<double>(Clock::now() - start).count();
}

tp::v1::SubmitRunRequest Request(const std::string& id, const std::string& profile,
                                 const std::vector<std::string>& argv) {
  tp::v1::SubmitRunRequest request;
  request.set_request_id(id);
  request.set_name("bench");
  tp::v1::StepSpec* step = request.add_steps();
  step->set_name("bench");
  step->add_profiles(profile);
  for (const std::string& word : argv) step->add_argv(word);
  return request;
}

std::string RequestId(int client, int i) {
  static const auto kLife = std::chrono::system_clock::now().time_since_epoch().count();
  return std::to_string(kLife) + "-" + std::to_string(client) + "-" + std::to_string(i);
}

int NullRpc(int clients, double seconds) {
  const std::string token = Token();
  std::vector<std::unique_ptr<tp::v1::SystemService::Stub>> stubs;
  for (int i = 0; i < clients; ++i) stubs.push_back(tp::v1::SystemService::NewStub(Connect(i)));
  const double rate = Rate(clients, seconds, [&](int client, int) {
    grpc::ClientContext context;
    Authorize(context, token);
    tp::v1::WhoAmIResponse response;
    Check(stubs[static_cast<size_t>(client)]->WhoAmI(&context, {}, &response));
    return true;
  });
  std::cout << "{\"rate\": " << rate << "}\n";
  return 0;
}

int Submit(int clients, double seconds, const std::string& profile) {
  const std::string token = Token();
  std::vector<std::unique_ptr<tp::v1::RunService::Stub>> stubs;
  for (int i = 0; i < clients; ++i) stubs.push_back(tp::v1::RunService::NewStub(Connect(i)));
  const double rate = Rate(clients, seconds, [&](int client, int i) {
    grpc::ClientContext context;
    Authorize(context, token);
    tp::v1::SubmitRunResponse response;
    Check(stubs[static_cast<size_t>(client)]->SubmitRun(&context, Request(RequestId(client, i), profile, {"true"}),
                                                        &response));
    return true;
  });
  std::cout << "{\"rate\": " << rate << "}\n";
  return 0;
}

// Follows the event stream until every run of `waiting` is over.
void FollowToTheEnd(tp::v1::RunService::Stub& stub, const std::string& token, std::atomic<int64_t>& over,
                    int64_t count) {
  grpc::ClientContext context;
  Authorize(context, token);
  tp::v1::WatchEventsRequest request;
  request.set_after_revision(0);
  auto stream = stub.WatchEvents(&context, request);
  tp::v1::WatchEventsResponse response;
  std::set<int64_t> ended;
  while (static_cast<int64_t>(ended.size()) < count && stream->Read(&response)) {
    const auto to = response.event().to();
    if (to == tp::v1::JOB_STATE_SUCCEEDED || to == tp::v1::JOB_STATE_FAILED) ended.insert(response.event().run());
    over = static_cast<int64_t>(ended.size());
  }
  context.TryCancel();
}

int Jobs(int clients, int count, const std::string& profile, const std::vector<std::string>& argv) {
  const std::string token = Token();
  std::vector<std::unique_ptr<tp::v1::RunService::Stub>> stubs;
  for (int i = 0; i < clients; ++i) stubs.push_back(tp::v1::RunService::NewStub(Connect(i)));
  std::atomic<int64_t> over = 0;
  std::thread follower([&] { FollowToTheEnd(*stubs[0], token, over, count); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the stream is open before the first event
  const auto start = Clock::now();
  std::atomic<int> next = 0;
  std::vector<std::thread> threads;
  for (int client = 0; client < clients; ++client) {
    threads.emplace_back([&, client] {
      for (int i = next++; i < count; i = next++) {
        grpc::ClientContext context;
        Authorize(context, token);
        tp::v1::SubmitRunResponse response;
        Check(stubs[static_cast<size_t>(client)]->SubmitRun(&context, Request(RequestId(client, i), profile, argv),
                                                            &response));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  follower.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::cout << "{\"seconds\": " << seconds << ", \"over\": " << over << "}\n";
  return over == count ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto number = [&](size_t i) { return std::stoi(words.at(i)); };
  if (words.size() == 3 && words[0] == "null-rpc") return NullRpc(number(1), number(2));
  if (words.size() == 4 && words[0] == "submit") return Submit(number(1), number(2), words[3]);
  if (words.size() >= 5 && words[0] == "jobs") {
    return Jobs(number(1), number(2), words[3], {words.begin() + 4, words.end()});
  }
  std::cerr << "usage: see the head of tests/bench/bench_client.cc\n";
  return 2;
}
