#include "tree.h"

#include <stdbool.h>

static bool contains(const struct process_list* list, pid_t pid) {
  for (size_t i = 0; i < list->count; ++i) {
    if (list->items[i].pid == pid) return true;
  }
  return false;
}

static bool is_helper(pid_t pid, const pid_t* helpers, size_t helper_count) {
  for (size_t i = 0; i < helper_count; ++i) {
    if (helpers[i] == pid) return true;
  }
  return false;
}

void tree_close_over_children(struct process_list* tree, const struct process_list* all) {
  for (size_t next = 0; next < tree->count; ++next) {
    pid_t parent = tree->items[next].pid;
    for (size_t i = 0; i < all->count; ++i) {
      const struct process* process = &all->items[i];
      if (process->parent != parent || contains(tree, process->pid)) continue;
      if (!process_list_add(tree, process)) return;
    }
  }
}

struct process_list tree_list(pid_t runner, const pid_t* helpers, size_t helper_count) {
  struct process_list all = process_list_all();
  struct process_list tree = {0};
  for (size_t i = 0; i < all.count; ++i) {
    const struct process* process = &all.items[i];
    if (process->parent != runner || is_helper(process->pid, helpers, helper_count)) continue;
    if (!process_list_add(&tree, process)) break;
  }
  tree_close_over_children(&tree, &all);
  process_list_free(&all);
  return tree;
}

void tree_signal(const struct process_list* tree, int signal_number) {
  for (size_t i = 0; i < tree->count; ++i) {
    if (!tree->items[i].alive) continue;
    process_signal(tree->items[i].pid, tree->items[i].start_ticks, signal_number, NULL);
  }
}

void tree_signal_catching(const struct process_list* tree, int signal_number) {
  for (size_t i = 0; i < tree->count; ++i) {
    if (!process_catches(tree->items[i].pid, signal_number)) continue;
    process_signal(tree->items[i].pid, tree->items[i].start_ticks, signal_number, NULL);
  }
}
