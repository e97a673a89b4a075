// Five programs whose time is measured on the host and predicted from counts: programs WHAT MIB
//
// Each works on about MIB mebibytes, more than caches hold. What is timed is the counted region; its
// processor time in s goes to standard output.
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "numatwin.emulator.h"

typedef uint64_t u64;

static volatile u64 sink;

static u64 mixed(u64 x) {
    x = (x ^ x >> 31) * 0x7fb5d329728ea185ULL;
    x = (x ^ x >> 27) * 0x81dadef4bc2dd44dULL;
    return x ^ x >> 33;
}

// In huge pages, where the system gives some: page walks are not counted.
static void *memory(size_t bytes) {
    const size_t whole = (bytes + (1 << 21) - 1) >> 21 << 21;
    void *found = aligned_alloc(1 << 21, whole);
    if (!found) exit(1);
    madvise(found, whole, MADV_HUGEPAGE);
    memset(found, 1, bytes);
    return found;
}

static struct timespec began;

// On the processor that it is on: what moves within an interval would count as concurrent.
static void stay(void) {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    if (sched_setaffinity(0, sizeof here, &here)) exit(1);
}

static void begin(void) {
    stay();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    numatwin_count_begin();
}

static void end(void) {
    struct timespec now;
    numatwin_count_end();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    printf("%.6f\n", now.tv_sec - began.tv_sec + 1e-9 * (now.tv_nsec - began.tv_nsec));
}

// Words from one half to the other, one after another.
static void copy(size_t bytes) {
    const size_t words = bytes / 16;
    u64 *from = memory(8 * words), *to = memory(8 * words);
    begin();
    for (int round = 0; round < 2; ++round)
        for (size_t k = 0; k < words; ++k) ((volatile u64 *)to)[k] = from[k];
    end();
}

// Each line names the next one, in an order without locality.
static void chase(size_t bytes) {
    const size_t lines = bytes / 64;
    void ***at = memory(64 * lines);
    u64 line = 0;
    for (size_t k = 0; k < lines; ++k) {
        const u64 next = (line * 1664525 + 1013904223) & (lines - 1);
        at[8 * line] = (void **)&at[8 * next];
        line = next;
    }
    void **p = (void **)at;
    begin();
    for (size_t k = 0; k < lines; ++k) p = *p;
    end();
    sink = (u64)p;
}

// Builds a table of open addressing, and looks twice as many keys up.
static void join(size_t bytes) {
    size_t slots = 1;
    while (slots * 32 <= bytes) slots *= 2;
    struct { u64 key, value; } *table = memory(16 * slots);
    memset(table, 0, 16 * slots);
    const size_t rows = slots / 2;
    u64 *keys = memory(8 * rows), sum = 0;
    for (size_t k = 0; k < rows; ++k) keys[k] = mixed(k) | 1;
    begin();
    for (size_t k = 0; k < rows; ++k) {
        size_t slot = mixed(keys[k]) & (slots - 1);
        while (table[slot].key) slot = (slot + 1) & (slots - 1);
        table[slot].key = keys[k];
        table[slot].value = k;
    }
    for (size_t k = 0; k < 2 * rows; ++k) {
        const u64 key = keys[k % rows];
        size_t slot = mixed(key) & (slots - 1);
        while (table[slot].key != key) slot = (slot + 1) & (slots - 1);
        sum += table[slot].value;
    }
    end();
    sink = sum;
}

static void sort_range(u64 *first, u64 *last) {
    while (last - first > 16) {
        const u64 pivot = first[(last - first) / 2];
        u64 *low = first, *high = last - 1;
        for (;;) {
            while (*low < pivot) ++low;
            while (*high > pivot) --high;
            if (low >= high) break;
            const u64 other = *low;
            *low++ = *high;
            *high-- = other;
        }
        sort_range(first, low);
        first = low;
    }
    for (u64 *at = first + 1; at < last; ++at) {
        const u64 value = *at;
        u64 *to = at;
        for (; to > first && to[-1] > value; --to) *to = to[-1];
        *to = value;
    }
}

static void sort(size_t bytes) {
    const size_t words = bytes / 8;
    u64 *values = memory(8 * words);
    for (size_t k = 0; k < words; ++k) values[k] = mixed(k);
    begin();
    sort_range(values, values + words);
    end();
    sink = values[words / 2];
}

// A server reads batches of requests from a socket, reads or writes a record of a line for each, and
// answers; the client at the other end takes turns with it.
enum { BATCH = 256 };

static void moved(ssize_t bytes) {
    if (bytes != BATCH * (ssize_t)sizeof(u64)) exit(1);
}

static void server(size_t bytes) {
    const size_t records = bytes / 64;
    u64(*record)[8] = memory(64 * records), request = 0, sum = 0;
    u64 requests[BATCH], read_requests[BATCH], answers[BATCH];
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) exit(1);
    begin();
    for (size_t batch = 0; batch < records / BATCH; ++batch) {
        for (int k = 0; k < BATCH; ++k) requests[k] = mixed(request++);
        moved(write(ends[0], requests, sizeof requests));
        moved(read(ends[1], read_requests, sizeof read_requests));
        for (int k = 0; k < BATCH; ++k) {
            u64 *found = record[mixed(read_requests[k]) & (records - 1)];
            if (read_requests[k] % 16 == 0) found[1] = read_requests[k];
            answers[k] = found[0] + found[1];
        }
        moved(write(ends[1], answers, sizeof answers));
        moved(read(ends[0], answers, sizeof answers));
        for (int k = 0; k < BATCH; ++k) sum += answers[k];
    }
    end();
    sink = sum;
}

int main(int argc, char **argv) {
    if (argc != 3) return fprintf(stderr, "programs WHAT MIB\n"), 2;
    const size_t bytes = (size_t)atoi(argv[2]) << 20;
    const struct { const char *name; void (*run)(size_t); } known[] = {
        {"copy", copy}, {"chase", chase}, {"join", join}, {"sort", sort}, {"server", server}};
    for (size_t k = 0; k < sizeof known / sizeof *known; ++k)
        if (strcmp(argv[1], known[k].name) == 0) return known[k].run(bytes), 0;
    return fprintf(stderr, "no such program: %s\n", argv[1]), 2;
}
