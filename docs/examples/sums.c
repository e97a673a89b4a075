// A thread on each node adds up a table's part. Who writes the parts first decides where they lie.
#include <numa.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1 << 18, TIMES = 4 };

static long *parts[256], sums[256];
static int each;  // thread fills its own part; else the first one fills all

static void fill(long *part) {
    for (long k = 0; k < COUNT; k++) part[k] = k;
}

static void *add_up(void *argument) {
    long node = (long)argument, sum = 0;
    numa_run_on_node((int)node);
    if (each) fill(parts[node]);
    for (int time = 0; time < TIMES; time++)
        for (long k = 0; k < COUNT; k++) sum += parts[node][k];
    sums[node] = sum;
    return NULL;
}

int main(int count, char **words) {
    if (count != 2 || numa_available() < 0) return 2;
    each = strcmp(words[1], "each") == 0;
    int nodes = numa_num_configured_nodes();
    for (int node = 0; node < nodes; node++) {
        parts[node] = aligned_alloc(1 << 21, COUNT * sizeof(long));
        if (!each) fill(parts[node]);
    }
    pthread_t threads[256];
    for (long node = 0; node < nodes; node++)
        pthread_create(&threads[node], NULL, add_up, (void *)node);
    long sum = 0;
    for (int node = 0; node < nodes; node++) {
        pthread_join(threads[node], NULL);
        sum += sums[node];
    }
    printf("%d nodes, sum %ld\n", nodes, sum);
    return 0;
}
