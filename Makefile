# SPDX-License-Identifier: GPL-2.0
# Every verb that a person types. `make help` lists them.

KDIR ?= /lib/modules/$(shell uname -r)/build
# Where objects go; beside the sources by default.
MO ?=
# Kbuild's own variables (V, ARCH, CROSS_COMPILE, CC, LLVM, CLIPPY, INSTALL_MOD_PATH) pass through.
kbuild = $(MAKE) -C $(KDIR) M=$(CURDIR) $(if $(MO),MO=$(MO))

.PHONY: all modules modules_install plugin plugin_install plugin_remove install clean help
.PHONY: setup enter demo bench experiments proof test test-quick test-differential

all: modules plugin

# A kernel without Rust, or whose headers lack the Rust metadata, cannot take the module.
.PHONY: check-kdir
check-kdir:
	@test -e $(KDIR)/include/config/auto.conf || { \
		echo "$(KDIR) holds no configured kernel: install its headers or set KDIR=" >&2; exit 1; }
	@grep -q '^CONFIG_RUST=y' $(KDIR)/include/config/auto.conf || { \
		echo "The kernel in $(KDIR) is built without CONFIG_RUST, which this module needs; README.md says which distributions have it" >&2; exit 1; }
	@test -e $(KDIR)/rust/libkernel.rmeta || { \
		echo "$(KDIR) lacks the kernel's Rust metadata, rust/libkernel.rmeta; on Debian: make setup, then scripts/build.sh stock and scripts/install.sh" >&2; exit 1; }

modules: check-kdir
	$(kbuild) modules

modules_install: check-kdir
	$(kbuild) modules_install

# Where tc looks for plugins, and man for pages.
TC_LIB_DIR ?= $(firstword $(wildcard /usr/lib/*-linux-gnu*/tc /usr/lib64/tc) /usr/lib/tc)
MANDIR ?= /usr/share/man

# What teaches tc to set single tins. The second name serves a tc that does not know cake_mq.
plugin:
	cargo build --quiet --release --locked -p q_cake
	mkdir -p build/tc
	cp "$${CARGO_TARGET_DIR:-target}/release/libq_cake.so" build/tc/q_cake.so
	ln -sf q_cake.so build/tc/q_cake_mq.so

# As root, but not built as root: what make plugin made is installed as it is.
plugin_install:
	@test -e build/tc/q_cake.so || { echo "build/tc/q_cake.so is missing: run make plugin first" >&2; exit 1; }
	install -D -m 644 build/tc/q_cake.so $(DESTDIR)$(TC_LIB_DIR)/q_cake.so
	ln -sf q_cake.so $(DESTDIR)$(TC_LIB_DIR)/q_cake_mq.so
	install -D -m 644 src/tc/tc-cake-tins.8 $(DESTDIR)$(MANDIR)/man8/tc-cake-tins.8

plugin_remove:
	rm -f $(addprefix $(DESTDIR)$(TC_LIB_DIR)/,q_cake.so q_cake_mq.so) $(DESTDIR)$(MANDIR)/man8/tc-cake-tins.8

install: modules_install plugin_install
	depmod

clean:
	$(if $(wildcard $(KDIR)),$(kbuild) clean)
	rm -rf build target

setup:
	scripts/setup.sh $(if $(UPDATE),--update)

enter:
	scripts/enter.sh

demo:
	scripts/demo.sh

test:
	scripts/test.sh $(if $(FULL),--full)

test-quick:
	scripts/test.sh quick

test-differential:
	scripts/test.sh --full differential

proof:
	scripts/proof.sh

bench:
	scripts/vm.sh --timeout 1800 --icount python3 tests/bench/packets.py --where stock

experiments:
	scripts/experiments.sh

help:
	@echo 'For a kernel of yours (KDIR=, default: the one that runs; V=1 shows commands):'
	@echo '  make                  build sch_cake.ko and the plugin for tc'
	@echo '  make modules_install  install it under updates/, where it precedes the stock module'
	@echo '  make plugin_install   install the plugin where tc looks, and its man page'
	@echo '  make install          all of that, and depmod'
	@echo '  make clean            remove what was built'
	@echo 'In test machines that make setup makes (as root, on Debian):'
	@echo '  make demo             see the module shape a 2 Mbit line in the stock kernel'
	@echo '  make test             run all tests; FULL=1: longer runs, and more of them'
	@echo '  make test-quick       run those that need no machine'
	@echo '  make test-differential  send the same traffic through the C module and ours'
	@echo '  make proof            look for errors by all means for some two hours; goes on where it was ended'
	@echo '  make experiments      play what tuning a tin brings and costs; pictures in build/experiments'
	@echo '  make bench            count the instructions that a packet costs in each mode, both modules'
	@echo '  make setup            make the machines; UPDATE=1 takes a newer kernel'
	@echo '  make enter            a shell in the tree where everything is built'
