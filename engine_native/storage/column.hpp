// A column of 64-bit entries: appended to, scanned, and handed on by the segment.
//
// One thread at a time owns it. Entries never change: a scan of the first `until` entries is a
// snapshot, whatever is appended meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/memory.hpp"

namespace numatwin::native {

/// A stretch of entries that lie side by side; `first` is the position of the first of them.
struct ColumnRun {
    std::uint64_t first;
    std::span<const std::uint64_t> entries;
};

class Column {
  public:
    static constexpr std::size_t default_segment_entries = std::size_t{1} << 18;  // 2 MiB

    explicit Column(Memory& memory, std::size_t segment_entries = default_segment_entries);
    ~Column();
    Column(Column&& other) noexcept;
    Column& operator=(Column&& other) noexcept;

    /// The same segments from here on through another Memory of the same manager: the column has
    /// changed hands to another thread.
    void use(Memory& memory) noexcept { memory_ = &memory; }

    std::uint64_t entries() const { return entries_; }
    /// Of the segments, filled or not.
    std::size_t bytes() const;

    /// All are appended, or none (std::bad_alloc).
    void append(std::span<const std::uint64_t> entries);
    /// Calls visit(ColumnRun) for the stretches of entries [from, until), in order.
    template <typename Visit>
    void visit_runs(std::uint64_t from, std::uint64_t until, Visit visit) const;

    /// Unlinks the last `entries`; only those of a segment that is cut in two are copied.
    /// Throws std::invalid_argument if there are fewer; std::bad_alloc leaves all as it was.
    Column detach(std::uint64_t entries);
    /// Links another column's segments behind these. Its memory must be of the same manager.
    void attach(Column&& other);
    /// Appends entries [from, until) of a column of whatever memory: the copy transfer.
    void copy_from(const Column& other, std::uint64_t from, std::uint64_t until);

  private:
    struct Segment {
        std::uint64_t* data;
        std::size_t capacity;
        std::size_t length;
        std::uint64_t first;  ///< position of its first entry
    };
    void link(Segment segment) noexcept;
    void make_room(std::uint64_t entries);
    void fill(std::span<const std::uint64_t> entries);
    void pop_segments(std::size_t kept) noexcept;
    std::size_t segment_of(std::uint64_t position) const;

    Memory* memory_;
    std::size_t segment_entries_;
    // Each has a length of at least 1, but while an append is under way; `first` ascends.
    std::vector<Segment> segments_;
    std::uint64_t entries_ = 0;
};

template <typename Visit>
void Column::visit_runs(std::uint64_t from, std::uint64_t until, Visit visit) const {
    if (until > entries_) until = entries_;
    if (from >= until) return;
    for (std::size_t s = segment_of(from); from < until; ++s) {
        const Segment& segment = segments_[s];
        const std::uint64_t end = segment.first + segment.length;
        const std::uint64_t stop = until < end ? until : end;
        visit(ColumnRun{from, {segment.data + (from - segment.first), stop - from}});
        from = stop;
    }
}

}  // namespace numatwin::native
