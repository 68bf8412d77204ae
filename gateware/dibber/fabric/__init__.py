"""What lies between cards: switches."""

# SPDX-License-Identifier: BSD-2-Clause
