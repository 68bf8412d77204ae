# This file is part of Dibber.
# SPDX-License-Identifier: BSD-2-Clause

"""A command line whose options stand before, between or behind its other words."""

import argparse


class Parser(argparse.ArgumentParser):
    """argparse alone does not take `URI --golden FILE` where the URI may be left out, nor `URI --json URI` where there may be many."""

    def parse_known_args(self, args=None, namespace=None):
        plain = super().parse_known_args
        if not any(action.nargs in ("?", "*") for action in self._get_positional_actions()):
            return plain(args, namespace)
        # Python before 3.13 parses twice, by this very method.
        self.parse_known_args = plain
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            del self.parse_known_args
