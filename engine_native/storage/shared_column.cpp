#include "storage/shared_column.hpp"

#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace numatwin::native {

SharedColumn::SharedColumn(Memory& memory, std::size_t segment_entries)
    : memory_(memory), segment_entries_(segment_entries) {
    if (segment_entries == 0) throw std::invalid_argument("a segment holds at least one entry");
}

SharedColumn::~SharedColumn() {
    for (std::uint64_t segment = 0; segment < segments_; ++segment) {
        memory_.release(*slot(segment), segment_entries_ * sizeof(std::uint64_t));
    }
    for (std::size_t part = 0; part < parts; ++part) {
        if (directory_[part] == nullptr) continue;
        memory_.release(directory_[part], (std::size_t{1} << part) * sizeof(std::uint64_t*));
    }
}

/// Part k begins with segment 2^k - 1.
std::uint64_t** SharedColumn::slot(std::uint64_t segment) const {
    const auto part = static_cast<std::size_t>(std::bit_width(segment + 1)) - 1;
    return directory_[part] + (segment + 1 - (std::uint64_t{1} << part));
}

void SharedColumn::add_segment(std::uint64_t segment) {
    const auto part = static_cast<std::size_t>(std::bit_width(segment + 1)) - 1;
    if (directory_[part] == nullptr) {
        const std::size_t bytes = (std::size_t{1} << part) * sizeof(std::uint64_t*);
        directory_[part] = static_cast<std::uint64_t**>(memory_.allocate(bytes));
    }
    void* block = memory_.allocate(segment_entries_ * sizeof(std::uint64_t));
    *slot(segment) = static_cast<std::uint64_t*>(block);
}

void SharedColumn::append(std::span<const std::uint64_t> entries) {
    const std::scoped_lock lock(mutex_);
    std::uint64_t at = entries_.load(std::memory_order_relaxed);  // nobody else writes it now
    const std::uint64_t until = at + entries.size();
    // Segments that a failure leaves unused serve the next append.
    while (segments_ * segment_entries_ < until) {
        add_segment(segments_);
        ++segments_;
    }
    const std::uint64_t* from = entries.data();
    while (at < until) {
        const std::uint64_t offset = at % segment_entries_;
        const std::uint64_t count = std::min(until - at, segment_entries_ - offset);
        std::memcpy(*slot(at / segment_entries_) + offset, from, count * sizeof(std::uint64_t));
        at += count;
        from += count;
    }
    entries_.store(until, std::memory_order_release);
}

MorselScan::MorselScan(const SharedColumn& column, std::vector<Scan> scans,
                       std::uint64_t morsel_entries, const ScanKernels& kernels)
    : column_(column),
      scans_(std::move(scans)),
      until_(column.entries()),
      morsel_entries_(morsel_entries),
      kernels_(kernels),
      results_(scans_.size()),
      positions_(scans_.size()) {
    if (morsel_entries == 0 || morsel_entries % 64 != 0) {
        throw std::invalid_argument("a morsel's entries are a multiple of 64");
    }
    for (std::size_t i = 0; i < scans_.size(); ++i) {
        if (scans_[i].output == ScanOutput::bitmap) results_[i].bitmap.resize((until_ + 63) / 64);
        if (scans_[i].output == ScanOutput::positions) {
            positions_[i].resize((until_ + morsel_entries - 1) / morsel_entries);
        }
    }
}

void MorselScan::work() {
    std::vector<ScanResult> own(scans_.size()), totals(scans_.size());
    for (;;) {
        const std::uint64_t morsel = next_.fetch_add(1, std::memory_order_relaxed);
        if (morsel * morsel_entries_ >= until_) break;
        play(morsel, own);
        for (std::size_t i = 0; i < own.size(); ++i) {
            totals[i].matches += own[i].matches;
            totals[i].sum += own[i].sum;
        }
    }
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < totals.size(); ++i) {
        results_[i].matches += totals[i].matches;
        results_[i].sum += totals[i].sum;
    }
}

void MorselScan::play(std::uint64_t morsel, std::vector<ScanResult>& own) {
    const std::uint64_t from = morsel * morsel_entries_;
    const std::uint64_t until = std::min(from + morsel_entries_, until_);
    SharedScan shared(scans_, own, from, until, kernels_);
    column_.visit_runs(from, until, [&](const ColumnRun& run) { shared.run(run); });
    for (std::size_t i = 0; i < own.size(); ++i) {
        std::copy(own[i].bitmap.begin(), own[i].bitmap.end(),
                  results_[i].bitmap.begin() + static_cast<std::ptrdiff_t>(from / 64));
        if (!own[i].positions.empty()) positions_[i][morsel] = std::exchange(own[i].positions, {});
    }
}

std::vector<ScanResult> MorselScan::results() && {
    for (std::size_t i = 0; i < scans_.size(); ++i) {
        for (const auto& part : positions_[i]) {
            results_[i].positions.insert(results_[i].positions.end(), part.begin(), part.end());
        }
    }
    return std::move(results_);
}

}  // namespace numatwin::native
