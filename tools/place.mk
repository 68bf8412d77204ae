# PLACE, the folder of a build: build/, or for other sizes than the usual ones a folder of its own there, such as
# build/nodes-64 (docs/design/nodes.md) and build/endpoints-16 (docs/design/endpoints.md). The makefiles include this file.
# gateware/dibber/interface/sizes.py says the same to Python.
#
# SPDX-License-Identifier: BSD-2-Clause

NODES     := $(or $(DIBBER_NODES),16)
ENDPOINTS := $(or $(DIBBER_ENDPOINTS),8)
PLACE     := build$(if $(filter-out 16,$(NODES)),/nodes-$(NODES))$(if $(filter-out 8,$(ENDPOINTS)),/endpoints-$(ENDPOINTS))
