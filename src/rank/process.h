// Looks at and signals processes through /proc and pidfds. A process is named by its pid together
// with its start time in clock ticks since boot, so that a reused pid is never taken for it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
  pid_t pid;
  pid_t parent;
  pid_t session;
  uint64_t start_ticks;
  bool alive;       // false for a zombie without live threads
  bool has_memory;  // false for a kernel thread and for a zombie
};

struct process_list {
  struct process* items;
  size_t count;
  size_t capacity;
};

bool process_read(pid_t pid, struct process* process);

// True while the very process that was named lives.
bool process_is_alive(pid_t pid, uint64_t start_ticks);

bool process_catches(pid_t pid, int signal_number);

enum process_environment {
  ENVIRONMENT_HAS,
  ENVIRONMENT_LACKS,    // also where this user may not look
  ENVIRONMENT_UNKNOWN,  // the process is just being executed, or has just ended
};

// Does the environment it was executed with hold the entry `NAME=value`?
enum process_environment process_look_up(const struct process* process, const char* entry);

// Sends a signal to exactly the named process. False with ESRCH when it is gone. A non-NULL value
// is queued with the signal.
bool process_signal(pid_t pid, uint64_t start_ticks, int signal_number, const int* value);

// Visits every process that can be seen; one that lives all the while is never missed.
void process_for_each(void (*visit)(const struct process* process, void* context), void* context);

// Free with process_list_free(). Incomplete when memory is short.
struct process_list process_list_all(void);
bool process_list_add(struct process_list* list, const struct process* process);
void process_list_free(struct process_list* list);
