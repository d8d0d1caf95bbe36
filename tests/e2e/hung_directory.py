"""A directory on storage that hangs: whoever opens it or what is in it waits, in the kernel, until it is mended.

A fanotify mark asks this process for leave and gets no answer. Needs root.
"""

import ctypes
import os

FAN_CLASS_CONTENT = 0x4
FAN_CLOEXEC = 0x1
FAN_MARK_ADD = 0x1
FAN_OPEN_PERM = 0x10000
FAN_EVENT_ON_CHILD = 0x08000000
FAN_ONDIR = 0x40000000
AT_FDCWD = -100

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


class HungDirectory:
    """Hangs from now on, until `mend`. Nothing of this process may open anything in it."""

    def __init__(self, path):
        self.fd = check(libc.fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, os.O_RDONLY), "fanotify_init")
        mask = ctypes.c_uint64(FAN_OPEN_PERM | FAN_ONDIR | FAN_EVENT_ON_CHILD)
        check(libc.fanotify_mark(self.fd, FAN_MARK_ADD, mask, AT_FDCWD, os.fsencode(path)), "fanotify_mark")

    def mend(self):
        """All who wait go on: the kernel gives leave where nobody listens any more."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
