# `make help` says what there is. Every part builds below build/, keeps its output in build/log/ and
# does nothing when nothing has changed; results go to out/.
#
# SPDX-License-Identifier: BSD-2-Clause

PROFILE ?= gen2x4
SEED    ?= 1
BENCH   ?= stride
BOARD   ?= ecpix5
DESIGN  ?=
VARIANT ?=
# Nodes of a network, 16 or 64: programs of a build for 64 want DIBBER_NODES=64 (docs/design/nodes.md).
NODES   ?= $(or $(DIBBER_NODES),16)
# Endpoints of a card, 8 or 16: likewise DIBBER_ENDPOINTS (docs/design/endpoints.md).
ENDPOINTS ?= $(or $(DIBBER_ENDPOINTS),8)
export DIBBER_NODES := $(NODES)
export DIBBER_ENDPOINTS := $(ENDPOINTS)
include tools/place.mk
# A compiler's warning about the library is an error here: DEVELOPER= for a compiler that warns of more.
DEVELOPER ?= 1

ROOT   := $(CURDIR)
PYTHON := $(ROOT)/build/venv/bin/python
DIBBER := $(ROOT)/build/venv/bin/dibber
VENV   := $(ROOT)/build/venv/bin
PYTEST := $(PYTHON) -P -m pytest --seed $(SEED)
# Two files of tests at once, in the order of tests/conftest.py.
BOTH   := -n 2 --dist loadfile --no-loadscope-reorder

export PATH       := $(ROOT)/build/venv/bin:$(PATH)
export PYTHONPYCACHEPREFIX := $(ROOT)/build/pycache
# Modules come from Python's own folders, the environment and this tree. Programs that are modules are started with -P: the
# current folder has no part in it. Nor have settings for the user's own Python.
unexport PYTHONHOME PYTHONPATH PYTHONSTARTUP PYTHONUSERBASE PYTHONPLATLIBDIR

# Say what is done, keep its output in build/log/NAME.log, and show the end of that if it fails.
# $(call step,NAME,what it does,command)
define step
@mkdir -p build/log
@printf '%-10s %s\n' '$(1)' '$(2)'
@$(3) >build/log/$(1).log 2>&1 || { tail -n 40 build/log/$(1).log; \
	echo '$(1) failed; all of its output is in build/log/$(1).log'; exit 1; }
endef

.DEFAULT_GOAL := help
.PHONY: help install firmware simulator reference litepcie-rate library ofi shmem build models switches qemu driver mpi4py mpich bench \
        test test-quick test-formal test-system soak mutants lint check-rooms coverage bitstream \
        test-bitstream test-netlist test-netlist-same test-window test-ring test-links test-wide test-boards synthesis docs figures clean

