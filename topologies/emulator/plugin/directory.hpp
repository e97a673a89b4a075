// The directory of all homes: which domains hold a line, and whether one has it for itself.
#pragma once

#include <sys/mman.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "cache_sets.hpp"

namespace numatwin {

// A row of bits per line of memory: two of state, one per domain. Memory of the host is taken only
// for lines that were used. Rows are read and changed under the lock of the line's stripe.
class Directory {
  public:
    // OWNED: shared, and one of the holders answers for what it has modified.
    enum State : std::uint64_t { SHARED = 0, EXCLUSIVE = 1, MODIFIED = 2, OWNED = 3 };

    Directory(std::size_t lines, std::size_t domains)
        : words_((domains + STATE_BITS + 63) / 64), bytes_(lines * words_ * sizeof(std::uint64_t)) {
        if (bytes_ == 0) return;
        void* found = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (found == MAP_FAILED) throw std::bad_alloc();
        rows_ = static_cast<std::uint64_t*>(found);
    }
    ~Directory() {
        if (rows_) munmap(rows_, bytes_);
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;

    State state(Line line) const { return static_cast<State>(row(line)[0] & STATE_MASK); }
    bool empty(Line line) const {
        for (std::size_t w = 0; w < words_; ++w)
            if (bits(line, w)) return false;
        return true;
    }
    // Calls `see(domain)` for each holder, by number; it may change the row.
    template <typename See>
    void each_holder(Line line, See see) const {
        for (std::size_t w = 0; w < words_; ++w)
            for (std::uint64_t left = bits(line, w); left; left &= left - 1)
                see(static_cast<unsigned>(64 * w + std::countr_zero(left) - STATE_BITS));
    }

    void set_only(Line line, unsigned domain, State state) {
        for (std::size_t w = 0; w < words_; ++w) row(line)[w] = 0;
        add(line, domain);
        row(line)[0] |= state;
    }
    void set_state(Line line, State state) {
        row(line)[0] = (row(line)[0] & ~std::uint64_t{STATE_MASK}) | state;
    }
    void add(Line line, unsigned domain) { row(line)[at(domain)] |= bit(domain); }
    // Of the last holder, its state goes too.
    void remove(Line line, unsigned domain) {
        row(line)[at(domain)] &= ~bit(domain);
        if (empty(line)) row(line)[0] = 0;
    }

  private:
    static constexpr unsigned STATE_BITS = 2;
    static constexpr std::uint64_t STATE_MASK = 3;

    std::uint64_t* row(Line line) const { return rows_ + line * words_; }
    std::uint64_t bits(Line line, std::size_t w) const {
        return row(line)[w] & (w == 0 ? ~STATE_MASK : ~std::uint64_t{0});
    }
    static std::size_t at(unsigned domain) { return (domain + STATE_BITS) / 64; }
    static std::uint64_t bit(unsigned domain) {
        return std::uint64_t{1} << ((domain + STATE_BITS) % 64);
    }

    std::size_t words_, bytes_;
    std::uint64_t* rows_ = nullptr;
};

}  // namespace numatwin
