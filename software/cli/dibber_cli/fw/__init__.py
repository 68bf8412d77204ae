"""`dibber fw` and `dibber reset`: watching a control program, and rescuing the card from one."""

# SPDX-License-Identifier: BSD-2-Clause
