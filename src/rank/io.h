// Small file-descriptor helpers shared by every part of tp-rank.
// Functions that return bool set errno when they return false.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

bool io_write_all(int fd, const void* data, size_t size);

// Reads a whole regular file as text, ending it with NUL; follows no symbolic link and never blocks
// on a FIFO. Returns its length, or -1 (EFBIG when it does not fit, EINVAL when not a regular file).
ssize_t io_read_text_at(int dir_fd, const char* name, char* text, size_t capacity);

// Makes stdin, stdout and stderr refer to /dev/null.
bool io_null_stdio(void);

// Opens /dev/null in place of each of stdin, stdout and stderr that is closed.
bool io_fill_stdio(void);

// Closes every descriptor above stderr apart from the ones named.
void io_close_all_except(const int* keep, size_t keep_count);

void io_close(int* fd);
