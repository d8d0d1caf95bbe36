// The signals a runner receives: how tpd's orders are encoded, and the journal for the end record.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// SIGRTMIN+1 as glibc counts; a number, because other C libraries count differently.
#define ORDER_SIGNAL 35

enum order { ORDER_WARN = 1, ORDER_TERM = 2, ORDER_KILL = 3 };

bool order_parse(const char* word, enum order* order);

// The value queued with ORDER_SIGNAL: it proves that the sender read this launch's nonce.
int order_encode(const char* nonce, enum order order);
bool order_decode(const char* nonce, int value, enum order* order);

enum sender { SENDER_TPD, SENDER_OTHER };

enum { JOURNAL_ENTRIES = 16 };

struct signal_journal {
  struct {
    int signal_number;
    enum sender sender;
    int64_t boot_us;
  } entries[JOURNAL_ENTRIES];
  size_t count;
  bool signalled;  // as the contract defines it; `signalled_by` is whose signal set it first
  enum sender signalled_by;
};

void journal_add(struct signal_journal* journal, int signal_number, enum sender sender);

// `NAME:who:boot_us`, separated by spaces.
void journal_format(const struct signal_journal* journal, char* text, size_t capacity);

const char* sender_name(enum sender sender);

// Blocks every signal and resets every disposition to the default.
void signals_block_all(void);

// For the job: the default dispositions are in place, nothing stays blocked.
void signals_unblock_all(void);