help:
	@echo 'make bench        the strided deposit between two simulated cards: table, chart, out/stride-*'
	@echo '                  (BENCH="stride ...", PROFILE=$(PROFILE), SEED=$(SEED))'
	@echo 'make test         all tests, with two cards simulated and a guest in QEMU'
	@echo 'make test-quick   the tests of single blocks: minutes'
	@echo 'make lint         layout, likely faults, types, rooms: seconds; the first part of make test'
	@echo 'make check-rooms  circles of imports, files and subjects that are too long, words nobody explains'
	@echo 'make coverage     lines of the library and of the Python code that the tests run; minutes'
	@echo 'make test-formal  proofs of the gateware, a model check of the delivery protocol, their mutants'
	@echo 'make soak         20,000 random transfers, elements of all sizes, 1,000 faults of the cable, 1,000 of the control'
	@echo '                  program, 16 threads for 5 minutes, 100,000 and 1,000,000 runs of the fuzzers, long runs with bit errors,'
	@echo '                  100,000 packets through a torus of switches under faults, 100,000 calls of the Linux driver'
	@echo '                  at random, 200 of its processes killed: hours'
	@echo 'make mutants      small changes of the control program, each noticed by a test: minutes; a part of make soak'
	@echo 'make bitstream    a bitstream whose timing is met: BOARD=ecpix5 or versa_ecp5, DESIGN=card (not on versa_ecp5) or link,'
	@echo "                  SEED='1 2 3 4': the best of some;"
	@echo '                  BOARD=acorn (VARIANT=cle-215+, cle-215 or cle-101), kc705, kcu105, stlv7325 or vc707: the Vivado'
	@echo '                  project, and the bitstream where Vivado is; BOARD=acorn DESIGN=open: by openXC7, for the CLE-101'
	@echo 'make test-bitstream  the link tester for ECPIX-5: timing, and the figures that are kept: minutes'
	@echo 'make test-netlist  the core after synthesis, simulated gate by gate, does what its RTL does: minutes'
	@echo 'make test-netlist-same  the core without options is the netlist that it was: a minute, and a part of make test'
	@echo 'make test-window  two simulated cards with the remote window: minutes, because these cards are built first'
	@echo 'make test-ring    simulated cards on a ring: minutes, because these cards are built first'
	@echo 'make test-links   simulated cards with two links: minutes, because these cards are built first'
	@echo 'make test-wide    two simulated cards at 256 bits with a bonded link: minutes, because these cards are built first'
	@echo 'make test-boards  the designs of the PCIe boards: lint, Yosys, size, clock crossings; 20 minutes, goes on where it was'
	@echo 'make switches     simulated switches of 4, 8 and 16 ports, for topologies that have them: minutes'
	@echo 'make driver       the Linux driver dibber.ko, for the kernel of the tests (KERNEL=/lib/modules/…/build: for another one)'
	@echo 'make ofi          the libfabric provider, for MPI and other programs on libfabric'
	@echo 'make mpich        MPICH of PyPI in build/mpich, and a provider for the libfabric that it brings'
	@echo 'make shmem        OpenSHMEM over libdibber (dibber_shmem.h); a part of make ofi'
	@echo 'make docs         the interface reference, build/docs/interface.md'
	@echo 'make figures      measure every figure that has a target: docs/figures.md, out/figures.json'
	@echo 'make synthesis    size and clock of each engine and of the core on an ECP5-5G, and test-boards; hours'
	@echo 'make clean        remove what was built; results and what was downloaded stay'
	@echo
	@echo 'Each installs and builds what it needs first, once.'

# Parts --------------------------------------------------------------------------------------------

install:
	@./install.sh

firmware: install
	$(call step,firmware,the control program,$(MAKE) -C firmware)

simulator: install
	$(call step,simulator,the simulated card with its host model and cable,$(PYTHON) hw/sim/build.py --profile $(PROFILE) $(if $(FABRIC),--fabric $(FABRIC)))

# LitePCIe's own DMA on the same host model: what the model and the simulation speed are compared with.
reference: install
	$(call step,reference,the LitePCIe design that we compare with,$(PYTHON) hw/sim/reference/build_reference.py)

# Of these the one without a processor: the other one is for the simulation speed.
litepcie-rate: install
	$(call step,reference,LitePCIe on our host model,$(PYTHON) hw/sim/reference/build_reference.py litepcie-rate)

library: install
	$(call step,library,libdibber and its programs,$(MAKE) -C software/lib DEVELOPER=$(DEVELOPER))

shmem: library
	$(call step,shmem,OpenSHMEM over libdibber build/shmem/libdibber-shmem.so,$(MAKE) -C software/shmem DEVELOPER=$(DEVELOPER))

# The provider of libfabric, for the libfabric of the system.
ofi: library shmem
	$(call step,ofi,the provider of libfabric build/ofi/libdibber-fi.so,$(MAKE) -C software/ofi DEVELOPER=$(DEVELOPER))

build: firmware simulator library

