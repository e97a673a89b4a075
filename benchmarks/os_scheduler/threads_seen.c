// Threads that tell on which processors they run, as getcpu (which sched_getcpu asks) sees it.
//
// threads_seen THREADS MS RUN_US SLEEP_US FIRST [THEN AFTER_MS]
//
// Each thread runs for RUN_US of its own processor time, then sleeps for SLEEP_US (0: it never
// sleeps), until MS have passed. All may run on the processors FIRST, such as 0,1,3 (all: -), and
// on THEN once AFTER_MS have passed. Prints a line a thread: its processor time in us; its turns, a
// turn being over when another of these threads runs on its processor, or it on another one; how
// often it moved to another processor, and to one of another node; the processor it was on last.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 256, STAYS_MAX = 1 << 20, GAP_NS = 20000 };

// A time that a thread was seen on a processor without a gap.
struct stay {
    long long begin_ns;
    int thread, cpu;
};
struct seen {
    pthread_t thread;
    pid_t id;
    long long used_ns;
    long moves, far_moves, turns;
    int last;
};

static struct seen seen[THREADS_MAX];
static struct stay stays[STAYS_MAX];
static int stays_made;
static long run_us, sleep_us;
static long long end_ns;
static pthread_barrier_t begin;

static long long now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void stay(int thread, long long at_ns, int cpu) {
    const int k = __atomic_fetch_add(&stays_made, 1, __ATOMIC_RELAXED);
    if (k < STAYS_MAX) stays[k] = (struct stay){at_ns, thread, cpu};
}

static void *watch(void *of) {
    struct seen *me = of;
    const int number = (int)(me - seen);
    me->id = (pid_t)syscall(SYS_gettid);
    pthread_barrier_wait(&begin);
    const long long first_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    long long before_ns = 0, ran_ns = first_ns;
    me->last = -1;
    unsigned cpu_now, node_now, node = 0;
    for (;;) {
        const long long at_ns = now_ns(CLOCK_MONOTONIC);
        if (getcpu(&cpu_now, &node_now)) abort();
        const int cpu = (int)cpu_now;
        if (cpu != me->last || at_ns - before_ns > GAP_NS) stay(number, at_ns, cpu);
        me->moves += me->last >= 0 && cpu != me->last;
        me->far_moves += me->last >= 0 && node_now != node;
        me->last = cpu;
        node = node_now;
        before_ns = at_ns;
        if (at_ns >= end_ns) break;
        if (!sleep_us) continue;
        if (now_ns(CLOCK_THREAD_CPUTIME_ID) - ran_ns < run_us * 1000LL) continue;
        const struct timespec pause = {sleep_us / 1000000, sleep_us % 1000000 * 1000};
        nanosleep(&pause, NULL);
        ran_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    }
    me->used_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - first_ns;
    return NULL;
}

static cpu_set_t set_of(char *list) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (!strcmp(list, "-")) {
        const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
        for (long cpu = 0; cpu < cpus; ++cpu) CPU_SET(cpu, &set);
    } else {
        for (char *one = strtok(list, ","); one; one = strtok(NULL, ",")) CPU_SET(atoi(one), &set);
    }
    return set;
}

static int earlier(const void *left, const void *right) {
    const struct stay *a = left, *b = right;
    if (a->cpu != b->cpu) return a->cpu - b->cpu;
    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

int main(int count, char **text) {
    const int threads = count > 1 ? atoi(text[1]) : 0;
    if ((count != 6 && count != 8) || threads < 1 || threads > THREADS_MAX) {
        fprintf(stderr, "usage: threads_seen THREADS MS RUN_US SLEEP_US FIRST [THEN AFTER_MS]\n");
        return 2;
    }
    run_us = atol(text[3]);
    sleep_us = atol(text[4]);
    const cpu_set_t first = set_of(text[5]);
    if (sched_setaffinity(0, sizeof first, &first)) fail("sched_setaffinity");
    pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
    for (int k = 0; k < threads; ++k)
        if (pthread_create(&seen[k].thread, NULL, watch, &seen[k])) fail("pthread_create");
    usleep(50000);  // all have come to the barrier and sleep there
    end_ns = now_ns(CLOCK_MONOTONIC) + atol(text[2]) * 1000000LL;
    pthread_barrier_wait(&begin);
    if (count == 8) {
        const cpu_set_t then = set_of(text[6]);
        usleep((useconds_t)atol(text[7]) * 1000);
        for (int k = 0; k < threads; ++k)
            if (sched_setaffinity(seen[k].id, sizeof then, &then)) fail("sched_setaffinity");
    }
    for (int k = 0; k < threads; ++k) pthread_join(seen[k].thread, NULL);
    if (stays_made > STAYS_MAX) {
        fprintf(stderr, "threads_seen: too many stays on processors: take a shorter time\n");
        return 1;
    }
    qsort(stays, (size_t)stays_made, sizeof *stays, earlier);
    for (int k = 0; k < stays_made; ++k)
        if (!k || stays[k].cpu != stays[k - 1].cpu || stays[k].thread != stays[k - 1].thread)
            ++seen[stays[k].thread].turns;
    for (int k = 0; k < threads; ++k)
        printf("%lld %ld %ld %ld %d\n", seen[k].used_ns / 1000, seen[k].turns, seen[k].moves,
               seen[k].far_moves, seen[k].last);
    return 0;
}
