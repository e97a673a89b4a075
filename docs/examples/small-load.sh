#!/bin/sh
# Redis bound to a node ($1: the node of its processors, $2: of its memory), and clients on node 0.
set -e
numactl --cpunodebind="$1" --membind="$2" redis-server --port 7001 --save '' --appendonly no >redis.log &
until redis-cli -p 7001 ping >ping.log 2>&1; do sleep 0.2; done
numactl --cpunodebind=0 redis-benchmark -p 7001 -q -t set,get -n 2000 -c 4 -r 100000 -d 1024 >load.log
redis-cli -p 7001 dbsize
redis-cli -p 7001 shutdown nosave
wait
