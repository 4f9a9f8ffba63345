#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Makes everything that building and testing needs: a rootfs, the distribution's kernel and its
# Rust metadata, and a User Mode Linux kernel.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

usage_if_asked "usage: scripts/setup.sh [--update] [debug]
Makes the test machines in \${CAKE_CACHE:-~/.cache/cake} (about 8 GB; 15 minutes on two cores the first
time, nothing afterwards), and if asked for it the kernel that looks for errors (as long again).
--update takes the newest kernel if there is a newer one.
Needs root on Debian 12 or later." "$@"

release=trixie
components=main
build_packages="make gcc g++ gcc-14 bc bison flex libelf-dev libssl-dev libdw-dev rustc rust-src cargo
	rustfmt rust-clippy bindgen clang-19 lld-19 llvm-19 libclang-19-dev libclang-rt-19-dev pahole cpio xz-utils zstd
	python3 git ca-certificates kmod shellcheck mandoc groff"
machine_packages="qemu-system-x86 udev systemd virtme-ng busybox-static iproute2 fping iperf3 netperf
	iputils-ping ethtool procps tcpdump jq valgrind nftables conntrack iptables socat
	python3-scapy python3-pyroute2 python3-yaml python3-matplotlib"

# A step that is done leaves a stamp with what it was made from.
stamps=$cache/stamps
steps="rootfs packages tc kernel source stock uml"

# key STEP: stands for what a step is made from, its own recipe included. Only the rootfs stays,
# whatever its recipe: all that is built lives in it, and machines may run on it.
key() {
	{
		case $1 in
		rootfs | tc) echo "$release" ;;
		packages) echo "$build_packages $machine_packages" ;;
		uml | debug) cat "$project/scripts/uml.config" "$project/tests/selftests/config" && declare -f build_uml ;;&
		debug) cat "$project/scripts/debug.config" ;;&
		*) echo "$version" ;;
		esac
		[ "$1" = rootfs ] || declare -f "make_$1"
	} | cksum
}

# is_done STEP
is_done() {
	[ "$(cat "$stamps/$1" 2>/dev/null)" = "$(key "$1")" ]
}

# take STEP: takes it unless it is done.
take() {
	local name=$1 started=$SECONDS
	! is_done "$name" || return 0
	printf 'setup: %s …\n' "$name"
	# Not as a condition, in which the shell would go on after an error.
	set +e
	(
		set -e
		"make_$name"
	) >"$cache/log/$name.log" 2>&1 </dev/null
	local status=$?
	set -e
	[ "$status" -eq 0 ] || {
		tail -n 20 "$cache/log/$name.log" >&2
		die "$name failed; the whole log is $cache/log/$name.log"
	}
	key "$name" >"$stamps/$name.new"
	mv "$stamps/$name.new" "$stamps/$name"
	printf 'setup: %s done in %d s\n' "$name" $((SECONDS - started))
}

# Whether this machine can do it, before anything is changed.
check_host() {
	[ "$(id -u)" -eq 0 ] || die "must be root: try sudo make setup"
	command -v apt-get >/dev/null || die "needs Debian 12 or later: there is no apt-get"
	unshare --mount true 2>/dev/null || die "may not make mount namespaces: run it outside of a container or with --privileged"
	local from place free
	from=$(mirror)
	[ -n "$from" ] || die "apt knows no Debian mirror: set one in /etc/apt/sources.list and run apt-get update"
	place=$cache
	while [ ! -d "$place" ]; do place=$(dirname "$place"); done
	[ -w "$place" ] || die "cannot write to $cache: set CAKE_CACHE"
	free=$(df --output=avail -BG "$place" | tail -n 1 | tr -dc 0-9)
	[ -e "$stamps/uml" ] || [ "$free" -ge 10 ] || die "needs 10 GB in $cache, there are $free: free some or set CAKE_CACHE"
	/usr/lib/apt/apt-helper -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 \
		-o Acquire::Retries=1 download-file "$from/dists/$release/Release" /dev/shm/cake-release \
		>/dev/null 2>&1 || die "cannot reach apt's mirror: is the network there?"
	rm -f /dev/shm/cake-release
}

