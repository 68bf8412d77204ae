"""The control program's side: processor, registers, watchdog, halt, and the host registers."""

# SPDX-License-Identifier: BSD-2-Clause
