#!/bin/busybox sh
# The guest's first process: mounts what the kernel offers, says 'ready' on the port 'control', and
# runs the script that the host sends there.
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
while read -r module; do insmod "/modules/$module.ko"; done < /modules/order

port() { # its device; ports appear one after another
    while :; do
        for found in /sys/class/virtio-ports/*; do
            read -r name 2>/dev/null < "$found/name"
            [ "$name" != "$1" ] || { echo "/dev/${found##*/}"; return; }
        done
        sleep 0.05
    done
}

exec 3<> "$(port control)"
echo ready >&3
read -r size <&3
head -c "$size" <&3 > /job
. /job
