#include "plan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  PLAN_MAX_BYTES = 64 << 20,
  HEADER_MAX_BYTES = 64,
};

static const char kHeaderFormat[] = "tp-plan 1 %zu %zu%n";

// What the first character of each string says.
enum string_kind { KIND_RANK = 'R', KIND_ENVIRONMENT = 'E', KIND_ARGUMENT = 'A' };

static const char* read_all(int fd, char** bytes, size_t* size) {
  size_t capacity = 0;
  *bytes = NULL;
  *size = 0;
  for (;;) {
    if (*size == capacity) {
      if (capacity >= PLAN_MAX_BYTES) return "the plan is too large";
      capacity = capacity == 0 ? 1 << 16 : capacity * 2;
      char* larger = realloc(*bytes, capacity);
      if (larger == NULL) return "out of memory";
      *bytes = larger;
    }
    ssize_t got = read(fd, *bytes + *size, capacity - *size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return strerror(errno);
    if (got == 0) return NULL;
    *size += (size_t)got;
  }
}

// Returns the payload's offset, or 0 when the header does not fit what was read.
static size_t check_header(const char* bytes, size_t size, size_t* rank_count) {
  char header[HEADER_MAX_BYTES];
  size_t payload_size;
  int header_length = 0;
  const char* newline = memchr(bytes, '\n', size < sizeof header ? size : sizeof header);
  if (newline == NULL) return 0;
  size_t length = (size_t)(newline - bytes);
  memcpy(header, bytes, length);
  header[length] = '\0';
  if (sscanf(header, kHeaderFormat, rank_count, &payload_size, &header_length) != 2) return 0;
  if ((size_t)header_length != length || payload_size != size - length - 1) return 0;
  if (payload_size == 0 || bytes[size - 1] != '\0') return 0;
  return length + 1;
}

static size_t count_strings(const char* bytes, size_t size) {
  size_t count = 0;
  for (size_t i = 0; i < size; ++i) count += bytes[i] == '\0';
  return count;
}

// Lays the strings of all ranks out as NULL-terminated lists: per rank its environment, then its
// arguments. `next` walks over the payload.
struct cursor {
  char* next;
  char* end;
  char** slot;
};

static char* peek(const struct cursor* cursor, enum string_kind kind) {
  return cursor->next < cursor->end && cursor->next[0] == (char)kind ? cursor->next + 1 : NULL;
}

static char** take_list(struct cursor* cursor, enum string_kind kind) {
  char** list = cursor->slot;
  char* text;
  while ((text = peek(cursor, kind)) != NULL) {
    *cursor->slot++ = text;
    cursor->next += strlen(cursor->next) + 1;
  }
  *cursor->slot++ = NULL;
  return list;
}

static bool is_environment(char** list) {
  for (; *list != NULL; ++list) {
    if ((*list)[0] == '=' || strchr(*list, '=') == NULL) return false;
  }
  return true;
}

static const char* take_rank(struct cursor* cursor, struct plan_rank* rank) {
  const char* problem;
  const char* mark = peek(cursor, KIND_RANK);
  if (mark == NULL || *mark != '\0') return "a rank is missing";
  cursor->next += 2;
  rank->environment = take_list(cursor, KIND_ENVIRONMENT);
  if (!is_environment(rank->environment)) return "an environment entry lacks its name";
  char** arguments = take_list(cursor, KIND_ARGUMENT);
  return options_parse(arguments, &rank->options, &problem) ? NULL : problem;
}

const char* plan_read(int fd, struct plan* plan) {
  size_t size;
  *plan = (struct plan){0};
  const char* problem = read_all(fd, &plan->bytes, &size);
  if (problem != NULL) return problem;
  size_t offset = check_header(plan->bytes, size, &plan->rank_count);
  if (offset == 0) return "the plan is truncated or its header is wrong";
  if (plan->rank_count == 0 || plan->rank_count > PLAN_MAX_RANKS) {
    return "the count of ranks is out of range";
  }
  size_t strings = count_strings(plan->bytes + offset, size - offset);
  plan->strings = (char**)calloc(strings + 2 * plan->rank_count, sizeof *plan->strings);
  plan->ranks = calloc(plan->rank_count, sizeof *plan->ranks);
  if (plan->strings == NULL || plan->ranks == NULL) return "out of memory";
  struct cursor cursor = {.next = plan->bytes + offset, .end = plan->bytes + size, .slot = plan->strings};
  for (size_t i = 0; i < plan->rank_count; ++i) {
    problem = take_rank(&cursor, &plan->ranks[i]);
    if (problem != NULL) return problem;
  }
  return cursor.next == cursor.end ? NULL : "the plan holds more than its ranks";
}

void plan_free(struct plan* plan) {
  free(plan->bytes);
  free((void*)plan->strings);
  free(plan->ranks);
}
