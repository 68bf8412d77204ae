# SPDX-License-Identifier: BSD-2-Clause

import sys

from dibber_cli.pipe import quiet


def main() -> int | None:
    # The imports take a second. Signals already end the program properly in this time.
    from dibber_cli.main import main

    return main()


sys.exit(quiet(main))
