#include "signals.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"

bool order_parse(const char* word, enum order* order) {
  static const struct {
    const char* word;
    enum order order;
  } kOrders[] = {{"warn", ORDER_WARN}, {"term", ORDER_TERM}, {"kill", ORDER_KILL}};
  for (size_t i = 0; i < sizeof kOrders / sizeof kOrders[0]; ++i) {
    if (strcmp(kOrders[i].word, word) != 0) continue;
    *order = kOrders[i].order;
    return true;
  }
  return false;
}

// The low 29 bits of the nonce's 64-bit FNV-1a hash.
static uint32_t nonce_token(const char* nonce) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (; *nonce != '\0'; ++nonce) {
    hash ^= (unsigned char)*nonce;
    hash *= UINT64_C(0x100000001b3);
  }
  return (uint32_t)(hash & 0x1fffffff);
}

int order_encode(const char* nonce, enum order order) { return (int)(nonce_token(nonce) << 2 | (uint32_t)order); }

bool order_decode(const char* nonce, int value, enum order* order) {
  for (enum order each = ORDER_WARN; each <= ORDER_KILL; ++each) {
    if (order_encode(nonce, each) != value) continue;
    *order = each;
    return true;
  }
  return false;
}

static bool sets_signalled(int signal_number, enum sender sender) {
  return signal_number == SIGTERM || (signal_number == SIGUSR1 && sender == SENDER_TPD);
}

void journal_add(struct signal_journal* journal, int signal_number, enum sender sender) {
  if (!journal->signalled && sets_signalled(signal_number, sender)) {
    journal->signalled = true;
    journal->signalled_by = sender;
  }
  if (journal->count == JOURNAL_ENTRIES) return;
  journal->entries[journal->count].signal_number = signal_number;
  journal->entries[journal->count].sender = sender;
  journal->entries[journal->count].boot_us = clock_boot_us();
  ++journal->count;
}

static const char* signal_name(int signal_number) {
  switch (signal_number) {
    case SIGTERM:
      return "TERM";
    case SIGINT:
      return "INT";
    case SIGUSR1:
      return "USR1";
    case SIGKILL:
      return "KILL";
    default:
      return "OTHER";
  }
}

const char* sender_name(enum sender sender) {
  switch (sender) {
    case SENDER_TPD:
      return "tpd";
    case SENDER_OTHER:
      return "other";
  }
  return "";
}

void journal_format(const struct signal_journal* journal, char* text, size_t capacity) {
  size_t length = 0;
  text[0] = '\0';
  for (size_t i = 0; i < journal->count; ++i) {
    int added = snprintf(text + length, capacity - length, "%s%s:%s:%lld", i == 0 ? "" : " ",
                         signal_name(journal->entries[i].signal_number), sender_name(journal->entries[i].sender),
                         (long long)journal->entries[i].boot_us);
    if (added < 0 || (size_t)added >= capacity - length) return;
    length += (size_t)added;
  }
}

void signals_block_all(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  struct sigaction standard = {.sa_handler = SIG_DFL};
  for (int number = 1; number <= 64; ++number) sigaction(number, &standard, NULL);
}

void signals_unblock_all(void) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}
