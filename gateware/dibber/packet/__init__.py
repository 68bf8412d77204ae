"""Packets: headers, CRCs, flows with retry, acknowledgements, and their receivers and senders."""

# SPDX-License-Identifier: BSD-2-Clause
