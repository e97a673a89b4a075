// A stretch of memory to measure on: on one node, in huge pages or small ones, every page there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace numatwin::native {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

class Block {
  public:
    /// `bytes` (rounded up to whole lines) on `node`, or wherever the kernel puts them (-1). Huge
    /// pages are asked for or forbidden; what came can be asked by `huge_bytes`. Throws
    /// std::bad_alloc, and std::system_error where the kernel does not bind memory to that node.
    Block(std::size_t bytes, int node, bool huge_pages);
    ~Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    /// Bytes that lie in huge pages, as the kernel tells; 0 where it does not tell.
    [[nodiscard]] std::size_t huge_bytes() const;

    /// Makes the first `bytes` a cycle: each line holds the address of the next, every line comes
    /// once, in an order that no prefetcher follows. Returns the number of lines, at least two.
    std::size_t arrange_cycle(std::size_t bytes, std::uint64_t seed);

  private:
    void* reserved_ = nullptr;
    std::size_t reserved_bytes_ = 0;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// The successor of each of `next.size()` places, one cycle through all of them, uniformly at
/// random among such cycles (Sattolo, An algorithm to generate a random cyclic permutation, 1986).
void random_cycle(std::span<std::uint32_t> next, std::uint64_t seed);

}  // namespace numatwin::native
