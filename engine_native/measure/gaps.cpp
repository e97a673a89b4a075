#include "measure/gaps.hpp"

#include <exception>
#include <mutex>
#include <thread>

#include "memory/clock.hpp"
#include "memory/host.hpp"

namespace numatwin::native {

std::vector<std::vector<double>> gaps(std::span<const int> cpus, double seconds, double least_ns) {
    const double ns_per_tick = ps_per_tick() / 1000;
    const auto least = static_cast<Ticks>(least_ns / ns_per_tick);
    const auto all = static_cast<Ticks>(seconds * 1e9 / ns_per_tick);
    std::vector<std::vector<double>> found(cpus.size());
    std::exception_ptr failure;
    std::mutex mutex;
    std::vector<std::thread> threads;
    const auto watch = [&](std::size_t k) {
        try {
            pin_thread(cpus[k]);
            found[k].reserve(1 << 16);  // growing would be a gap itself
            Ticks before = ticks();
            for (const Ticks end = before + all; before < end;) {
                const Ticks now = ticks();
                if (now - before >= least)
                    found[k].push_back(static_cast<double>(now - before) * ns_per_tick);
                before = now;
            }
        } catch (...) {
            const std::scoped_lock lock(mutex);
            failure = std::current_exception();
        }
    };
    for (std::size_t k = 0; k < cpus.size(); ++k) threads.emplace_back(watch, k);
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
    return found;
}

}  // namespace numatwin::native
