# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""A program whose output goes to one that stops reading, as `head` does."""

import os
import select
import signal
import sys


def unread():
    """Whether stdout is a pipe that nobody reads any more."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def quiet(main):
    """The exit code of main(). When nobody reads its output any more it ends without a word, with the code that a shell has for that."""
    try:
        try:
            return main()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not unread():
            raise
        # Python writes at its end what it still has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
