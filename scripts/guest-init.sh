#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The first process of a User Mode Linux guest: runs the command in $CAKE_RUN/command and leaves
# its exit status in $CAKE_RUN/status.
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t debugfs debugfs /sys/kernel/debug
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
ln -sf /proc/self/fd /dev/fd
ip link set lo up
hostname cake
cd /project || exit 1
export HOME=/root LANG=C.UTF-8 CAKE_MODULE="/project/build/$CAKE_TREE/sch_cake.ko"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin PYTHONDONTWRITEBYTECODE=1
# A status is written only if the command ended by itself: a crash leaves none.
sh "$CAKE_RUN/command" </dev/null
status=$?
dmesg >"$CAKE_RUN/dmesg"
echo $status >"$CAKE_RUN/status"
sync
# UML powers off through its console driver, busybox asks for it without a service manager.
exec busybox poweroff -f
