"""The fast path: commands and requests that hardware completes without the control program."""

# SPDX-License-Identifier: BSD-2-Clause
