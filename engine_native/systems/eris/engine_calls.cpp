// Engine: commands from outside, written into the incoming buffers of those concerned.
#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <unordered_set>

#include "systems/eris/engine.hpp"
#include "systems/eris/spinning.hpp"

namespace numatwin::native {
namespace {

// Entries of one command: few enough for any incoming buffer to hold it.
constexpr std::size_t most_entries_sent = 64;

}  // namespace

template <class Done>
void Engine::wait_until(const Done& done) {
    Spinning spinning;
    while (!done()) {
        if (world_.control.halted()) give_up();
        spinning.wait();
    }
}

std::vector<Answer> Engine::execute(std::span<const Ask> commands) {
    const std::scoped_lock lock(calls_);
    expect(State::running, "execute: expected while it runs");
    for (const Ask& ask : commands) {
        if (ask.object >= world_.objects.size())
            throw std::invalid_argument("object: expected one of objects");
        const ObjectSetup& object = world_.objects[ask.object].setup;
        const bool column = ask.kind == AskKind::scan || ask.kind == AskKind::append;
        if (column != (object.kind == ObjectKind::column))
            throw std::invalid_argument(
                "execute: a column is scanned and appended to, an index "
                "has lookups and upserts");
        if (!column && object.key_bits < 64 && ask.key >> object.key_bits != 0)
            throw std::invalid_argument("key: expected one of key_bits");
    }
    std::vector<Answer> answers(commands.size());
    // Commands of one kind on one object are under way together, as their order does not matter;
    // but for upserts of the same key.
    std::unordered_set<std::uint64_t> upserted;
    for (std::size_t at = 0; at < commands.size();) {
        upserted.clear();
        std::size_t end = at;
        const Ask& first = commands[at];
        while (end < commands.size() && commands[end].kind == first.kind &&
               commands[end].object == first.object &&
               (first.kind != AskKind::upsert || upserted.insert(commands[end].key).second))
            ++end;
        const auto some = commands.subspan(at, end - at);
        if (world_.setup.placement != Layout::partitioned) {
            for (std::size_t k = at; k < end; ++k) execute_shared(commands[k], answers[k]);
            at = end;
            continue;
        }
        switch (first.kind) {
            case AskKind::scan:
                for (std::size_t k = at; k < end; ++k) execute_scan(commands[k], answers[k]);
                break;
            case AskKind::append:
                execute_appends(some, answers.data() + at);
                break;
            default:
                execute_keyed(some, answers.data() + at);
        }
        at = end;
    }
    return answers;
}

void Engine::execute_keyed(std::span<const Ask> commands, Answer* answers) {
    const std::size_t object = commands[0].object;
    const bool upsert = commands[0].kind == AskKind::upsert;
    const std::size_t stride = upsert ? 3 : 2;
    std::vector<std::vector<std::uint64_t>> to(world_.workers());
    PartitionTable& tables = *world_.objects[object].table;
    {
        const PartitionTree& table = tables.read(world_.workers());
        for (std::size_t k = 0; k < commands.size(); ++k) {
            auto& words = to[table.owner(commands[k].key)];
            words.push_back(commands[k].key);
            if (upsert) words.push_back(commands[k].value);
            words.push_back(k);
        }
        tables.leave(world_.workers());
    }
    Request request(answers, commands.size());
    CommandHeader header;
    header.operation =
        static_cast<std::uint8_t>(upsert ? Kind::upsert : Kind::lookup) | from_outside;
    header.entry_words = static_cast<std::uint8_t>(stride);
    header.object = static_cast<std::uint16_t>(object);
    header.origin = no_worker;
    header.callback = world_.requests.add(request);
    made_outside_.add(commands.size());
    for (std::uint32_t target = 0; target < to.size(); ++target) {
        const std::span<const std::uint64_t> words(to[target]);
        for (std::size_t at = 0; at < words.size(); at += stride * most_entries_sent) {
            const auto some =
                words.subspan(at, std::min(stride * most_entries_sent, words.size() - at));
            header.count = static_cast<std::uint16_t>(some.size() / stride);
            send(target, header, some);
        }
    }
    wait_until([&] { return request.done(); });
    world_.requests.remove(header.callback);
}

void Engine::execute_appends(std::span<const Ask> commands, Answer* answers) {
    const std::size_t object = commands[0].object;
    Request request(answers, commands.size());
    CommandHeader header;
    header.operation = static_cast<std::uint8_t>(Kind::append) | from_outside;
    header.entry_words = 2;
    header.object = static_cast<std::uint16_t>(object);
    header.origin = no_worker;
    header.count = 1;
    header.callback = world_.requests.add(request);
    made_outside_.add(commands.size());
    for (std::size_t k = 0; k < commands.size(); ++k) {
        // To any worker in turn: who holds no part hands it on.
        const std::array<std::uint64_t, 2> words{commands[k].value, k};
        next_worker_ = (next_worker_ + 1) % world_.workers();
        send(static_cast<std::uint32_t>(next_worker_), header, words);
    }
    wait_until([&] { return request.done(); });
    world_.requests.remove(header.callback);
}

void Engine::execute_scan(const Ask& command, Answer& answer) {
    ColumnVersions& versions = *world_.objects[command.object].versions;
    ScanTask task;
    task.object = command.object;
    task.scan = {{command.key, command.value}, ScanOutput::sum};
    task.version = versions.begin();
    const HolderBitmap& holders = versions.holders(task.version);
    task.left.store(static_cast<std::uint32_t>(holders.count()), std::memory_order_relaxed);
    CommandHeader header;
    header.operation = static_cast<std::uint8_t>(Kind::scan) | from_outside;
    header.object = command.object;
    header.origin = no_worker;
    header.count = 1;
    scans_outside_.add(1);
    const auto address = reinterpret_cast<std::uint64_t>(&task);
    holders.for_each([&](std::size_t worker) {
        send(static_cast<std::uint32_t>(worker), header, {&address, 1});
    });
    wait_until([&] { return task.finished.load(std::memory_order_acquire); });
    answer.value = task.sum.load(std::memory_order_relaxed);
    answer.found = task.matches.load(std::memory_order_relaxed);
    answer.answers = 1;
}

namespace {

std::size_t upsert_shared(ObjectState& object, const Ask& command) {
    const FarValues far = object.far();
    std::uint64_t word = 0;
    std::uint8_t found = 0;
    if (far.used() && object.shared_tree->lookup({&command.key, 1}, &word, &found) == 1) {
        far.write(&word, &found, &command.value, 1);
        return 0;
    }
    word = far.make(*object.outside, command.value);
    return object.shared_tree->upsert({&command.key, 1}, {&word, 1}, *object.outside);
}

}  // namespace

// Whose data all share, by the calling thread itself.
void Engine::execute_shared(const Ask& command, Answer& answer) {
    ObjectState& object = world_.objects[command.object];
    std::uint8_t found = 1;
    std::uint64_t inserted = 0;
    switch (command.kind) {
        case AskKind::lookup:
            object.shared_tree->lookup({&command.key, 1}, &answer.value, &found);
            if (object.far().used()) keep(object.far().read(&answer.value, &found, 1));
            break;
        case AskKind::upsert:
            inserted = upsert_shared(object, command);
            break;
        case AskKind::append:
            object.shared_column->append({&command.value, 1});
            inserted = 1;
            break;
        case AskKind::scan: {
            MorselScan scan(*object.shared_column,
                            {{{command.key, command.value}, ScanOutput::sum}});
            scan.work();
            const std::vector<ScanResult> results = std::move(scan).results();
            answer = {results[0].sum, results[0].matches, 1};
            return;
        }
    }
    inserted_outside_[command.object] += inserted;
    answer.found = found;
    answer.answers = 1;
}

void Engine::send(std::uint32_t target, const CommandHeader& header,
                  std::span<const std::uint64_t> words) {
    std::array<std::byte, sizeof(CommandHeader) + 8 * 3 * most_entries_sent> bytes;
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, words.data(), words.size_bytes());
    const std::span<const std::byte> all{bytes.data(), sizeof header + words.size_bytes()};
    wait_until([&] { return world_.incoming[target]->write(all); });
}

// Workers may still use what the call has on its stack: first they end.
void Engine::give_up() {
    cancel();
    check();
    throw std::runtime_error("the engine was stopped");
}

}  // namespace numatwin::native
