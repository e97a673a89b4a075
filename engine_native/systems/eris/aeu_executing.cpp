// Aeu: commands by key are executed, a batch at a time; those for keys held elsewhere are handed
// on.
#include <algorithm>
#include <cstring>

#include "systems/eris/aeu.hpp"

namespace numatwin::native {

// The next commands of the group, at most a batch.
void Aeu::execute_batch(Group& group) {
    const Ticks begin = ticks();
    std::size_t count = 0;
    parts_.clear();
    while (count < setup_.batch && group.left > 0) {
        const Command& command = group.commands[group.at];
        const std::size_t some =
            std::min<std::size_t>(setup_.batch - count, command.header.count - group.of);
        const std::size_t here = gather(group, command, some, count);
        if (here > 0) parts_.push_back({command.header, count, here});
        count += here;
        group.left -= some;
        group.of += some;
        if (group.of == command.header.count) {
            ++group.at;
            group.of = 0;
        }
    }
    if (group.left == 0) {
        group.commands.clear();
        group.at = 0;
    }
    ObjectCounts& object = counts_.object[group.object];
    IndexPartition& part = *index_[group.object];
    const std::span<const std::uint64_t> keys{keys_.data(), count};
    if (group.kind == Kind::lookup) {
        object.found.add(part.lookup(keys, values_.data(), found_.data()));
    } else if (group.kind == Kind::upsert) {
        object.inserted.add(
            part.upsert(keys, {values_.data(), count}, words_of_.data(), found_.data()));
        object.entries.store(part.tree.keys(), std::memory_order_relaxed);
    }
    object.executed.add(count);
    counts_.executed.add(count);
    counts_.batches.add(1);
    complete(group);
    const Ticks spent = ticks() - begin;
    object.ticks.add(spent);
    counts_.step(Step::walk).add(spent);
}

// Copies keys, values and slots of the next `count` entries of a command to place `into` of the
// batch; returns how many are held here. The others go where they are.
std::size_t Aeu::gather(Group& group, const Command& command, std::size_t count, std::size_t into) {
    const std::size_t stride = command.header.entry_words;
    const std::uint64_t* from = command.words.data() + group.of * stride;
    std::uint64_t* const keys = keys_.data() + into;
    std::uint64_t* const values = values_.data() + into;
    std::uint64_t* const slots = slots_.data() + into;
    const bool upsert = group.kind == Kind::upsert;
    if (stride == 1) {
        std::memcpy(keys, from, 8 * count);
    } else {
        for (std::size_t k = 0; k < count; ++k) keys[k] = from[k * stride];
        if (upsert)
            for (std::size_t k = 0; k < count; ++k) values[k] = from[k * stride + 1];
        if (group.outside)
            for (std::size_t k = 0; k < count; ++k) slots[k] = from[k * stride + (upsert ? 2 : 1)];
    }
    const IndexPartition& part = *index_[group.object];
    if (part.settled() && part.owns_all(keys, count)) return count;
    std::size_t here = 0;
    for (std::size_t k = 0; k < count; ++k) {
        const std::uint32_t place = part.place_of(keys[k], *table_[group.object]);
        if (place == number_) {
            keys[here] = keys[k];
            values[here] = values[k];
            slots[here] = slots[k];
            ++here;
        } else {
            outgoing_.append_always(place, command.header, {from + k * stride, stride});
        }
    }
    counts_.object[group.object].forwarded.add(count - here);
    counts_.forwarded.add(count - here);
    return here;
}

// What was executed is done: latencies, and answers to who asked.
void Aeu::complete(const Group& group) {
    if (group.outside) {
        for (const Part& part : parts_)
            world_.requests[part.header.callback].answer(
                slots_.data() + part.first,
                group.kind == Kind::lookup ? values_.data() + part.first : nullptr,
                group.kind == Kind::lookup ? found_.data() + part.first : nullptr, part.count);
        return;
    }
    const std::uint32_t now = stamp_of(now_ns());
    for (const Part& part : parts_) {
        OperationCounts& operation = counts_.operation[part.header.callback & 0xffff];
        operation.executed.add(part.count);
        operation.done.add(part.count);
        operation.latency.add(1000 * elapsed_ns(part.header.stamp, now), part.count);
        if (setup_.result_bytes > 0)
            answer(part.header, part.first, part.count);
        else if (setup_.think_ns > 0)
            world_.clients[part.header.origin].outstanding.fetch_sub(
                static_cast<std::int64_t>(part.count), std::memory_order_relaxed);
    }
}

// Results of a part of the batch, on their way to who made the commands.
void Aeu::answer(const CommandHeader& header, std::size_t first, std::size_t count) {
    const std::size_t each = setup_.result_bytes / 8;
    const std::size_t most = std::max<std::size_t>(outgoing_.most_words() / each, 1);
    for (std::size_t at = 0; at < count; at += most) {
        const std::size_t some = std::min(most, count - at);
        words_.assign(some * each, 0);
        for (std::size_t k = 0; k < some; ++k) words_[k * each] = values_[first + at + k];
        CommandHeader back;
        back.operation = static_cast<std::uint8_t>(Kind::answer);
        back.entry_words = static_cast<std::uint8_t>(each);
        back.object = header.object;
        back.origin = static_cast<std::uint16_t>(number_);
        outgoing_.append_always(header.origin, back, words_);
    }
}

// While the column is balanced, they wait: who ends up without entries is not asked by scans.
void Aeu::append(const Command& command) {
    const std::size_t object = command.header.object;
    if (column_[object]->cycle != nullptr)
        held_.push_back({object, command.header, {command.words.begin(), command.words.end()}});
    else
        append_now(command);
}

void Aeu::append_now(const Command& command) {
    const CommandHeader& header = command.header;
    ColumnPartition& part = *column_[header.object];
    ColumnVersions& versions = *world_.objects[header.object].versions;
    const HolderBitmap& holders = versions.holders(versions.present());
    if (!holders.test(number_)) {
        std::uint32_t holder = 0;
        while (!holders.test(holder)) ++holder;
        outgoing_.append_always(holder, header, command.words);
        counts_.forwarded.add(header.count);
        return;
    }
    for (std::size_t k = 0; k < header.count; ++k) {
        const std::uint64_t entry = command.words[2 * k], slot = command.words[2 * k + 1];
        part.own.append({&entry, 1});
        counts_.executed.add(1);
        counts_.object[header.object].inserted.add(1);
        world_.requests[header.callback].answer(&slot, nullptr, nullptr, 1);
    }
    counts_.object[header.object].entries.store(part.own.entries(), std::memory_order_relaxed);
}

void Aeu::append_held() {
    std::vector<Held> held;
    held.swap(held_);
    for (Held& one : held) {
        if (column_[one.object]->cycle != nullptr)
            held_.push_back(std::move(one));
        else
            append_now({one.header, one.words});
    }
}

}  // namespace numatwin::native
