"""Endpoints: what each process sees of the card. Command slots, doorbells, queues and arrivals."""

# SPDX-License-Identifier: BSD-2-Clause
