// Programs whose memory traffic is known: programs WHAT CPU NODE MIB ROUNDS [NODE2]
//
// A buffer of MIB on NODE (and, for copy and move, NODE2) is touched from CPU, ROUNDS times. Loops
// are written out, so that they access the buffer and nothing else; they are the counted region.
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "numatwin.emulator.h"

enum { BIND = 2, MOVE = 2, NODES_MAX = 1024, WORDS = NODES_MAX / 64 };

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void bind_to(char *buffer, size_t bytes, int node, int flags) {
    unsigned long mask[WORDS] = {0};
    mask[node / 64] = 1UL << node % 64;
    if (syscall(SYS_mbind, buffer, bytes, BIND, mask, NODES_MAX + 1, flags)) fail("mbind");
}

static char *on_node(size_t bytes, int node) {
    char *buffer = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED) fail("mmap");
    bind_to(buffer, bytes, node, 0);
    memset(buffer, 1, bytes);
    return buffer;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) fail("sched_setaffinity");
}

static void read_all(const char *at, size_t bytes, size_t step) {
    const char *end = at + bytes;
    __asm__ volatile("1: movq (%0), %%rax\n add %2, %0\n cmp %1, %0\n jb 1b"
                     : "+r"(at) : "r"(end), "r"(step) : "rax", "memory", "cc");
}

static void write_all(char *at, size_t bytes, size_t step) {
    char *end = at + bytes;
    __asm__ volatile("1: movq %0, (%0)\n add %2, %0\n cmp %1, %0\n jb 1b"
                     : "+r"(at) : "r"(end), "r"(step) : "memory", "cc");
}

static void add_all(char *at, size_t bytes, size_t step) {
    char *end = at + bytes;
    __asm__ volatile("1: lock incq (%0)\n add %2, %0\n cmp %1, %0\n jb 1b"
                     : "+r"(at) : "r"(end), "r"(step) : "memory", "cc");
}

static void copy_all(char *to, const char *from, size_t bytes) {
    const char *end = from + bytes;
    __asm__ volatile("1: movq (%0), %%rax\n movq %%rax, (%1)\n add $8, %0\n add $8, %1\n"
                     " cmp %2, %0\n jb 1b"
                     : "+r"(from), "+r"(to) : "r"(end) : "rax", "memory", "cc");
}

// Each line once, in an order that no prefetcher would guess: a power of two of them, and a
// generator of full period.
static void read_at_random(const char *at, size_t bytes) {
    uint64_t lines = bytes / 64, line = 0, left = lines, address;
    __asm__ volatile("1: mov %0, %2\n shl $6, %2\n movq (%3,%2), %2\n"
                     " imul $1664525, %0\n add $1013904223, %0\n and %4, %0\n dec %1\n jnz 1b"
                     : "+r"(line), "+r"(left), "=&r"(address)
                     : "r"(at), "r"(lines - 1) : "memory", "cc");
}

// A branch for each word of the buffer, taken where the highest bit of a generator's state is set, or,
// if `constant`, each time.
static void branch_at_each(size_t bytes, int constant) {
    uint64_t left = bytes / 8, state = 1;
    const uint64_t always = constant ? ~0ULL : 0;
    uint64_t drawn;
    __asm__ volatile("1: imul %3, %0\n add %4, %0\n mov %0, %2\n or %5, %2\n jns 2f\n nop\n"
                     "2: dec %1\n jnz 1b"
                     : "+r"(state), "+r"(left), "=&r"(drawn)
                     : "r"(6364136223846793005ULL), "r"(1442695040888963407ULL), "r"(always)
                     : "cc");
}

static int is(const char *what, const char *name) { return strcmp(what, name) == 0; }

int main(int argc, char **argv) {
    if (argc < 6) return fprintf(stderr, "programs WHAT CPU NODE MIB ROUNDS [NODE2]\n"), 2;
    const char *what = argv[1];
    const int cpu = atoi(argv[2]), node = atoi(argv[3]), rounds = atoi(argv[5]);
    const int other = argc > 6 ? atoi(argv[6]) : node;
    const size_t bytes = (size_t)atoi(argv[4]) << 20;
    pin(cpu);
    char *buffer = on_node(bytes, node), *second = is(what, "copy") ? on_node(bytes, other) : 0;
    if (is(what, "random")) read_at_random(buffer, bytes);  // so that each round finds the same
    struct timespec began, ended;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    numatwin_count_begin();
    for (int round = 0; round < rounds; ++round) {
        if (is(what, "read")) read_all(buffer, bytes, 8);
        if (is(what, "lines")) read_all(buffer, bytes, 64);
        if (is(what, "write")) write_all(buffer, bytes, 8);
        if (is(what, "atomic")) add_all(buffer, bytes, 8);
        if (is(what, "random")) read_at_random(buffer, bytes);
        if (is(what, "guess")) branch_at_each(bytes, 0);
        if (is(what, "call"))
            for (size_t k = 0; k < bytes >> 10; ++k) getppid();
        if (is(what, "steady")) branch_at_each(bytes, 1);
        if (is(what, "copy")) copy_all(second, buffer, bytes);
        if (is(what, "move")) {  // half of the rounds on either node
            if (round == rounds / 2) bind_to(buffer, bytes, other, MOVE);
            read_all(buffer, bytes, 8);
        }
        if (is(what, "bounce")) {  // one thread, on CPU and on processor NODE2 in turn
            pin(round % 2 ? other : cpu);
            write_all(buffer, bytes, 64);
        }
    }
    numatwin_count_end();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    const double spent = ended.tv_sec - began.tv_sec + 1e-9 * (ended.tv_nsec - began.tv_nsec);
    fprintf(stderr, "%s %.3f\n", what, spent);
    return 0;
}