# The cards of the tests at both data widths, whatever PROFILE is; host model and cable without a card. Half of a card's
# build can use one core only: two are built beside each other.
models: install
	$(call step,header,constants and registers for the simulator,$(PYTHON) -P -m dibber.interface.generate $(PLACE)/sim/generated)
	$(call step,cards,the simulated card at 64 and at 128 bits,{ \
		$(PYTHON) hw/sim/build.py --profile gen2x4 & wide=$$!; \
		$(PYTHON) hw/sim/build.py --profile gen2x1; narrow=$$?; wait $$wide && test $$narrow = 0; })
	$(call step,host-model,the host model and the cable without a card,$(PYTHON) hw/sim/build.py --test)
	$(call step,switch,a simulated switch of 4 ports,$(PYTHON) hw/sim/build.py --switch 4)

# The simulated switches of all sizes, at the clock of PROFILE; the tests need that of 4 ports alone.
switches: install
	$(call step,switches,simulated switches of three sizes,{ \
		$(PYTHON) hw/sim/build.py --profile $(PROFILE) --switch 4 && \
		$(PYTHON) hw/sim/build.py --profile $(PROFILE) --switch 8 && \
		$(PYTHON) hw/sim/build.py --profile $(PROFILE) --switch 16; })

# QEMU with vfio-user-pci, a kernel to boot in it and that kernel's headers: for tests only.
qemu: install
	@test -e build/qemu/root -a -e build/qemu/driver-modules -a -e build/qemu/headers -a -e build/qemu/tools || \
		echo 'qemu       unpacking QEMU and a kernel into build/qemu, nothing is installed'
	@$(PYTHON) tests/system/qemu/fetch.py build/qemu

# The kernel module, for the kernel of the tests, or with KERNEL=/lib/modules/…/build for another one.
driver: install $(if $(KERNEL),,qemu)
	$(call step,driver,the kernel module build/driver/dibber.ko,$(MAKE) -C software/driver)

# Results ------------------------------------------------------------------------------------------

# Half of a card's build uses one core only, so the other parts are built beside it.
.PHONY: bench-parts bench-others
bench-parts: install
	@$(MAKE) --no-print-directory -j2 simulator bench-others

bench-others: install
	@$(MAKE) --no-print-directory firmware
	@$(MAKE) --no-print-directory library
	@$(MAKE) --no-print-directory $(if $(filter all,$(BENCH)),reference,litepcie-rate)

# A star of 8 ranks or cards needs a switch of 8 ports.
bench: bench-parts $(if $(filter mpi all,$(BENCH)),ofi) \
       $(if $(filter mpi all hops pattern,$(BENCH)),switches) $(if $(filter tcp,$(BENCH)),qemu driver)
	@for name in $(BENCH); do $(DIBBER) bench $$name --profile $(PROFILE) --seed $(SEED) || exit 1; done

test: lint test-quick test-system

lint: install check-rooms
	@$(VENV)/ruff format --quiet --check . || { \
		echo 'lint       build/venv/bin/ruff format lays out these files:'; $(VENV)/ruff format --check .; exit 1; }
	@$(VENV)/ruff check --quiet .
	@$(PYTHON) -P -m tools.files '*.c' '*.h' '*.cc' | xargs -0 $(VENV)/clang-format --dry-run -Werror
	@$(VENV)/mypy --no-error-summary --cache-dir build/mypy

check-rooms: install
	@echo 'lint       layout, likely faults, rooms'
	@$(PYTHON) tools/rooms.py

# The library is built a second time, below build/coverage, with gcov's counters.
coverage: firmware
	@$(PYTHON) tools/measure_coverage.py --seed $(SEED)

test-quick: firmware library
	@echo 'test       blocks, each by itself'
	@$(PYTEST) $(BOTH) --junitxml build/junit-quick.xml --ignore tests/system --ignore tests/netlist --ignore tests/window --ignore tests/ring --ignore tests/links --ignore tests/wide tests

