// Tables of a GPU cluster: which series there are, and where each task goes.
#include "simulate/gpu_trace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tp::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kNodes[] =
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "n1,64000,1,8,G2\nn2,64000,1,8,G2\nn3,64000,1,2,T4\nn4,64000,1,4,T4\nn5,64000,1,4,T4\n";
constexpr char kHeader[] =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";

struct Read {
  GpuTrace trace;
  std::vector<std::string> problems;
};

Read ReadTasks(const std::string& tasks, const std::string& nodes = kNodes) {
  decode::Problems node_problems("nodes.csv");
  decode::Problems task_problems("tasks.csv");
  Read read;
  read.trace = ReadGpuTrace(nodes, node_problems, kHeader + tasks, task_problems);
  read.problems = node_problems.Lines();
  for (const std::string& line : task_problems.Lines()) read.problems.push_back(line);
  return read;
}

TEST(GpuTrace, ASeriesForEachModelAndNumberOfCards) {
  const Read read = ReadTasks("");
  EXPECT_THAT(read.problems, IsEmpty());
  std::vector<std::string> series;
  for (const auto& entry : read.trace.registry.series) {
    series.push_back(fmt::format("{} {}x{}", entry.key, entry.value.nodes.size(), entry.value.gpus_per_node));
  }
  EXPECT_THAT(series, ElementsAre("g2 2x8", "t4-2 1x2", "t4-4 2x4", "cpu 5x0"));
}

TEST(GpuTrace, WhereTasksGo) {
  const Read read = ReadTasks(
      "a,1,1,1,460,,LS,Running,10,100,20\n"
      "b,1,1,2,1000,T4|G2,BE,Running,10,100,20\n"
      "c,1,1,0,0,,BE,Succeeded,10,100,20\r\n"
      "d,1,1,1,1000,G2,BE,Pending,10,40,\n"
      "e,1,1,8,1000,T4,BE,Running,10,100,20\n"
      "f,1,1,1,1000,H100,BE,Running,10,100,20\n");
  EXPECT_THAT(read.problems, IsEmpty());
  std::vector<std::string> jobs;
  for (const Submission& job : read.trace.workload.jobs) {
    jobs.push_back(fmt::format("{} {} {}s{}", job.user, job.profile, absl::ToInt64Seconds(job.runs),
                               job.refused.empty() ? "" : ", " + job.refused));
  }
  EXPECT_THAT(jobs, ElementsAre("ls g2:1 80s", "be t4-4:2 80s", "be cpu:1 80s", "be g2:1 30s",
                                "be T4:8 80s, no node of model T4 has 8 cards",
                                "be H100:1 80s, no node of model H100 has 1 cards"));
  EXPECT_THAT(read.trace.workload.notes,
              ElementsAre("1 tasks use a part of a card and get a whole one",
                          "1 tasks may use several models and take the first",
                          "1 tasks were never started there and run from their creation to their end"));
}

TEST(GpuTrace, HostileTables) {
  EXPECT_THAT(
      ReadTasks("a,1,1\na,1,1,-1,0,,BE,Running,1,2,1\na,1,1,1,0,,b e,Running,1,2,1\na,1,1,1,0,,BE,Running,9,2,1e9\n")
          .problems,
      ElementsAre("tasks.csv:2:1: 3 cells, and the header has 11",
                  "tasks.csv:3:1: not a task: '-1' cards, class 'BE', created '1', started '1', ended '2'",
                  "tasks.csv:4:1: not a task: '1' cards, class 'b e', created '1', started '1', ended '2'",
                  "tasks.csv:5:1: not a task: '1' cards, class 'BE', created '9', started '1e9', ended '2'"));
  EXPECT_THAT(ReadTasks("", "sn,gpu\n").problems, ElementsAre("nodes.csv:1:1: the header has no column model"));
  EXPECT_THAT(ReadTasks("", "sn,gpu,model\nn1,0,G2\nn1,8,G2\nn1,8,G2\nn2,8,cpu\n").problems,
              ElementsAre("nodes.csv:2:1: not a node: 'n1' with '0' cards of model 'G2'",
                          "nodes.csv:4:1: node n1 is here twice",
                          "nodes.csv:5:1: not a node: 'n2' with '8' cards of model 'cpu'"));
}

}  // namespace
}  // namespace tp::simulate