# The mirror that the host's own apt uses.
mirror() {
	# shellcheck disable=SC2016 # apt expands it
	apt-get indextargets --format '$(SITE) $(ORIGIN)' 'Created-By: Packages' |
		awk '/ Debian$/ && !/security/ { print $1; exit }'
}

# apt ARGUMENT…: apt in the rootfs.
apt() {
	in_rootfs env DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends \
		-o Dpkg::Use-Pty=0 "$@"
}

make_rootfs() {
	local from
	from=$(mirror)
	command -v mmdebstrap >/dev/null || apt-get install -y mmdebstrap ||
		{ apt-get update && apt-get install -y mmdebstrap; }
	# These have put things into the one that goes.
	rm -f "$stamps/"{packages,tc,kernel,uml,debug}
	rm -rf "$rootfs" "$rootfs.new"
	mmdebstrap --variant=minbase "$release" "$rootfs.new" \
		"deb $from $release $components" "deb $from $release-backports $components"
	# The kernel's package would build an initramfs that nobody boots.
	mkdir -p "$rootfs.new/etc/initramfs/post-update.d" "$rootfs.new/etc/kernel/postinst.d"
	mv "$rootfs.new" "$rootfs"
}

make_packages() {
	apt update
	# shellcheck disable=SC2086 # lists of words
	apt install $build_packages $machine_packages
}

# A tc that knows cake_mq, from Debian's next release, beside the release's own.
make_tc() {
	# shellcheck disable=SC2016 # expands inside
	in_rootfs sh -ec 'cd /tmp
		echo "deb $1 testing main" >list
		mkdir -p lists/partial cache/archives/partial
		set -- -q -o Dir::Etc::SourceList=/tmp/list -o Dir::Etc::SourceParts=- \
			-o Dir::State::Lists=/tmp/lists -o Dir::Cache=/tmp/cache -o Acquire::Check-Valid-Until=false
		apt-get "$@" update
		apt-get "$@" download iproute2
		dpkg-deb -x iproute2_*.deb /opt/iproute2.new
		/opt/iproute2.new/usr/sbin/tc -V
		rm -rf /opt/iproute2
		mv /opt/iproute2.new /opt/iproute2' sh "$(mirror)"
}

# The newest kernel in backports, from the package index.
newest_kernel() {
	in_rootfs apt-cache show "linux-image-amd64/$release-backports" |
		sed -n 's/^Depends:.*linux-image-\([0-9][^ ,]*\).*/\1/p' | head -n 1
}

make_kernel() {
	apt install -t "$release-backports" "linux-headers-$version" linux-source
	# The image, whatever packages it is made of, without its hooks: they would make an initramfs.
	# shellcheck disable=SC2016 # expands inside
	in_rootfs sh -ec 'cd /tmp
		parts=$(apt-cache depends "linux-image-$1" | sed -n "s/.*Depends: \(linux-[a-z]*-$1\)\$/\1/p")
		apt-get download -q "linux-image-$1" $parts
		for package in *.deb; do dpkg-deb -x "$package" /; done
		depmod "$1"
		# One place, wherever the packages put it.
		image=/boot/vmlinuz-$1
		[ -e "$image" ] || cp "/usr/lib/modules/$1/vmlinuz" "$image"' sh "$version"
}

make_source() {
	mkdir -p "$kernel"
	rm -rf "$kernel/source" "$kernel/source.new"
	mkdir "$kernel/source.new"
	tar -xf "$rootfs"/usr/src/linux-source-*.tar.xz -C "$kernel/source.new" --strip-components=1
	mv "$kernel/source.new" "$kernel/source"
}

# The headers' package lacks the Rust metadata. The same source, configuration and compiler give
# the very same symbols, and that is checked.
make_stock() {
	rm -rf "$kernel/stock"
	mkdir -p "$kernel/stock"
	cp "$rootfs/usr/src/linux-headers-$version/"{.config,Module.symvers} "$kernel/stock/"
	# shellcheck disable=SC2016 # expands inside
	in_rootfs sh -ec 'cd /kernel/source
		make O=/kernel/stock ARCH=x86 CC=x86_64-linux-gnu-gcc-14 KERNELRELEASE="$1" -j"$(nproc)" \
			olddefconfig prepare modules_prepare
		make O=/kernel/stock ARCH=x86 -s kernelrelease KERNELRELEASE="$1"' sh "$version"
	compare_symbols
}

