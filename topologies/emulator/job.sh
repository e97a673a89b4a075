# A job of the guest's first process: mounts the host's files and runs the command. Above it, the
# host writes 'guest' (its name), 'clock', 'entropy', 'command', 'mark' (empty: a shell on the
# terminal), 'foreign' (whether the host's programs do not run here), and 'shares', which mounts the
# shared folders.
fail() { echo "failed $1" >&3; sleep 1000; }
exec 4> "$(port out)" 5> "$(port err)" 6< "$(port in)"
ifconfig lo up
files() { mount -t 9p -o "trans=virtio,version=9p2000.L,msize=524288,$3" "$1" "$2" 2>/dev/null; }
files share0 /lower ro,cache=loose || fail "the host's files cannot be mounted"
mount -t tmpfs -o size=50% tmpfs /overlay && mkdir /overlay/files /overlay/work
mount -t overlay -o lowerdir=/lower,upperdir=/overlay/files,workdir=/overlay/work overlay /root ||
    fail "the host's files cannot be overlaid"

# The guest may have stood still for days since it was ready, and others began there too.
date -s "@$clock" >/dev/null
echo "$entropy" > /dev/urandom
hostname "$guest"
shares
mkdir -p /root/proc /root/sys /root/dev /root/run
mount -t cgroup2 cgroup2 /groups && mkdir /groups/command
mount -t proc proc /root/proc
mount -t sysfs sysfs /root/sys
mount -t devtmpfs devtmpfs /root/dev
mkdir -p /root/dev/pts /root/dev/shm
mount -t devpts -o ptmxmode=666 devpts /root/dev/pts
mount -t tmpfs -o mode=1777 tmpfs /root/dev/shm
mount -t tmpfs -o mode=755 tmpfs /root/run && mkdir /root/run/numatwin
ln -sf /proc/self/fd /root/dev/fd
shell=/bin/sh
[ -z "$foreign" ] || { cp /bin/busybox /root/run/numatwin/busybox; shell='/run/numatwin/busybox sh'; }
printf %s "$command" > /root/run/numatwin/command

if [ -n "$mark" ]; then
    # What the command leaves running ends with it, so that its output has an end.
    begin() { echo 0 > /groups/command/cgroup.procs; exec chroot /root $shell /run/numatwin/command; }
    mkfifo /out /err
    cat /out >&4 & out=$!
    cat /err >&5 & err=$!
    ( begin ) <&6 > /out 2> /err 3<&- 4>&- 5>&-
    status=$?
    echo 1 > /groups/command/cgroup.kill
    wait $out $err
    printf %s "$mark" >&4
    printf %s "$mark" >&5
else
    setsid -c chroot /root $shell /run/numatwin/command \
        < /dev/hvc0 > /dev/hvc0 2>&1 3<&- 4>&- 5>&- 6<&-
    status=$?
fi
echo "exit $status" >&3
while :; do sleep 1000; done
