// Memory of a node by mmap and mbind; cycles of pointers through it.
#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "measure/work.hpp"
#include "memory/mapping.hpp"

namespace numatwin::native {
namespace {

// mbind takes a mask of nodes in words.
void bind_to_node(void* begin, std::size_t bytes, int node) {
    constexpr std::size_t word_bits = std::numeric_limits<unsigned long>::digits;
    std::vector<unsigned long> mask(static_cast<std::size_t>(node) / word_bits + 1, 0);
    mask.back() = 1UL << (static_cast<std::size_t>(node) % word_bits);
    // The kernel counts one bit fewer than it is told.
    const unsigned long bits = mask.size() * word_bits + 1;
    if (mbind(begin, bytes, MPOL_BIND, mask.data(), bits, 0) != 0) {
        throw std::system_error(errno, std::generic_category(),
                                "memory of node " + std::to_string(node));
    }
}

}  // namespace

Block::Block(std::size_t bytes, int node, bool huge_pages) {
    if (bytes == 0 || bytes > std::numeric_limits<std::size_t>::max() / 4) throw std::bad_alloc();
    bytes_ = round_up(bytes, kLineBytes);
    // What lies around stays without access, so that the kernel counts this block's pages alone.
    const std::size_t inner = round_up(bytes_, kHugePageBytes);
    reserved_bytes_ = inner + 2 * kHugePageBytes;
    reserved_ = mmap(nullptr, reserved_bytes_, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved_ == MAP_FAILED) throw std::bad_alloc();
    const auto first = reinterpret_cast<std::uintptr_t>(reserved_) + 1;
    data_ = reinterpret_cast<std::byte*>(round_up(first, kHugePageBytes));
    try {
        if (mprotect(data_, inner, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
        // Advice only: where the kernel knows no huge pages, it refuses, and pages are small.
        madvise(data_, inner, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        if (node >= 0) bind_to_node(data_, inner, node);
    } catch (...) {
        munmap(reserved_, reserved_bytes_);
        throw;
    }
    // A page that was never written is the kernel's one page of zeros.
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    for (std::size_t at = 0; at < bytes_; at += page) data_[at] = std::byte{1};
}

Block::~Block() {
    munmap(reserved_, reserved_bytes_);
}

std::size_t Block::huge_bytes() const {
    std::ifstream maps("/proc/self/smaps");
    char begins[32];
    std::snprintf(begins, sizeof begins, "%lx-", reinterpret_cast<unsigned long>(data_));
    bool ours = false;
    for (std::string line; std::getline(maps, line);) {
        // A mapping's first line alone begins with an address, in small hexadecimal digits.
        if (line.rfind(begins, 0) == 0) {
            ours = true;
        } else if (ours && line.rfind("AnonHugePages:", 0) == 0) {
            const std::size_t digit = line.find_first_of("0123456789");
            std::size_t kilobytes = 0;
            if (digit != std::string::npos) {
                std::from_chars(line.data() + digit, line.data() + line.size(), kilobytes);
            }
            return std::min(bytes_, kilobytes * 1024);
        }
    }
    return 0;
}

std::size_t Block::arrange_cycle(std::size_t bytes, std::uint64_t seed) {
    const std::size_t lines = bytes / kLineBytes;
    if (lines < 2 || bytes > bytes_ || lines > std::numeric_limits<std::uint32_t>::max()) {
        throw std::invalid_argument("a cycle needs at least two lines, all of them in its block");
    }
    std::vector<std::uint32_t> next(lines);
    random_cycle(next, seed);
    for (std::size_t at = 0; at < lines; ++at) {
        const std::byte* successor = data_ + std::size_t{next[at]} * kLineBytes;
        std::memcpy(data_ + at * kLineBytes, &successor, sizeof successor);
    }
    return lines;
}

void random_cycle(std::span<std::uint32_t> next, std::uint64_t seed) {
    std::iota(next.begin(), next.end(), 0U);
    std::mt19937_64 random(seed);
    for (std::size_t at = next.size(); at-- > 1;) {
        // Of the places before this one, never this one itself: else cycles fall apart.
        std::uniform_int_distribution<std::size_t> before(0, at - 1);
        std::swap(next[at], next[before(random)]);
    }
}

}  // namespace numatwin::native
