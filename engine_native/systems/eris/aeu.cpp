#include "systems/eris/aeu.hpp"

#include <algorithm>

namespace numatwin::native {
namespace {

std::vector<IncomingBuffers*> targets(const World& world) {
    std::vector<IncomingBuffers*> found;
    for (const auto& one : world.incoming) found.push_back(one.get());
    return found;
}

OutgoingSizes sizes(const EngineSetup& setup) {
    const std::size_t command = std::max<std::size_t>(setup.command_bytes, 16);
    return {sizeof(CommandHeader) + setup.buffer_commands * command,
            std::max<std::size_t>(4096, 64 * setup.scans_max)};
}

}  // namespace

Aeu::Aeu(World& world, std::uint32_t number)
    : world_(world),
      setup_(world.setup),
      number_(number),
      ns_per_tick_(ps_per_tick() / 1000),
      counts_(*world.counts[number]),
      incoming_(*world.incoming[number]),
      mailbox_(*world.mailboxes[number]),
      running_scans_(world.running_scans),
      outgoing_(world.buffer_managers[setup_.node[number]]->add_cache(), targets(world),
                sizes(setup_)),
      router_(outgoing_),
      maker_(world, setup_, number),
      index_(world.objects.size()),
      column_(world.objects.size()),
      table_(world.objects.size()),
      scans_(world.objects.size()),
      keys_(setup_.batch),
      values_(setup_.batch),
      slots_(setup_.batch),
      words_of_(setup_.batch),
      found_(setup_.batch),
      owners_(setup_.batch) {
    for (std::size_t k = 0; k < world.objects.size(); ++k) {
        ObjectState& object = world.objects[k];
        Memory& memory = object.managers[setup_.node[number]]->add_cache();
        if (object.setup.kind == ObjectKind::column) {
            column_[k] = std::make_unique<ColumnPartition>(memory);
            continue;
        }
        const TreeShape shape{object.setup.key_bits, object.setup.prefix_bits};
        index_[k] =
            std::make_unique<IndexPartition>(memory, shape, object.setup.value_bytes, number);
        table_[k] = &object.table->read(number);
        std::vector<std::uint64_t> bounds;
        for (const Partition& part : table_[k]->partitions()) bounds.push_back(part.first_key);
        bounds.push_back(object.setup.amount);
        index_[k]->set_bounds(bounds);
    }
    // Groups: of each operation of the clients, then of what comes from outside by object.
    for (const OperationSetup& operation : setup_.operations) {
        Group group;
        group.object = operation.object;
        group.kind = static_cast<Kind>(operation.kind);
        groups_.push_back(group);
    }
    for (std::size_t k = 0; k < world.objects.size(); ++k)
        for (const Kind kind : {Kind::lookup, Kind::upsert}) {
            Group group;
            group.object = k;
            group.kind = kind;
            group.outside = true;
            groups_.push_back(group);
        }
    const std::scoped_lock lock(world.control.mutex);
    maker_.set_phase(world.control.phase);
    version_ = world.control.version();
}

void Aeu::load() {
    constexpr std::uint64_t piece = 1 << 14;
    const std::uint64_t workers = world_.workers();
    for (std::size_t k = 0; k < world_.objects.size(); ++k) {
        const std::uint64_t amount = world_.objects[k].setup.amount;
        std::vector<KeyValue> run;
        std::vector<std::uint64_t> entries;
        const std::uint64_t end = part_of(amount, number_ + 1, workers);
        for (std::uint64_t at = part_of(amount, number_, workers);
             at < end && !world_.control.halted();) {
            const std::uint64_t until = std::min(end, at + piece);
            if (column_[k]) {
                entries.clear();
                for (std::uint64_t i = at; i < until; ++i)
                    entries.push_back(loaded_entry(setup_.seed, k, i));
                column_[k]->own.append(entries);
            } else {
                run.clear();
                IndexPartition& part = *index_[k];
                for (std::uint64_t i = at; i < until; ++i)
                    run.push_back({i, part.far.make(part.memory, loaded_value(i))});
                part.tree.append(run);
            }
            counts_.loaded.fetch_add(until - at, std::memory_order_relaxed);
            at = until;
        }
        counts_.object[k].entries.store(column_[k] ? column_[k]->own.entries()
                                                   : index_[k]->tree.keys());
    }
}

std::uint64_t Aeu::now_ns() const noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(ticks()) * ns_per_tick_);
}

