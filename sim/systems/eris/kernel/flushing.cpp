// ErisRouting: commands are made, put into outgoing buffers, and flushed into incoming ones.
#include <algorithm>

#include "systems/eris/kernel/routing.hpp"

namespace numatwin {

using namespace descriptor;

// Whether what the worker has taken, or what waits for it, fills more than half a buffer.
bool ErisRouting::is_behind(std::uint32_t i) const {
    const Worker& w = worker_[i];
    const auto full =
        static_cast<std::uint64_t>(machine_.incoming_commands * machine_.command_bytes);
    const std::uint64_t taken = w.taken == nothing_taken ? 0 : offset(w.incoming[w.taken].word);
    return 2 * std::max(taken, offset(w.incoming[w.active].word)) > full;
}

// A cell of the table; few steps from where the guide says.
std::uint32_t ErisRouting::draw(std::uint32_t i) {
    const double u = streams_[i].uniform();
    const double* end = sum_.data() + 1;
    std::uint32_t cell = guide_[static_cast<std::uint32_t>(u * guide_slots_)];
    while (u >= end[cell]) ++cell;
    return cell;
}

void ErisRouting::append(std::uint32_t i, std::uint32_t to, std::uint32_t operation,
                         std::uint32_t count, Time first) {
    const std::size_t at = pair(i, to);
    const bool alone = count_.add(at, count) == count;
    worker_[i].in_row += count;
    if (!parts_out_.empty()) {
        auto& parts = parts_out_[at];
        for (auto part = parts.rbegin(); part != parts.rend() && part->since == first; ++part)
            if (part->operation == operation) {
                part->count += count;
                return;
            }
        parts.push_back({first, operation, count});
        return;
    }
    if (alone) first_[at] = first;
    if (keyed_ > 1) by_operation_[at * keyed_ + operation] += count;
}

// A scan goes to every worker that has lines; false where as many as may are under way.
bool ErisRouting::request_scan(std::uint32_t i, std::uint32_t operation, Time since) {
    if (running_scans_[operation] >= machine_.scans_max) return false;
    std::uint32_t holders = 0;
    for (std::size_t t = 0; t < workers(); ++t) holders += has_lines(t, operation);
    std::uint32_t id = static_cast<std::uint32_t>(scans_.size());
    if (free_scans_.empty()) {
        scans_.push_back({});
    } else {
        id = free_scans_.back();
        free_scans_.pop_back();
    }
    scans_[id] = {operation, holders, since};
    ++running_scans_[operation];
    worker_[i].requested_scans.push_back(id);
    worker_[i].in_row += holders;
    return true;
}

// A batch is made in one go, also where buffers fill up meanwhile and are flushed. A closed client
// hands its commands over together; an open one hands each over as it arrives.
void ErisRouting::begin_batch(std::uint32_t i) {
    Worker& w = worker_[i];
    w.of_making = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(w.to_make, static_cast<std::uint64_t>(machine_.batch)));
    w.making_since = clock.now();
    if (is_behind(i)) w.stuck = true;
    make(i);
}

void ErisRouting::make(std::uint32_t i) {
    Worker& w = worker_[i];
    const auto count = static_cast<std::uint32_t>(workers());
    const auto by_key = static_cast<std::uint32_t>(keyed_) * count;
    const auto room = static_cast<std::uint32_t>(machine_.buffer_commands);
    const bool ahead = !drawn_.empty();
    const Time now = clock.now();
    w.made = 0;
    w.full = none;
    std::uint32_t written = 0;  // a scan is written once, and a reference for each who has lines
    while (w.made < w.of_making && !w.stuck) {
        if (w.pending == none) {
            if (machine_.arrival_ps > 0) {
                if (w.next_arrival > now) {
                    w.stuck = true;
                    break;
                }
                w.pending_since = w.next_arrival;
                w.next_arrival += rounded_ps(streams_[i].exponential(machine_.arrival_ps));
            }
            w.pending = ahead ? next_drawn(i) : draw(i);
        }
        if (w.pending >= by_key) {
            const auto before = w.in_row;
            if (!request_scan(i, static_cast<std::uint32_t>(keyed_) + w.pending - by_key,
                              machine_.arrival_ps > 0 ? w.pending_since : now)) {
                w.stuck = true;
                break;
            }
            written += static_cast<std::uint32_t>(w.in_row - before);
        } else {
            const std::uint32_t operation = keyed_ > 1 ? w.pending / count : 0;
            const std::uint32_t to = w.pending - operation * count;
            const std::uint32_t has = count_[pair(i, to)];
            if (has >= room) {
                w.full = to;
                break;
            }
            const Time since = machine_.arrival_ps > 0 ? w.pending_since : w.making_since;
            append(i, to, operation, 1, since);
            w.last_made = since;
            if (has + 1 == room && !machine_.flushed_late) w.full = to;
            ++made_;
        }
        w.pending = none;
        ++w.made;
        if (w.full != none) break;
    }
    if (w.made == 0) return w.full != none ? begin_flush(i, w.full, After::making) : work(i);
    w.idle = false;
    const double core = static_cast<double>(w.made + written) * machine_.issue_ps[node(i)];
    clock.schedule(phase(i, issue, {core}), issued, i);
}

