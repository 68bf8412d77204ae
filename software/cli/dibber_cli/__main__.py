# SPDX-License-Identifier: BSD-2-Clause

import sys

from dibber_cli.pipe import quiet


def main():
    # Its imports take a second, in which signals already end the program as they must.
    from dibber_cli.main import main

    return main()


sys.exit(quiet(main))
