#include "options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define KIB INT64_C(1024)

enum {
  KEY_MAX_CHARS = 64,
  NONCE_MAX_CHARS = 128,
  INDEX_MAX_DIGITS = 6,
  PATH_MAX_CHARS = 2048,
};

static const char kNameChars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

static bool is_name(const char* text, size_t max_chars) {
  size_t length = strlen(text);
  return length > 0 && length <= max_chars && strspn(text, kNameChars) == length;
}

bool options_is_index(const char* text) {
  size_t length = strlen(text);
  return length > 0 && length <= INDEX_MAX_DIGITS && strspn(text, "0123456789") == length;
}

static bool is_absolute_path(const char* text) {
  return text[0] == '/' && strlen(text) <= PATH_MAX_CHARS && strpbrk(text, "\n\r") == NULL;
}

static bool parse_number(const char* text, int64_t minimum, int64_t* value) {
  char* end;
  errno = 0;
  long long number = strtoll(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || number < minimum) return false;
  *value = number;
  return true;
}

struct option_slot {
  const char* name;
  const char** text;  // exactly one of text and number is set
  int64_t* number;
  int64_t minimum;
};

static bool assign(const struct option_slot* slots, size_t count, const char* name, const char* value,
                   const char** problem) {
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(slots[i].name, name) != 0) continue;
    if (slots[i].text != NULL) {
      *slots[i].text = value;
      return true;
    }
    *problem = "a numeric option is not a number or below its minimum";
    return parse_number(value, slots[i].minimum, slots[i].number);
  }
  *problem = "unknown option";
  return false;
}

static const char* find_problem(const struct run_options* options) {
  if (options->dir == NULL || !is_absolute_path(options->dir)) return "--dir must be an absolute path";
  if (options->workdir == NULL || !is_absolute_path(options->workdir)) {
    return "--workdir must be an absolute path";
  }
  if (options->cgroup != NULL && !is_absolute_path(options->cgroup)) {
    return "--cgroup must be an absolute path";
  }
  if (options->key == NULL || !is_name(options->key, KEY_MAX_CHARS)) {
    return "--key must be 1 to 64 of [A-Za-z0-9._-]";
  }
  if (options->nonce == NULL || !is_name(options->nonce, NONCE_MAX_CHARS)) {
    return "--nonce must be 1 to 128 of [A-Za-z0-9._-]";
  }
  if (options->pool == NULL || !options_is_index(options->pool)) return "--pool must be an index";
  if (options->rank == NULL || !options_is_index(options->rank)) return "--rank must be an index";
  if (options->argv == NULL || options->argv[0] == NULL) return "no command after --";
  return NULL;
}

bool options_parse(char** arguments, struct run_options* options, const char** problem) {
  *options = (struct run_options){
      .log_max_bytes = 1024 * 1024 * KIB,
      .log_stall_ms = 30000,
      .heartbeat_ms = 10000,
      .end_grace_ms = 2000,
  };
  const struct option_slot slots[] = {
      {.name = "--dir", .text = &options->dir},
      {.name = "--key", .text = &options->key},
      {.name = "--nonce", .text = &options->nonce},
      {.name = "--pool", .text = &options->pool},
      {.name = "--rank", .text = &options->rank},
      {.name = "--workdir", .text = &options->workdir},
      {.name = "--cgroup", .text = &options->cgroup},
      {.name = "--log-max-bytes", .number = &options->log_max_bytes, .minimum = 4 * KIB},
      {.name = "--log-stall-ms", .number = &options->log_stall_ms, .minimum = 0},
      {.name = "--heartbeat-ms", .number = &options->heartbeat_ms, .minimum = 10},
      {.name = "--end-grace-ms", .number = &options->end_grace_ms, .minimum = 0},
  };
  for (; *arguments != NULL; arguments += 2) {
    if (strcmp(arguments[0], "--") == 0) {
      options->argv = arguments + 1;
      break;
    }
    if (arguments[1] == NULL) {
      *problem = "an option lacks its value";
      return false;
    }
    if (!assign(slots, sizeof slots / sizeof slots[0], arguments[0], arguments[1], problem)) {
      return false;
    }
  }
  *problem = find_problem(options);
  return *problem == NULL;
}