# FORMAL="--jobs 2", or names of properties.
test-formal: install
	@$(PYTHON) hw/formal/prove.py $(FORMAL)

# mpi4py and its own tests, at the versions of tests/mpi4py/pins.txt: nothing is installed.
mpi4py: install
	@$(PYTHON) tests/mpi4py/suite.py --bring

# MPICH of PyPI with its libfabric, and a provider for that: nothing is installed.
mpich: library
	$(call step,mpich,MPICH of PyPI and a provider for its libfabric,$(PYTHON) tests/mpich/bring.py)

# Half of a card's build uses one core only, so the other parts are built beside the cards.
.PHONY: system-parts system-cards system-others
system-parts: install
	@$(MAKE) --no-print-directory -j2 system-cards system-others

system-cards: models
	@$(MAKE) --no-print-directory simulator PROFILE=eth10g

system-others: install
	@for part in firmware library ofi litepcie-rate qemu driver mpi4py mpich; do \
		$(MAKE) --no-print-directory $$part || exit 1; done

test-system: system-parts
	@echo 'test       the whole column: two cards, their hosts, a guest'
	@$(PYTEST) $(BOTH) --junitxml build/junit-system.xml tests/system

soak: build models
	@$(MAKE) --no-print-directory simulator PROFILE=gen1x1
	@$(PYTHON) tests/soak/transfers.py --count 20000 --profile $(PROFILE) --seed $(SEED)
	@$(PYTHON) tests/soak/elements.py --seed $(SEED)
	@$(PYTHON) tests/soak/faults.py --runs 1000 --seed $(SEED)
	@$(PYTHON) tests/soak/program_faults.py --runs 1000 --seed $(SEED)
	@$(PYTHON) tests/soak/completions.py --count 100000 --seed $(SEED)
	@$(PYTHON) tests/soak/ring.py --runs 500 --seed $(SEED)
	@$(MAKE) --no-print-directory simulator PROFILE=eth10g
	@$(PYTHON) tests/soak/ethernet.py --count 100000 --seed $(SEED)
	@$(PYTHON) tests/soak/ethernet_star.py --megabytes 200 --loss 0.01 --late 0.01 --seed $(SEED)
	@$(PYTHON) tests/soak/threads.py --seconds 300 --seed $(SEED) --profile $(PROFILE)
	@$(PYTHON) tests/firmware/mutants.py run
	@$(PYTHON) tests/soak/resident.py --seconds 60 --hour
	@$(PYTHON) tests/fuzz/fuzz.py vfio-user --runs 100000 --seed $(SEED)
	@$(PYTHON) tests/fuzz/fuzz.py uart --runs 10000 --seed $(SEED)
	@$(PYTHON) tests/fuzz/fuzz.py firmware --runs 1000000 --seed $(SEED)
	@$(PYTEST) tests/soak/link_figures.py tests/soak/late_answer.py
	@$(MAKE) --no-print-directory switches
	@$(PYTHON) tests/soak/torus.py --packets 100000 --faults 100 --kill --seed $(SEED)
	@$(MAKE) --no-print-directory test-window test-ring test-links test-wide
	@$(MAKE) --no-print-directory ofi mpi4py
	@$(PYTHON) tests/mpi4py/suite.py --ranks 2 --ranks 4
	@$(PYTEST) tests/soak/mpi_faults.py tests/soak/hpcc.py
	@$(MAKE) --no-print-directory qemu driver
	@$(PYTHON) tests/soak/driver.py --calls 100000 --kills 200 --seed $(SEED)
	@$(PYTHON) tests/soak/bond.py --seed $(SEED)

# Small changes of the control program's sources, each of which a test has to notice: minutes.
mutants: install
	@$(PYTHON) tests/firmware/mutants.py run

docs: install
	$(call step,docs,build/docs/interface.md,$(PYTHON) -P -m dibber.interface.generate build/docs)
	$(call step,manual,build/man/man1,$(PYTHON) -P -m dibber_cli.man build/man)
	$(call step,wireshark,build/wireshark/dibber.lua,$(PYTHON) software/wireshark/generate.py build/wireshark)