compare_symbols() {
	local theirs=$rootfs/usr/src/linux-headers-$version/Module.symvers
	awk '$2 ~ /^_R/ { print $2 }' "$theirs" | sort >"$cache/log/symbols.theirs"
	cat "$kernel"/stock/rust/exports_*_generated.h | tr -c '[:alnum:]_' '\n' | grep '^_R' | sort -u \
		>"$cache/log/symbols.ours"
	[ -s "$cache/log/symbols.theirs" ] || die "the kernel $version exports no Rust symbols: is CONFIG_RUST off?"
	comm -23 "$cache/log/symbols.theirs" "$cache/log/symbols.ours" >"$cache/log/symbols.missing"
	if [ -s "$cache/log/symbols.missing" ]; then
		cat "$cache/log/symbols.missing"
		die "Rust symbols of the stock kernel came out differently; see the list above"
	fi
	printf '%d Rust symbols agree\n' "$(wc -l <"$cache/log/symbols.theirs")"
}

# build_uml TREE FRAGMENT… -- MAKE ARGUMENT…: User Mode Linux in $kernel/TREE, with the fragments.
build_uml() {
	local tree=$1
	shift
	# What was built from another source looks up to date to make.
	[ "$(cat "$kernel/$tree/built-from" 2>/dev/null)" = "$version" ] || rm -rf "${kernel:?}/$tree"
	mkdir -p "$kernel/$tree"
	printf '%s' "$version" >"$kernel/$tree/built-from"
	# shellcheck disable=SC2016 # expands inside
	in_rootfs sh -ec 'cd /kernel/source
		tree=/kernel/$1 fragments=
		shift
		while [ "$1" != -- ]; do fragments="$fragments /project/$1" && shift; done
		shift
		export ARCH=um
		make O="$tree" "$@" defconfig
		scripts/kconfig/merge_config.sh -m -O "$tree" "$tree/.config" $fragments
		make O="$tree" "$@" olddefconfig
		make O="$tree" "$@" -j"$(nproc)" all
		make O="$tree" "$@" INSTALL_MOD_PATH=/ modules_install' sh "$tree" "$@"
}

make_uml() {
	build_uml uml scripts/uml.config tests/selftests/config --
}

make_debug() {
	# Without the threshold clang puts data where lockdep does not look for it in a UML kernel. Modules
	# lie too high for it.
	build_uml debug scripts/uml.config tests/selftests/config scripts/debug.config -- \
		LLVM=-19 CFLAGS_KERNEL="-mlarge-data-threshold=1000000000 -Wno-unused-command-line-argument"
}

update=
for argument; do
	case $argument in
	--update) update=1 ;;
	debug) steps+=" debug" ;;
	*) die "unknown argument $argument; see --help" ;;
	esac
done
version=
[ -n "$update" ] || version=$(cat "$cache/version" 2>/dev/null || true)
if [ -n "$version" ]; then
	missing=
	for step in $steps; do is_done "$step" || missing+=" $step"; done
	[ -n "$missing" ] || exit 0
fi

check_host
mkdir -p "$cache/log" "$stamps" 2>/dev/null || die "cannot write to $cache: set CAKE_CACHE"

# Two at once wait for each other.
exec 9>"$cache/lock"
flock --nonblock 9 || {
	printf 'setup: another one is at work, waiting for it\n'
	flock 9
}

for step in $steps; do
	# The rootfs knows the package index.
	if [ "$step" = kernel ] && [ -z "$version" ]; then
		apt update >"$cache/log/update.log" 2>&1 || die "no package index: is the network there?"
		version=$(newest_kernel)
		[ -n "$version" ] || die "no kernel found in $release-backports"
		printf 'setup: the newest kernel is %s\n' "$version"
		printf '%s' "$version" >"$cache/version"
	fi
	take "$step"
done
