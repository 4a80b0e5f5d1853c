"""Makes Linux look like a system that has less: `make test-portable` puts this folder on the path of every process.

What macOS or Windows lack is removed before anything is imported, so that code which needs it fails here as it would
there.
"""

import os
import select
import sys

for name in ("memfd_create", "pidfd_open", "sched_getaffinity", "sched_setaffinity", "sched_yield"):
    if hasattr(os, name):
        delattr(os, name)
del select.poll
for module in ("fcntl", "resource"):
    sys.modules[module] = None