figures: build models reference
	@$(PYTHON) tests/figures.py --page --profile $(PROFILE) --seed $(SEED)

# SEED and VARIANT are for those who ask for them: only nextpnr has a seed, few boards have variants, and a board's command says so.
bitstream: install
	@grep -qs '^BOARD = Description(' boards/$(BOARD).py || { \
		echo "bitstream: there is no board '$(BOARD)': build/venv/bin/python -P -m boards has them all"; exit 1; }
	@$(PYTHON) boards/$(BOARD).py --build $(if $(DESIGN),--design $(DESIGN)) \
		$(if $(filter file,$(origin SEED)),,--seed $(SEED)) $(if $(VARIANT),--variant $(VARIANT))

# The link of a board is what fits into a test. The whole card takes far longer. Then OpenOCD loads it into a model of the part.
test-bitstream: install
	@$(PYTHON) boards/ecpix5.py --build --gate --design link
	@BITSTREAM=out/bitstream/ecpix5_link $(PYTEST) --junitxml build/junit-bitstream.xml tests/boards/replay_bitstream.py

# Most of it is Yosys, once for each state of the gateware.
test-netlist: firmware library
	$(call step,card-64,the simulated card at 64 bits,$(PYTHON) hw/sim/build.py --profile gen2x1)
	$(call step,gates,the simulator of netlists,$(PYTHON) hw/sim/gates/build_gates.py)
	$(call step,netlist,the netlist of the core at 64 bits,$(PYTHON) hw/synthesis/gates.py)
	@$(PYTEST) --junitxml build/junit-netlist.xml tests/netlist

# A deliberate change of all cards: hw/synthesis/same.py --accept writes the hashes again.
test-netlist-same: install
	@$(PYTHON) hw/synthesis/same.py

# Cards with the window are a build of their own, so this is no part of make test.
test-window: firmware library qemu driver
	$(call step,window,the simulated card with the remote window,$(PYTHON) hw/sim/build.py --window)
	@$(PYTEST) --junitxml build/junit-window.xml tests/window

# Cards with two links are a build of their own, too.
test-links: firmware library
	$(call step,two-links,the simulated card with two links,$(PYTHON) hw/sim/build.py --fabric two-links)
	$(call step,switch-8,a switch of 8 ports,$(PYTHON) hw/sim/build.py --switch 8)
	@$(PYTEST) --junitxml build/junit-links.xml tests/links

# Cards on a ring are a build of their own, too.
test-ring: firmware library
	$(call step,ring,the simulated card on a ring at 64 bits,$(PYTHON) hw/sim/build.py --profile gen2x1 --fabric ring)
	$(call step,ring-pair,the simulated card on a pair of rings at 64 bits,$(PYTHON) hw/sim/build.py --profile gen2x1 --fabric ring-pair)
	@$(PYTEST) --junitxml build/junit-ring.xml tests/ring

# Cards at 256 bits with a bonded link are a build of their own, too.
test-wide: firmware library
	$(call step,wide,the simulated card at 256 bits with a bonded link,$(PYTHON) hw/sim/build.py --profile gen3x8)
	@$(PYTEST) --junitxml build/junit-wide.xml tests/wide

test-boards: install
	@$(PYTHON) hw/synthesis/xilinx.py

# Each says at its end which goals were missed; all are run.
synthesis: install
	@$(PYTHON) hw/synthesis/engines.py; engines=$$?; \
	$(PYTHON) hw/synthesis/xilinx.py; boards=$$?; \
	$(PYTHON) hw/synthesis/ecp5.py && exit $$((engines + boards))

clean:
	@echo 'clean      build/, but for build/venv and build/qemu'
	@find build -mindepth 1 -maxdepth 1 ! -name venv ! -name qemu -exec rm -rf {} +
