// A trace of a GPU cluster as two tables (Alibaba's cluster-trace-gpu-v2023): nodes with their model and
// number of cards, tasks with the models they may use, creation, start and end.
//
// A model is a series; where its nodes have different numbers of cards, there is one for each number
// (`t4-2`, `t4-4`). The series `cpu` is all nodes, one place each. A task
// - asks for whole cards of one node: a part of a card counts as one, none is a job of the series cpu;
// - that may use several models takes the first; that names none may use all;
// - of the series that are left and have as many cards a node goes to the one with the most cards;
// - runs from its start to its end; one that was never started there runs from its creation;
// - belongs to the user that its class of service stands for, as the trace names no users.
#pragma once

#include <string_view>

#include "config/registry_file.h"
#include "decode/problem.h"
#include "simulate/workload.h"

namespace tp::simulate {

struct GpuTrace {
  config::RegistryFile registry;
  Workload workload;
};

GpuTrace ReadGpuTrace(std::string_view nodes_csv, decode::Problems& nodes_problems, std::string_view tasks_csv,
                      decode::Problems& tasks_problems);

}  // namespace tp::simulate
