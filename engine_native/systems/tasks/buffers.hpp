// Memory for what tasks make: used again, so that its pages stay on the node that touched them
// first.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace numatwin::native::tasks {

struct Buffer {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;

    template <class Word>
    Word* as() const {
        return reinterpret_cast<Word*>(memory.get());
    }
};

/// Those of a node's workers.
class Buffers {
  public:
    /// Of at least so many bytes, whatever is in them. Throws std::bad_alloc.
    Buffer take(std::size_t bytes) {
        {
            const std::scoped_lock lock(mutex_);
            for (std::size_t k = free_.size(); k-- > 0;) {
                // Twice as large as wanted would be missing elsewhere.
                if (free_[k].bytes < bytes || free_[k].bytes / 2 > bytes) continue;
                std::swap(free_[k], free_.back());
                Buffer found = std::move(free_.back());
                free_.pop_back();
                return found;
            }
        }
        bytes = bytes < 64 ? 64 : bytes;
        auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
        // Huge pages where the kernel has some: groups are looked for all over a table.
        const std::size_t before = -reinterpret_cast<std::uintptr_t>(memory.get()) % huge_bytes;
        if (bytes >= before + huge_bytes)
            ::madvise(memory.get() + before, (bytes - before) / huge_bytes * huge_bytes,
                      MADV_HUGEPAGE);
        return {std::move(memory), bytes};
    }
    void give(Buffer buffer) {
        if (!buffer.memory) return;
        const std::scoped_lock lock(mutex_);
        if (free_.size() < kept_max) free_.push_back(std::move(buffer));
    }

  private:
    static constexpr std::size_t kept_max = 256, huge_bytes = std::size_t{2} << 20;
    std::mutex mutex_;
    std::vector<Buffer> free_;
};

/// Of a worker and a query: what its tasks make, until it is answered, small pieces of which share
/// a buffer; and what those of now asked for, caches aside, of their part, their own, on all nodes.
class alignas(64) Work {
  public:
    /// `buffers`: of the worker's node.
    Work(Buffers& buffers, std::uint32_t node) : buffers(buffers), node(node) {}

    std::byte* keep(Buffer buffer) { return kept_.emplace_back(std::move(buffer)).memory.get(); }
    /// Of so many bytes. Throws std::bad_alloc.
    std::byte* take(std::size_t bytes) {
        if (bytes > piece_max) return keep(buffers.take(bytes));
        bytes = (bytes + 7) / 8 * 8;  // a word's
        if (bytes > left_.size()) left_ = {keep(buffers.take(shared)), shared};
        return std::exchange(left_, left_.subspan(bytes)).data();
    }
    void give_back() {
        for (Buffer& buffer : kept_) buffers.give(std::move(buffer));
    }

    Buffers& buffers;
    const std::uint32_t node;
    std::uint64_t part_bytes = 0, own_bytes = 0, shared_bytes = 0;

  private:
    static constexpr std::size_t piece_max = 1024, shared = std::size_t{16} << 10;
    std::vector<Buffer> kept_;
    std::span<std::byte> left_;  // of the last one of the pieces
};

}  // namespace numatwin::native::tasks
