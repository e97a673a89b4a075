// Aeu: its part in balancing cycles; the protocol stands in cycle.hpp.
#include <algorithm>
#include <utility>

#include "systems/eris/aeu.hpp"

namespace numatwin::native {
namespace {

// Of a copy: what is sent at a time. 256 KiB: a target is not kept from its commands for longer
// than some 100 µs. Two such chunks may be under way, as in the event plane; more while clients
// pause.
constexpr std::size_t copy_chunk_pairs = 1 << 14, copy_chunk_entries = 1 << 15;
constexpr std::uint32_t chunks_under_way = 2, chunks_in_a_pause = 32;

}  // namespace

// Takes over what has been published since it last did.
void Aeu::adopt() {
    std::vector<std::shared_ptr<Cycle>> cycles;
    {
        Control& control = world_.control;
        const std::scoped_lock lock(control.mutex);
        version_ = control.version();
        maker_.set_phase(control.phase);
        cycles.assign(control.cycles.begin() + static_cast<std::ptrdiff_t>(cycles_seen_),
                      control.cycles.end());
        cycles_seen_ = control.cycles.size();
        // With the mutex: a table never comes without the cycle that brings it.
        for (std::size_t k = 0; k < table_.size(); ++k)
            if (index_[k]) table_[k] = &world_.objects[k].table->read(number_);
    }
    for (const auto& cycle : cycles)
        index_[cycle->object] ? adopt_index(cycle) : adopt_column(cycle);
}

void Aeu::adopt_index(const std::shared_ptr<Cycle>& cycle) {
    IndexPartition& part = *index_[cycle->object];
    part.set_bounds(cycle->bounds);
    for (std::size_t k = 0; k < cycle->transfers.size(); ++k) {
        const Transfer& transfer = cycle->transfers[k];
        if (transfer.target == number_)
            part.pending.push_back({transfer.first, transfer.last, transfer.source, k});
        if (transfer.source != number_) continue;
        if (!transfer.link) {
            part.leaving.push_back({cycle, k, transfer.first, transfer.last});
            ++transfers_;
            continue;
        }
        Parcel parcel{cycle, k, transfer.first, transfer.last, {}, {}, {}};
        parcel.tree.emplace(part.tree.extract(transfer.first, transfer.last));
        world_.mailboxes[transfer.target]->put(std::move(parcel));
    }
    counts_.object[cycle->object].entries.store(part.tree.keys(), std::memory_order_relaxed);
    cycle->done();
}

// What is here can be used from now on.
void Aeu::receive(Parcel& parcel) {
    moved_ = true;
    Cycle& cycle = *parcel.cycle;
    Transfer& transfer = cycle.transfers[parcel.transfer];
    if (parcel.column) {
        ColumnPartition& part = *column_[cycle.object];
        ColumnPartition::Arriving arriving{parcel.transfer, std::move(parcel.column), {}};
        if (!transfer.link) arriving.copy.emplace(part.memory);
        part.arriving.push_back(std::move(arriving));
        if (transfer.link) ready(part);
        return;
    }
    IndexPartition& part = *index_[cycle.object];
    if (parcel.tree) {
        parcel.tree->use(part.memory);
        part.tree.absorb(std::move(*parcel.tree));
    } else {
        if (!parcel.run.empty()) part.tree.append(parcel.run);
        cycle.copied_bytes.fetch_add(parcel.run.size() * sizeof(KeyValue),
                                     std::memory_order_relaxed);
        counts_.copied_bytes.add(parcel.run.size() * sizeof(KeyValue));
        transfer.under_way.fetch_sub(1, std::memory_order_release);
    }
    counts_.object[cycle.object].entries.store(part.tree.keys(), std::memory_order_relaxed);
    part.arrived(parcel.transfer, parcel.last);
    if (parcel.last >= transfer.last) cycle.done();
}

// A piece of work on a transfer; false where there is none now.
bool Aeu::transfer() {
    bool worked = false;
    for (std::size_t k = 0; k < index_.size(); ++k) {
        if (column_[k]) {
            worked = balance_column(k) || worked;
            continue;
        }
        auto& leaving = index_[k]->leaving;
        for (std::size_t at = 0; at < leaving.size();) {
            const bool sent = send_part(k, leaving[at]);
            worked = worked || sent;
            if (sent && leaving[at].cycle == nullptr) {
                leaving.erase(leaving.begin() + static_cast<std::ptrdiff_t>(at));
                --transfers_;
            } else {
                ++at;
            }
        }
    }
    moved_ = moved_ || worked;
    return worked;
}

// The next chunk, flattened and unlinked, goes to its target. What is done has no cycle any more.
bool Aeu::send_part(std::size_t object, IndexPartition::Leaving& part) {
    Transfer& transfer = part.cycle->transfers[part.transfer];
    const std::uint32_t most = world_.control.making() ? chunks_under_way : chunks_in_a_pause;
    if (transfer.under_way.load(std::memory_order_acquire) >= most) return false;
    PrefixTree& tree = index_[object]->tree;
    Parcel parcel{part.cycle, part.transfer, part.first, part.last, {}, {}, {}};
    parcel.run.resize(copy_chunk_pairs);
    parcel.run.resize(tree.flatten(part.first, part.last, parcel.run));
    if (parcel.run.size() == copy_chunk_pairs) parcel.last = parcel.run.back().key;
    if (!parcel.run.empty()) (void)tree.extract(part.first, parcel.last);
    counts_.object[object].entries.store(tree.keys(), std::memory_order_relaxed);
    transfer.under_way.fetch_add(1, std::memory_order_relaxed);
    const bool done = parcel.last >= part.last;
    part.first = done ? part.first : parcel.last + 1;
    world_.mailboxes[transfer.target]->put(std::move(parcel));
    if (done) part.cycle = nullptr;
    return true;
}

void Aeu::adopt_column(const std::shared_ptr<Cycle>& cycle) {
    ColumnPartition& part = *column_[cycle->object];
    part.cycle = cycle;
    ++transfers_;
    for (std::size_t k = 0; k < cycle->transfers.size(); ++k) {
        const Transfer& transfer = cycle->transfers[k];
        if (transfer.source == number_) {
            const std::uint64_t some = std::min(transfer.entries, part.own.entries());
            auto leaves = std::make_shared<Column>(part.own.detach(some));
            part.leaving.push_back(leaves);
            world_.mailboxes[transfer.target]->put({cycle, k, 0, 0, {}, {}, std::move(leaves)});
        }
        if (transfer.target == number_)
            cycle->holds[number_].store(true, std::memory_order_relaxed);
    }
    if (part.own.entries() > 0) cycle->holds[number_].store(true, std::memory_order_relaxed);
    ready(part);
}

// This AEU, or a transfer to it, is ready for the new version; whoever is last publishes it.
// Acquire and release: that one sees who holds what.
void Aeu::ready(ColumnPartition& part) {
    Cycle& cycle = *part.cycle;
    if (cycle.unready.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    HolderBitmap holders(world_.workers());
    for (std::size_t k = 0; k < world_.workers(); ++k)
        if (cycle.holds[k].load(std::memory_order_relaxed)) holders.set(k);
    ColumnVersions& versions = *world_.objects[cycle.object].versions;
    // First its number, so that no AEU gets a scan of the new version and takes it for an old one.
    cycle.version.store(versions.present() + 1);
    versions.publish(std::move(holders));
}

// Copies a chunk of what is on its way here; or, once no scan of the old version is left, ends the
// cycle for this AEU.
bool Aeu::balance_column(std::size_t object) {
    ColumnPartition& part = *column_[object];
    if (!part.cycle) return false;
    Cycle& cycle = *part.cycle;
    for (auto& one : part.arriving) {
        if (one.ready()) continue;
        const std::uint64_t at = one.copy->entries(), all = one.source->entries();
        const std::uint64_t until = std::min<std::uint64_t>(at + copy_chunk_entries, all);
        one.copy->copy_from(*one.source, at, until);
        cycle.copied_bytes.fetch_add(8 * (until - at), std::memory_order_relaxed);
        counts_.copied_bytes.add(8 * (until - at));
        if (until == all) {
            one.source.reset();  // before the source forgets it: its memory is the source's
            ready(part);
        }
        return true;
    }
    const std::uint64_t version = cycle.version.load();
    ColumnVersions& versions = *world_.objects[object].versions;
    if (version == 0 || versions.present() < version || !versions.is_alone(version)) return false;
    part.leaving.clear();
    for (auto& one : part.arriving) part.own.attach(std::move(one.entries()));
    part.arriving.clear();
    counts_.object[object].entries.store(part.own.entries(), std::memory_order_relaxed);
    const auto over = std::exchange(part.cycle, nullptr);
    --transfers_;
    over->done();
    return true;
}

}  // namespace numatwin::native
