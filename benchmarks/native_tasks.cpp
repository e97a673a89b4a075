// Empty tasks of oneTBB's arena, for native_tasks.py: native_tasks THREADS TASKS ROUNDS
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

int main(int, char** argv) {
    const int threads = std::atoi(argv[1]), tasks = std::atoi(argv[2]), rounds = std::atoi(argv[3]);
    oneapi::tbb::task_arena arena(threads);
    double best_s = 1e9;
    for (int round = 0; round < rounds; ++round) {
        const auto begun = std::chrono::steady_clock::now();
        arena.execute([&] {
            oneapi::tbb::task_group group;
            for (int k = 0; k < tasks; ++k) group.run([k] { asm volatile("" : : "r"(k)); });
            group.wait();
        });
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
        best_s = std::min(best_s, took.count());
    }
    std::printf("%.9g\n", best_s);
}
