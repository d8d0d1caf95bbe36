// The job's process tree as seen from a living runner, which is its subreaper: all descendants of
// the runner apart from its helpers.
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "process.h"

// The tree, parents before children. Free with process_list_free().
struct process_list tree_list(pid_t runner, const pid_t* helpers, size_t helper_count);

void tree_signal(const struct process_list* tree, int signal_number);

// Signals only the processes that catch the signal, so that it kills none.
void tree_signal_catching(const struct process_list* tree, int signal_number);

// Appends to `tree` every process of `all` that descends from one in it, until there is none.
void tree_close_over_children(struct process_list* tree, const struct process_list* all);