void ErisRouting::made(std::uint32_t i) {
    Worker& w = worker_[i];
    w.to_make -= w.made;
    w.of_making -= w.made;
    counts.made += w.made;
    if (machine_.think_ps > 0) w.outstanding += w.made;
    note(issued, i, w.full, w.made);
    if (w.full != none) return begin_flush(i, w.full, After::making);
    work(i);
}

std::uint32_t ErisRouting::references(std::uint32_t i, std::uint32_t to) const {
    if (sent_references_.empty()) return 0;
    // `requested_scans` holds scans since the worker last had none to send.
    const auto& requested = worker_[i].requested_scans;
    const std::uint32_t sent = sent_references_[pair(i, to)];
    std::uint32_t found = 0;
    for (std::size_t k = sent; k < requested.size(); ++k)
        found += has_lines(to, scans_[requested[k]].operation);
    return found;
}

std::uint32_t ErisRouting::waiting_for(std::uint32_t i, std::uint32_t to) const {
    const std::size_t at = pair(i, to);
    return count_[at] + (answers_.empty() ? 0 : answers_[at]) + references(i, to);
}

bool ErisRouting::has_room(std::uint32_t to, std::uint64_t commands) const {
    const Worker& target = worker_[to];
    const auto bytes = static_cast<std::uint64_t>(machine_.command_bytes);
    return offset(target.incoming[target.active].word) + commands * bytes <=
           static_cast<std::uint64_t>(machine_.incoming_commands) * bytes;
}

// What the next flush takes: at most a buffer of each kind, and no more than an empty incoming
// buffer holds. What is left goes with the one after it.
ErisRouting::Portion ErisRouting::portion(std::uint32_t i, std::uint32_t to) const {
    const std::size_t at = pair(i, to);
    const auto room = static_cast<std::uint32_t>(machine_.buffer_commands);
    auto fits = static_cast<std::uint32_t>(machine_.incoming_commands);
    const auto part = [&fits](std::uint32_t waiting) {
        const std::uint32_t taken = std::min(waiting, fits);
        fits -= taken;
        return taken;
    };
    Portion found;
    found.commands = part(std::min(count_[at], room));
    found.references = part(references(i, to));
    found.answers = answers_.empty() ? 0 : part(std::min(answers_[at], room));
    return found;
}

void ErisRouting::begin_flush(std::uint32_t i, std::uint32_t to, After after) {
    Worker& w = worker_[i];
    w.to = to;
    w.after = after;
    w.sends = portion(i, to);
    read_descriptor(i);
}

void ErisRouting::read_descriptor(std::uint32_t i) {
    Worker& w = worker_[i];
    const Worker& target = worker_[w.to];
    w.into = target.active;
    w.read_word = target.incoming[w.into].word;
    const Time way = paced(i, handed(i, w.to));
    w.step[flush] += way;
    clock.schedule(clock.now() + way, attempted, i, w.to);
}

void ErisRouting::attempt(std::uint32_t i) {
    Worker& w = worker_[i];
    if (machine_.exchanged_at_once) w.into = worker_[w.to].active;
    Incoming& buffer = worker_[w.to].incoming[w.into];
    if (!machine_.exchanged_at_once && buffer.word != w.read_word) {
        ++counts.retries;
        return read_descriptor(i);
    }
    const std::uint64_t commands = w.sends.all();
    if (!has_room(w.to, commands)) {
        ++counts.full;
        return after_flush(i, false);
    }
    const auto bytes = commands * static_cast<std::uint64_t>(machine_.command_bytes);
    buffer.word += (bytes << offset_shift) + one_writer;
    const double lines = lines_of(w.sends.commands + w.sends.references, w.sends.answers);
    const double core =
        machine_.flush_ps[node(i)] + static_cast<double>(commands) * machine_.copy_ps[node(i)];
    const double held = handed_lines_ps(i, w.to, lines, machine_.stream_slots);
    Time done = handing(i, flush, core, held);
    const Time alone = done;
    done = hand_over(node(i), node(w.to), lines, done);
    w.step[flush] += done - alone;
    w.time.end(done);
    __builtin_prefetch(buffer.batches.next_place(), 1);  // written by deliver()
    clock.schedule(done, copied, i, w.to);
}

// Lines come to be written, and go back filled. Returns when the last one is across, no earlier
// than `done`; nobody waits for what is written back, nor for the memory. Waits for what comes from
// other writers are in the latency of the descriptor's line.
Time ErisRouting::hand_over(std::size_t writer, std::size_t reader, double lines, Time done) {
    if (writer == reader) return done;
    const ErisMachine& m = machine_;
    const Time now = clock.now();
    const double messages = lines * m.handed_messages, passed = m.handed_passed_messages;
    const double written = lines * m.handed_written;
    done = links_.cross(now, reader, writer,
                        {lines * m.handed_fetched, messages, m.handed_passed, passed}, done);
    done =
        links_.cross(now, writer, reader, {lines, messages, lines * m.handed_back, passed}, done);
    if (const double moved = lines * m.handed_read + written; moved > 0)
        memory_[static_cast<std::size_t>(m.home[reader])].serve(now, moved, written);
    return done;
}

