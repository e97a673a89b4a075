#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <span>
#include <system_error>

#include "measure/work.hpp"
#include "memory/host.hpp"

namespace numatwin::native {
namespace {

constexpr std::size_t small_page_bytes = 4096;

std::byte* mapped(std::size_t bytes) {
    void* const at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    return static_cast<std::byte*>(at);
}

double ns_of(auto&& work) {
    const auto begun = std::chrono::steady_clock::now();
    work();
    const auto passed = std::chrono::steady_clock::now() - begun;
    return std::chrono::duration<double, std::nano>(passed).count();
}

}  // namespace

std::vector<std::array<double, 3>> stretches(const std::vector<int>& cpus, std::size_t bytes,
                                             bool huge, std::size_t times) {
    std::atomic<bool> done = false;
    std::vector<std::future<void>> all;
    for (const int cpu : std::span(cpus).subspan(1))
        all.push_back(std::async(std::launch::async, [cpu, &done] {
            pin_thread(cpu);
            while (!done) {
            }
        }));
    std::vector<std::array<double, 3>> found(times);
    all.push_back(std::async(std::launch::async, [&] {
        pin_thread(cpus.front());
        const std::size_t page = huge ? kHugePageBytes : small_page_bytes;
        for (auto& [map_ns, touch_ns, unmap_ns] : found) {
            std::byte* at = nullptr;
            // Huge pages begin at multiples of their size, somewhere in what is mapped.
            const std::size_t size = huge ? bytes + kHugePageBytes : bytes;
            map_ns = ns_of([&] { at = mapped(size); });
            madvise(at, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
            std::byte* const first = at + (huge ? -reinterpret_cast<std::uintptr_t>(at) % page : 0);
            touch_ns = ns_of([&] {
                for (std::size_t k = 0; k < bytes; k += page) first[k] = std::byte{1};
            });
            unmap_ns = ns_of([&] { munmap(at, size); });
        }
    }));
    all.back().wait();
    done = true;
    for (std::future<void>& thread : all) thread.get();
    return found;
}

}  // namespace numatwin::native
