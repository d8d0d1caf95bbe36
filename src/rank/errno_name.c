#include "errno_name.h"

#include <errno.h>
#include <stddef.h>

const char* errno_name(int error) {
  static const struct {
    int error;
    const char* name;
  } kNames[] = {
      {E2BIG, "E2BIG"},
      {EACCES, "EACCES"},
      {EAGAIN, "EAGAIN"},
      {EBUSY, "EBUSY"},
      {EINVAL, "EINVAL"},
      {EIO, "EIO"},
      {EISDIR, "EISDIR"},
      {ELIBBAD, "ELIBBAD"},
      {ELOOP, "ELOOP"},
      {EMFILE, "EMFILE"},
      {ENAMETOOLONG, "ENAMETOOLONG"},
      {ENFILE, "ENFILE"},
      {ENOENT, "ENOENT"},
      {ENOEXEC, "ENOEXEC"},
      {ENOMEM, "ENOMEM"},
      {ENOTDIR, "ENOTDIR"},
      {EPERM, "EPERM"},
      {ESTALE, "ESTALE"},
      {ETXTBSY, "ETXTBSY"},
  };
  for (size_t i = 0; i < sizeof kNames / sizeof kNames[0]; ++i) {
    if (kNames[i].error == error) return kNames[i].name;
  }
  return "EUNKNOWN";
}
