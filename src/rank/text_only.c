#include "text_only.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "TP_RANK_HEX_"

static const char kArgvName[] = PREFIX "ARGV";

static int digit(char c) {
  static const char kDigits[] = "0123456789abcdef";
  const char* at = c == '\0' ? NULL : strchr(kDigits, c);
  return at == NULL ? -1 : (int)(at - kDigits);
}

// The bytes take the place of their hex.
static bool decode(char* text) {
  char* out = text;
  for (; *text != '\0'; text += 2) {
    int high = digit(text[0]);
    int low = high < 0 ? -1 : digit(text[1]);
    if (low < 0 || (high == 0 && low == 0)) return false;
    *out++ = (char)(high * 16 + low);
  }
  *out = '\0';
  return true;
}

static const char* find_encoded(void) {
  for (char** entry = environ; *entry != NULL; ++entry) {
    if (strncmp(*entry, PREFIX, sizeof PREFIX - 1) == 0) return *entry;
  }
  return NULL;
}

static bool replace(const char* entry) {
  char* copy = strdup(entry);
  char* equals = copy == NULL ? NULL : strchr(copy, '=');
  bool good = equals != NULL;
  if (good) {
    *equals = '\0';
    good = decode(equals + 1) && unsetenv(copy) == 0 && setenv(copy + sizeof PREFIX - 1, equals + 1, 1) == 0;
  }
  free(copy);
  return good;
}

bool text_only_decode(char** job_argv) {
  const char* words = getenv(kArgvName);
  bool hex_words = words != NULL && strcmp(words, "1") == 0;
  if (words != NULL && unsetenv(kArgvName) != 0) return false;
  for (char** word = job_argv; hex_words && *word != NULL; ++word) {
    if (!decode(*word)) return false;
  }
  for (const char* entry = find_encoded(); entry != NULL; entry = find_encoded()) {
    if (!replace(entry)) return false;
  }
  return true;
}