void Aeu::count_step(Step step, Ticks since) noexcept {
    counts_.step(step).add(ticks() - since);
}

double Aeu::idle_ns() const {
    if (!stuck_ && outgoing_.is_empty()) return maker_.next_ns() - static_cast<double>(now_ns());
    return 0;
}

bool Aeu::round() {
    const Ticks begin = ticks();
    counts_.rounds.add(1);
    moved_ = stuck_ = false;
    std::span<const std::byte> taken;
    if (!incoming_.is_empty()) taken = incoming_.swap();
    taken_bytes_ = taken.size();
    // In this order: what was put into the mailbox, or published, before a command that was
    // received is seen.
    std::vector<Parcel> parcels = mailbox_.take();
    if (world_.control.version() != version_) adopt();
    for (Parcel& parcel : parcels) receive(parcel);
    if (!taken.empty()) {
        moved_ = true;
        sort(taken);
        count_step(Step::receive, begin);
    }
    work();
    if (!held_.empty()) append_held();
    if (transfers_ > 0) {
        const Ticks from = ticks();
        const Ticks until = from + (from - begin);
        while (transfer() && ticks() < until) {
        }
        count_step(Step::transfer, from);
    }
    flush();
    (moved_ ? counts_.busy_ticks : counts_.idle_ticks).add(ticks() - begin);
    return moved_;
}

Aeu::Group& Aeu::group_of(const CommandHeader& header) {
    const bool outside = (header.operation & from_outside) != 0;
    if (!outside) return groups_[header.callback & 0xffff];
    const bool upsert = (header.operation & ~from_outside) == static_cast<int>(Kind::upsert);
    return groups_[setup_.operations.size() + std::size_t{2} * header.object + (upsert ? 1 : 0)];
}

void Aeu::sort(std::span<const std::byte> taken) {
    group_ = 0;
    for (const Command& command : Commands(taken)) {
        const CommandHeader& header = command.header;
        switch (static_cast<Kind>(header.operation & ~from_outside)) {
            case Kind::answer:
                world_.clients[number_].outstanding.fetch_sub(
                    static_cast<std::int64_t>(header.count), std::memory_order_relaxed);
                break;
            case Kind::scan:
                scans_[header.object].push_back(reinterpret_cast<ScanTask*>(command.words[0]));
                ++scans_waiting_;
                break;
            case Kind::append:
                append(command);
                break;
            default: {
                Group& group = group_of(header);
                group.commands.push_back(command);
                group.left += header.count;
            }
        }
    }
}

void Aeu::work() {
    to_make_ = maker_.allowed(static_cast<double>(now_ns()));
    bool making = false;
    while (true) {
        making = !making;
        const bool may_make = to_make_ > 0 && !stuck_;
        if ((!making || !may_make) && execute()) {
            moved_ = true;
            continue;
        }
        if (!may_make) return;
        make();
    }
}

// The next batch, or chunk of a scan; false where nothing is left.
bool Aeu::execute() {
    while (group_ < groups_.size() && groups_[group_].left == 0) {
        groups_[group_].commands.clear();
        ++group_;
    }
    if (group_ < groups_.size()) {
        execute_batch(groups_[group_]);
        return true;
    }
    while (stretches_left_ == 0 && scans_waiting_ > 0)
        for (std::size_t k = 0; k < scans_.size() && stretches_left_ == 0; ++k)
            if (!scans_[k].empty()) begin_scans(k);
    if (stretches_left_ == 0) return false;
    scan_chunk();
    return true;
}

bool Aeu::is_behind() const noexcept {
    return 2 * std::max(taken_bytes_, incoming_.waiting_bytes()) > incoming_.capacity();
}

void Aeu::flush() {
    if (outgoing_.is_empty()) return;
    const Ticks since = ticks();
    const OutgoingCounts before = outgoing_.counts();
    if (!outgoing_.flush_all()) stuck_ = true;
    const OutgoingCounts& now = outgoing_.counts();
    if (now.flushes > before.flushes) moved_ = true;
    counts_.flushes.set(now.flushes);
    counts_.refused.set(now.refused);
    counts_.retries.set(now.retries);
    count_step(Step::flush, since);
}

}  // namespace numatwin::native
