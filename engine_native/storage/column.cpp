#include "storage/column.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace numatwin::native {

Column::Column(Memory& memory, std::size_t segment_entries)
    : memory_(&memory), segment_entries_(segment_entries) {
    if (segment_entries == 0) throw std::invalid_argument("a segment holds at least one entry");
}

Column::~Column() {
    pop_segments(0);
}

Column::Column(Column&& other) noexcept
    : memory_(other.memory_),
      segment_entries_(other.segment_entries_),
      segments_(std::exchange(other.segments_, {})),
      entries_(std::exchange(other.entries_, 0)) {}

Column& Column::operator=(Column&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(segment_entries_, other.segment_entries_);
    std::swap(segments_, other.segments_);
    std::swap(entries_, other.entries_);
    return *this;
}

std::size_t Column::bytes() const {
    std::size_t bytes = 0;
    for (const Segment& segment : segments_) bytes += segment.capacity * sizeof(std::uint64_t);
    return bytes;
}

void Column::append(std::span<const std::uint64_t> entries) {
    make_room(entries.size());
    fill(entries);
}

Column Column::detach(std::uint64_t entries) {
    if (entries > entries_) throw std::invalid_argument("more entries detached than there are");
    Column taken(*memory_, segment_entries_);
    if (entries == 0) return taken;
    const std::uint64_t cut = entries_ - entries;
    std::size_t s = segment_of(cut);
    taken.segments_.reserve(segments_.size() - s);
    Segment& first = segments_[s];
    if (const std::size_t kept = cut - first.first; kept > 0) {
        taken.append({first.data + kept, first.length - kept});
        first.length = kept;
        ++s;
    }
    for (std::size_t moved = s; moved < segments_.size(); ++moved) {
        taken.link(segments_[moved]);
    }
    segments_.resize(s);
    entries_ = cut;
    return taken;
}

void Column::attach(Column&& other) {
    segments_.reserve(segments_.size() + other.segments_.size());
    for (const Segment& segment : other.segments_) link(segment);
    other.segments_.clear();
    other.entries_ = 0;
}

void Column::copy_from(const Column& other, std::uint64_t from, std::uint64_t until) {
    until = std::min(until, other.entries_);
    if (from >= until) return;
    make_room(until - from);
    other.visit_runs(from, until, [this](const ColumnRun& run) { fill(run.entries); });
}

/// The vector has room for it.
void Column::link(Segment segment) noexcept {
    segment.first = entries_;
    entries_ += segment.length;
    segments_.push_back(segment);
}

/// Empty segments behind the last one, so that fill() cannot fail.
void Column::make_room(std::uint64_t entries) {
    const std::size_t before = segments_.size();
    const std::size_t room = before == 0 ? 0 : segments_.back().capacity - segments_.back().length;
    if (entries <= room) return;
    const std::uint64_t more = (entries - room + segment_entries_ - 1) / segment_entries_;
    try {
        // Twice as many at least, as push_back would: appends in small pieces stay cheap.
        if (before + more > segments_.capacity()) {
            segments_.reserve(std::max<std::size_t>(before + more, 2 * before));
        }
        for (std::uint64_t i = 0; i < more; ++i) {
            void* block = memory_->allocate(segment_entries_ * sizeof(std::uint64_t));
            segments_.push_back({static_cast<std::uint64_t*>(block), segment_entries_, 0,
                                 entries_ + room + i * segment_entries_});
        }
    } catch (...) {
        pop_segments(before);
        throw;
    }
}

void Column::fill(std::span<const std::uint64_t> entries) {
    // The last segment with entries, or the first empty one behind it.
    for (std::size_t s = segment_of(entries_); !entries.empty(); ++s) {
        Segment& segment = segments_[s];
        const std::size_t count = std::min(entries.size(), segment.capacity - segment.length);
        std::memcpy(segment.data + segment.length, entries.data(), count * sizeof(std::uint64_t));
        segment.length += count;
        entries_ += count;
        entries = entries.subspan(count);
    }
}

void Column::pop_segments(std::size_t kept) noexcept {
    for (; segments_.size() > kept; segments_.pop_back()) {
        memory_->release(segments_.back().data, segments_.back().capacity * sizeof(std::uint64_t));
    }
}

/// The segment whose entries begin at or last before a position.
std::size_t Column::segment_of(std::uint64_t position) const {
    const auto after = std::upper_bound(
        segments_.begin(), segments_.end(), position,
        [](std::uint64_t at, const Segment& segment) { return at < segment.first; });
    return static_cast<std::size_t>(after - segments_.begin()) - 1;
}

}  // namespace numatwin::native