void ErisRouting::arrive(std::uint32_t i) {
    Worker& w = worker_[i];
    const std::size_t at = pair(i, w.to);
    if (parts_out_.empty())
        deliver(i, at);
    else
        deliver_parts(i, at);
    if (w.sends.references > 0) {
        std::uint32_t& sent_already = sent_references_[at];
        for (std::uint32_t left = w.sends.references; left > 0; ++sent_already) {
            const std::uint32_t id = w.requested_scans[sent_already];
            if (has_lines(w.to, scans_[id].operation)) {
                worker_[w.to].mixed[w.into].scans.push_back(id);
                --left;
            }
        }
    }
    if (machine_.read_waits > 0) {
        Time& waits = worker_[w.to].waits[w.into];
        waits = std::max(waits, lines_awaited(machine_.read_waits, w.to, i));
    }
    count_.subtract(at, w.sends.commands);
    if (!answers_.empty()) answers_.subtract(at, w.sends.answers);
    w.in_row -= w.sends.all();
    if (w.in_row == 0 && !w.requested_scans.empty()) {
        w.requested_scans.clear();
        std::fill_n(sent_references_.begin() + static_cast<std::ptrdiff_t>(pair(i, 0)), workers(),
                    0);
    }
    note(copied, i, w.to, w.sends.commands);
    const Time way = paced(i, handed(i, w.to));
    w.step[flush] += way;
    clock.schedule(clock.now() + way, released, i, w.to);
}

// What was put into the outgoing buffer at `at` from its first command's time to its last one's.
void ErisRouting::deliver(std::uint32_t i, std::size_t at) {
    const Worker& w = worker_[i];
    Worker& target = worker_[w.to];
    target.incoming[w.into].batches.push(
        {i, w.version, w.sends.commands, w.sends.answers, w.sends.references, first_[at],
         std::max(first_[at], w.last_made)},
        blocks_);
    if (keyed_ == 1) return;
    std::uint32_t left = w.sends.commands;
    for (std::size_t o = 0; o < keyed_; ++o) {
        std::uint32_t& has = by_operation_[at * keyed_ + o];
        const std::uint32_t part = std::min(left, has);
        target.mixed[w.into].by_operation.push_back(part);
        has -= part;
        left -= part;
    }
}

// Each part of a flush that was handed over at one time is a batch of its own.
void ErisRouting::deliver_parts(std::uint32_t i, std::size_t at) {
    const Worker& w = worker_[i];
    Worker& target = worker_[w.to];
    auto& parts = parts_out_[at];
    std::size_t sent = 0;
    ErisBatch batch{i, w.version, 0, w.sends.answers, w.sends.references, 0, 0};
    std::uint32_t left = w.sends.commands;
    do {
        std::uint32_t operation = 0;
        batch.count = 0;
        if (left > 0) {
            Part& part = parts[sent];
            operation = part.operation;
            batch.count = std::min(left, part.count);
            batch.first = batch.last = part.since;
            left -= batch.count;
            part.count -= batch.count;
            if (part.count == 0) ++sent;
        }
        target.incoming[w.into].batches.push(batch, blocks_);
        batch.answers = batch.references = 0;
        for (std::size_t o = 0; keyed_ > 1 && o < keyed_; ++o)
            target.mixed[w.into].by_operation.push_back(o == operation ? batch.count : 0);
    } while (left > 0);
    parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(sent));
}

void ErisRouting::release(std::uint32_t i) {
    const Worker& w = worker_[i];
    Worker& target = worker_[w.to];
    Incoming& buffer = target.incoming[w.into];
    buffer.word -= one_writer;
    ++counts.flushes;
    counts.flushed += w.sends.commands;
    if (target.state == State::waiting_for_writers && target.taken == w.into &&
        writers(buffer.word) == 0) {
        target.state = State::working;
        clock.schedule(clock.now(), swapped, w.to);
    }
    awake(w.to, 0);
    after_flush(i, true);
}

void ErisRouting::after_flush(std::uint32_t i, bool sent) {
    Worker& w = worker_[i];
    if (!sent) w.full_targets.push_back(w.to);
    if (w.after == After::end_of_round) return flush_rest(i);
    // Without room for a command in hand no other can be made.
    if (!sent && w.pending != none) w.stuck = true;
    if (w.of_making > 0 && !w.stuck) return make(i);
    work(i);
}

void ErisRouting::flush_rest(std::uint32_t i) {
    Worker& w = worker_[i];
    const auto count = static_cast<std::uint32_t>(workers());
    while (w.in_row > 0 && w.next_flush < count) {
        const std::uint32_t to = (i + ++w.next_flush) % count;
        if (waiting_for(i, to) > 0) return begin_flush(i, to, After::end_of_round);
    }
    end_round(i);
}

}  // namespace numatwin
