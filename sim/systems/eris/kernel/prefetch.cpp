// ErisRouting: prefetches what the next events read.
//
// Thousands of workers take turns, and what one of them and its buffers look at has left the caches
// before its next event. So an event's lines are fetched in steps, while others are handled: those
// that the event itself names when it is among the next eighty or so; those that its worker names
// when it is among the next twenty; last, those that what was drawn ahead names.
#include <algorithm>

#include "systems/eris/kernel/routing.hpp"

namespace numatwin {
namespace {

// GCC leaves out calls of functions that do nothing else; not so with a volatile statement.
void fetch(const void* place) {
    __builtin_prefetch(place, 1);
    asm volatile("");
}

}  // namespace

void ErisRouting::prefetch(const EventQueue::Rising& soon) const {
    prefetch_far(soon.far);
    prefetch_halfway(soon.halfway);
    prefetch_near(soon.near);
}

void ErisRouting::prefetch_far(const Event& event) const {
    const auto i = event.subject;
    const auto* const worker = reinterpret_cast<const char*>(worker_.data() + i);
    for (std::size_t line = 1; line < 4; ++line) fetch(worker + 64 * line);
    if (!is_flush(event)) {
        fetch(worker);
        fetch(worker + 256);
        if (!drawn_.empty()) {
            const std::uint32_t* const cells = drawn_.data() + i * draws_ahead;
            for (std::size_t k = 0; k < draws_ahead; k += 64 / sizeof *cells) fetch(cells + k);
        }
        return;
    }
    const auto to = static_cast<std::uint32_t>(event.data);
    fetch(worker_.data() + to);
    fetch(handed_.data() + node(i) * nodes_ + node(to));
    if (event.kind == attempted && links_.links() > 0) {
        fetch(links_.last_hop(node(i), node(to)));
        fetch(links_.last_hop(node(to), node(i)));
    }
    if (event.kind == copied) {
        const std::size_t at = pair(i, to);
        fetch(count_.place(at));
        if (parts_out_.empty()) fetch(first_.data() + at);
    }
}

void ErisRouting::prefetch_halfway(const Event& event) const {
    const std::uint32_t i = event.subject;
    const Worker& w = worker_[i];
    switch (event.kind) {
        case attempted:
            fetch(core_.data() + w.core);
            if (links_.links() > 0) {
                links_.each_place(node(i), node(w.to), fetch);
                links_.each_place(node(w.to), node(i), fetch);
            }
            return;
        case copied: {
            const auto* place = worker_[w.to].incoming[w.into].batches.next_place();
            fetch(place);
            fetch(reinterpret_cast<const char*>(place + 1) - 1);
            return;
        }
        case released:
            if (w.after == After::end_of_round) {
                const std::uint32_t to = i + w.next_flush + 1;
                const auto count = static_cast<std::uint32_t>(workers());
                prefetch_target(i, to < count ? to : to - count);
            } else {
                fetch(core_.data() + w.core);
                fetch(streams_.data() + i);
                if (drawn_.empty()) return;
                const std::uint32_t* const cells = drawn_.data() + i * draws_ahead;
                fetch(cells + std::min(w.drawn, draws_ahead - 1));
                fetch(cells + std::min(w.drawn + 16, draws_ahead - 1));
            }
            return;
        case issued:
            fetch(core_.data() + w.core);
            fetch(to_do_.data() + i * operations_);
            if (w.full != none) prefetch_target(i, w.full);
            return;
        case executed:
            fetch(w.batch);
            fetch(core_.data() + w.core);
            fetch(streams_.data() + i);
            fetch(to_do_.data() + i * operations_);
            return;
    }
}

void ErisRouting::prefetch_near(const Event& event) const {
    const std::uint32_t i = event.subject;
    const Worker& w = worker_[i];
    if (event.kind == executed || event.kind == received ||
        (event.kind == released && w.after == After::making && w.of_making > 0))
        prefetch_making(i);
}

void ErisRouting::prefetch_making(std::uint32_t i) const {
    if (drawn_.empty()) return;
    const std::uint32_t* const cells = drawn_.data() + i * draws_ahead;
    const auto* const row = count_.place(pair(i, 0));
    if (keyed_ > 1) return;
    // As many as are made until a buffer is full, mostly.
    const std::uint32_t first = worker_[i].drawn, end = std::min(first + 32, draws_ahead);
    for (std::uint32_t k = first; k < end; ++k) fetch(row + cells[k]);
}

void ErisRouting::prefetch_target(std::uint32_t i, std::uint32_t to) const {
    fetch(worker_.data() + to);
    fetch(count_.place(pair(i, to)));
    fetch(handed_.data() + node(i) * nodes_ + node(to));
}

// The cell of the worker's next command. Some are drawn at a time, so that their buffers' counts
// come from memory all at once.
std::uint32_t ErisRouting::next_drawn(std::uint32_t i) {
    Worker& w = worker_[i];
    std::uint32_t* const cells = drawn_.data() + i * draws_ahead;
    if (w.drawn == draws_ahead) {
        draw_ahead(i, cells);
        w.drawn = 0;
    }
    return cells[w.drawn++];
}

// As draw() does. Its first step takes no branch: where many cells are as long as the guide's
// slots, rounding decides whether it is taken.
void ErisRouting::draw_ahead(std::uint32_t i, std::uint32_t* cells) {
    const auto* const row = count_.place(pair(i, 0));
    const double* const end = sum_.data() + 1;
    Stream stream = streams_[i];
    for (std::uint32_t k = 0; k < draws_ahead; ++k) {
        const double u = stream.uniform();
        std::uint32_t cell = guide_[static_cast<std::uint32_t>(u * guide_slots_)];
        cell += u >= end[cell];
        while (u >= end[cell]) ++cell;
        cells[k] = cell;
        if (keyed_ == 1) fetch(row + cell);
    }
    streams_[i] = stream;
}

// What was drawn ahead goes back: a new table says what cells the same numbers mean.
void ErisRouting::draw_anew() {
    if (drawn_.empty()) return;
    for (std::size_t i = 0; i < workers(); ++i) {
        streams_[i].take_back(draws_ahead - worker_[i].drawn);
        worker_[i].drawn = draws_ahead;
    }
}

}  // namespace numatwin
