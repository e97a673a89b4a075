// The memory of one data object on one node: big bound chunks, cut into blocks.
//
// A block of up to 32 KiB comes from the caller's cache: from a magazine (a chain of free blocks of
// one size class, linked through the blocks), else cut from a run that the cache took from a chunk.
// A magazine that is full goes to the manager whole, and a cache that has none takes one from there:
// so what one thread frees another allocates, at one lock for each magazine. (Magazines: Bonwick and
// Adams, "Magazines and Vmem", USENIX 2001.) Blocks up to 4 MiB are cut from chunks under the lock;
// larger ones are mappings of their own.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "memory/mapping.hpp"
#include "memory/memory.hpp"
#include "memory/size_classes.hpp"

namespace numatwin::native {

struct ManagerOptions {
    Placement placement;                    ///< the node, or interleaved over all
    std::size_t limit_bytes = SIZE_MAX;     ///< of what may be reserved
    std::size_t chunk_bytes = 32ull << 20;  ///< of a full-grown chunk; the first ones are smaller
    bool huge_pages = true;
    std::string object = "an object";  ///< for error messages
};

struct MemoryUse {
    std::size_t reserved_bytes = 0;     ///< mapped from the host
    std::size_t used_bytes = 0;         ///< in blocks that are allocated, as size classes round them
    std::size_t huge_bytes = 0;         ///< of the reserved: in huge pages reserved by the host
    std::size_t transparent_bytes = 0;  ///< of the reserved: the kernel may back them by huge pages
    bool bound = true;                  ///< false: the host refused to bind to the node
    std::string note;                   ///< why not bound or no huge pages; empty if all is well
};

class MemoryManager;

/// One thread's (at a time) way to a manager. A block may be released by another cache than the one
/// that allocated it.
class MemoryCache final : public Memory {
  public:
    void* allocate(std::size_t bytes) override;
    void release(void* block, std::size_t bytes) noexcept override;

  private:
    friend class MemoryManager;
    struct Block {
        Block* next;           ///< in the magazine
        Block* next_magazine;  ///< in the manager's list; of a magazine's first block only
    };
    struct Magazines {
        Block* active = nullptr;
        Block* spare = nullptr;       ///< full, or empty
        std::uint32_t active_count = 0;  ///< at least what is there: a magazine taken counts as full
    };

    explicit MemoryCache(MemoryManager& manager) : manager_(manager) {}
    void* refill(std::size_t size_class);
    void* cut(std::size_t bytes);
    void keep_remainder() noexcept;
    void push(std::size_t size_class, void* block) noexcept;

    MemoryManager& manager_;
    std::array<Magazines, SizeClasses::kCached> magazines_{};
    std::byte* run_ = nullptr;
    std::byte* run_end_ = nullptr;
    // Written by the cache's thread alone, read by use(): plain adds, but whole values.
    std::atomic<std::size_t> allocated_bytes_{0};
    std::atomic<std::size_t> released_bytes_{0};
};

class MemoryManager {
  public:
    explicit MemoryManager(ManagerOptions options);
    ~MemoryManager();  ///< Unmaps all, also what is still allocated.
    MemoryManager(const MemoryManager&) = delete;
    MemoryManager& operator=(const MemoryManager&) = delete;

    /// A new cache; it lives as long as the manager. Thread-safe.
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

    Block* take_magazine(std::size_t size_class) noexcept;
    void give_magazine(std::size_t size_class, Block* first) noexcept;
    Run take_run(std::size_t least_bytes, std::size_t wanted_bytes);
    void* allocate_large(std::size_t bytes);
    void release_large(void* block, std::size_t bytes) noexcept;
    Mapping& map(std::size_t least_bytes, std::size_t wanted_bytes);

    const ManagerOptions options_;
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<MemoryCache>> caches_;
    std::map<std::byte*, Mapping> mappings_;
    std::size_t reserved_bytes_ = 0;
    std::byte* chunk_ = nullptr;  ///< what is left of the newest chunk
    std::byte* chunk_end_ = nullptr;
    /// Lists of magazines. The heads change under the mutex; a cache peeks without it.
    std::array<std::atomic<Block*>, SizeClasses::kCount> magazines_{};
    std::atomic<std::size_t> large_allocated_bytes_{0};
};

}  // namespace numatwin::native
