"""Makes Linux look like a system that has less: `make test-portable` puts this folder on the path of every process.

What macOS or Windows lack is removed before anything is imported, so that code which needs it fails here as it would
there.
"""

import os
import select
import signal
import sys

ONLY_LINUX = {
    os: (
        *("memfd_create", "pidfd_open", "eventfd", "eventfd_read", "eventfd_write", "pipe2", "getrandom"),
        *("sched_getaffinity", "sched_setaffinity", "sched_yield", "splice", "copy_file_range"),
        *("posix_fadvise", "posix_fallocate"),
    ),
    select: ("poll", "epoll"),
    signal: ("pidfd_send_signal",),
}
for module, names in ONLY_LINUX.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
for missing in ("fcntl", "resource"):
    sys.modules[missing] = None
