# SPDX-License-Identifier: GPL-2.0
# Every verb that a person types. `make help` lists them.

KDIR ?= /lib/modules/$(shell uname -r)/build
# Where objects go; beside the sources by default.
MO ?=
# Kbuild's own variables (V, ARCH, CROSS_COMPILE, CC, LLVM, CLIPPY, INSTALL_MOD_PATH) pass through.
kbuild = $(MAKE) -C $(KDIR) M=$(CURDIR) $(if $(MO),MO=$(MO))

.PHONY: all modules modules_install install clean help
.PHONY: setup enter demo test test-quick test-differential

all: modules

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

install: modules_install
	depmod

clean:
	$(if $(wildcard $(KDIR)),$(kbuild) clean)
	rm -rf build

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

help:
	@echo 'For a kernel of yours (KDIR=, default: the one that runs; V=1 shows commands):'
	@echo '  make                  build sch_cake.ko'
	@echo '  make modules_install  install it under updates/, where it precedes the stock module'
	@echo '  make install          the same, and depmod'
	@echo '  make clean            remove what was built'
	@echo 'In test machines that make setup makes (as root, on Debian):'
	@echo '  make demo             see the module shape a 2 Mbit line in the stock kernel'
	@echo '  make test             run all tests; FULL=1: longer runs, and more of them'
	@echo '  make test-quick       run those that need no machine'
	@echo '  make test-differential  send the same traffic through the C module and ours'
	@echo '  make setup            make the machines; UPDATE=1 takes a newer kernel'
	@echo '  make enter            a shell in the tree where everything is built'
