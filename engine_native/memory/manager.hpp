// The memory of one data object on one node: big chunks bound to it, cut into blocks.
//
// A block of up to 32 KiB comes from its thread's cache: from a magazine (a chain of free blocks of
// one size class, linked through the blocks), else cut from a run that the cache took from a chunk.
// A magazine that is full goes to the manager whole, and a cache that has none takes one from
// there: so what one thread frees another allocates, at one lock for each magazine. (Bonwick and
// Adams, "Magazines and Vmem", USENIX 2001.) Blocks of up to 4 MiB are cut from chunks under the
// lock; larger ones are mappings of their own, which go back to the host.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernel/described.hpp"
#include "memory/mapping.hpp"
#include "memory/memory.hpp"

namespace numatwin::native {

// Sizes that blocks are rounded to: so few that each can have a list of free blocks.
//
// 16, 32, 48; multiples of 64 up to 4 KiB; then four in each doubling up to 4 MiB.

namespace size_classes {

inline constexpr std::size_t largest = std::size_t{4} << 20;
/// Of blocks that caches hold; larger ones come from the manager one by one.
inline constexpr std::size_t largest_cached = std::size_t{32} << 10;

constexpr std::size_t of(std::size_t bytes) {
    if (bytes <= 64) return bytes == 0 ? 0 : (bytes - 1) / 16;
    if (bytes <= 4096) return 3 + (bytes - 1) / 64;
    const auto doubling = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;  // 12: 4097 …
    return 67 + (doubling - 12) * 4 + ((bytes - 1) >> (doubling - 2)) % 4;
}

constexpr std::size_t bytes(std::size_t size_class) {
    if (size_class < 4) return (size_class + 1) * 16;
    if (size_class < 67) return (size_class - 2) * 64;
    const std::size_t doubling = 12 + (size_class - 67) / 4;
    return (5 + (size_class - 67) % 4) << (doubling - 2);
}

inline constexpr std::size_t count = of(largest) + 1;
inline constexpr std::size_t cached = of(largest_cached) + 1;

/// How many blocks a full magazine has: about 16 KiB of them.
constexpr std::size_t magazine(std::size_t size_class) {
    const std::size_t fit = (std::size_t{16} << 10) / bytes(size_class);
    return fit < 2 ? 2 : fit > 128 ? 128 : fit;
}

/// Blocks of 64 bytes and more lie at multiples of 64, those of 32 at multiples of 32.
constexpr std::size_t alignment(std::size_t bytes) {
    return bytes >= 64 ? 64 : bytes == 32 ? 32 : 16;
}

}  // namespace size_classes

struct ManagerOptions {
    Placement placement = Placement::anywhere();
    std::size_t limit_bytes = SIZE_MAX;  ///< of what may be mapped
    /// Of a full-grown chunk; earlier ones are smaller, an eighth of what is there already.
    std::size_t chunk_bytes = std::size_t{64} << 20;
    bool huge_pages = true;
    std::string object = "an object";  ///< its name in error messages
};

struct MemoryUse {
    FIELDS_OF(MemoryUse);
    FIELD(std::size_t, reserved_bytes, "mapped, in pages of the host");
    FIELD(std::size_t, used_bytes, "in blocks that are allocated, as size classes round them");
    FIELD(std::size_t, huge_bytes, "of the reserved: in huge pages that the host had set aside");
    FIELD(std::size_t, transparent_bytes, "of the reserved: the kernel may use huge pages");
    FIELD(std::string, refusal, "why memory does not lie where it should; empty if it does");
    END_OF_FIELDS;
};

class MemoryManager;

/// One thread's way to a manager's memory. Who releases a block may be another cache of the manager
/// than who allocated it.
/// (64: two caches share no cache line.)
class alignas(64) MemoryCache final : public Memory {
  public:
    /// Throws OutOfMemory.
    void* allocate(std::size_t bytes) override;
    void release(void* block, std::size_t bytes) noexcept override;

  private:
    friend class MemoryManager;
    struct Block {
        Block* next;           // in its magazine
        Block* next_magazine;  // in the manager's list; of a magazine's first block only
    };
    struct Magazines {
        Block* active = nullptr;
        Block* spare = nullptr;    // full, or there is none
        std::uint32_t filled = 0;  // blocks of `active`, or more: one that was taken counts as full
    };

    explicit MemoryCache(MemoryManager& manager) : manager_(manager) {}
    void* refill(std::size_t size_class);
    void* cut(std::size_t bytes);
    void keep_rest(std::byte* until) noexcept;
    void put(std::size_t size_class, void* block) noexcept;

    MemoryManager& manager_;
    std::array<Magazines, size_classes::cached> magazines_{};
    std::byte* run_ = nullptr;
    std::byte* run_end_ = nullptr;
    // Written by the cache's thread alone, read by use(); relaxed, for a count orders nothing.
    std::atomic<std::size_t> allocated_bytes_{0};
    std::atomic<std::size_t> released_bytes_{0};
};

class MemoryManager {
  public:
    explicit MemoryManager(ManagerOptions options);
    /// Unmaps all, also what is still allocated.
    ~MemoryManager();
    MemoryManager(const MemoryManager&) = delete;
    MemoryManager& operator=(const MemoryManager&) = delete;

    /// A new cache, for one thread at a time; it lives as long as the manager.
    MemoryCache& add_cache();
    /// Exact while no thread allocates or releases.
    MemoryUse use() const;
    const ManagerOptions& options() const { return options_; }

  private:
    friend class MemoryCache;
    using Block = MemoryCache::Block;
    struct Run {
        std::byte* begin;
        std::byte* end;
    };

    // Of the caches.
    Block* take_magazine(std::size_t size_class) noexcept;
    void give_magazine(std::size_t size_class, Block* first) noexcept;
    Run take_run(std::size_t least_bytes, std::size_t wanted_bytes);
    void* allocate_large(std::size_t bytes);
    void release_large(void* block, std::size_t bytes) noexcept;

    // Under the mutex.
    Block* pop_magazine(std::size_t size_class) noexcept;
    void push_magazine(std::size_t size_class, Block* first) noexcept;
    Run cut_chunk(std::size_t least_bytes, std::size_t wanted_bytes);
    void map_chunk(std::size_t least_bytes);
    std::byte* map(std::size_t bytes);
    std::size_t limit_left() const;

    const ManagerOptions options_;
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<MemoryCache>> caches_;
    std::map<void*, Mapping> mappings_;
    MemoryUse mapped_;
    std::size_t large_bytes_ = 0;  // allocated past the caches
    Run chunk_{};                  // what is left of the newest one
    // Lists of magazines. They change under the mutex; a cache looks without it whether one is
    // empty.
    std::array<std::atomic<Block*>, size_classes::count> magazines_{};
};

}  // namespace numatwin::native
