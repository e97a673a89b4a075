// Engine: memory, tables, buffers and workers are made; nothing runs yet.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "memory/host.hpp"
#include "systems/eris/aeu.hpp"
#include "systems/eris/engine.hpp"
#include "systems/eris/shared_worker.hpp"

namespace numatwin::native {
namespace {

std::unique_ptr<MemoryManager> manager(Placement placement, const EngineSetup& setup,
                                       const std::string& object) {
    ManagerOptions options;
    options.placement = placement;
    options.huge_pages = setup.huge_pages;
    options.limit_bytes = setup.limit_bytes;
    options.object = object;
    return std::make_unique<MemoryManager>(options);
}

// Bytes of an incoming buffer: commands, headers of what is flushed, and what one writer may bring
// beside a full buffer of commands.
std::size_t incoming_bytes(const EngineSetup& setup) {
    const std::size_t command = std::max<std::size_t>(setup.command_bytes, 16);
    const std::size_t commands = setup.commands_incoming();
    const std::size_t headers = commands / setup.buffer_commands + setup.workers() + 1;
    const std::size_t scans = std::max<std::size_t>(4096, 64 * setup.scans_max);
    return commands * command + sizeof(CommandHeader) * (headers + setup.buffer_commands) + scans;
}

}  // namespace

void Engine::build() {
    const EngineSetup& setup = world_.setup;
    for (const int host : setup.host_node)
        world_.buffer_managers.push_back(manager(Placement::near(host), setup, "buffers"));
    if (setup.clients) world_.control.phase = std::make_shared<const ClientPhase>(setup.phase);
    bounds_.resize(setup.objects.size());
    for (std::size_t k = 0; k < setup.objects.size(); ++k) build_object(k);
    workers_.resize(setup.workers());
    world_.counts.resize(setup.workers());
    world_.mailboxes.resize(setup.workers());
    if (setup.placement != Layout::partitioned) return;
    for (std::size_t k = 0; k < setup.workers(); ++k)
        world_.incoming.push_back(placed_buffers(world_.buffer_managers[setup.node[k]]->add_cache(),
                                                 incoming_bytes(setup)));
}

// Their threads begin, and each makes what is its own: that comes from the thread's own heap, and
// lies on the node of who touches it first.
void Engine::begin_workers() {
    threads_.reserve(workers_.size());
    try {
        for (std::uint32_t k = 0; k < workers_.size(); ++k)
            threads_.emplace_back([this, k] { run(k); });
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return built_workers_ == workers_.size(); });
        lock.unlock();
        check();
    } catch (...) {
        cancel();
        throw;
    }
}

void Engine::build_worker(std::uint32_t number) {
    const EngineSetup& setup = world_.setup;
    const std::scoped_lock one_at_a_time(mutex_);
    const PreferredNode here(setup.host_node[setup.node[number]]);
    world_.counts[number] =
        std::make_unique<WorkerCounts>(setup.objects.size(), setup.operations.size());
    world_.mailboxes[number] = std::make_unique<TransferMailbox>();
    if (setup.placement == Layout::partitioned)
        workers_[number] = std::make_unique<Aeu>(world_, number);
    else
        workers_[number] = std::make_unique<SharedWorker>(world_, common_, number);
}

// One structure for all, on all nodes in turn or on one.
void Engine::share(ObjectState& object) {
    const EngineSetup& setup = world_.setup;
    const Placement placement = setup.placement == Layout::interleaved
                                    ? Placement::interleaved()
                                    : Placement::near(setup.host_node[setup.home]);
    object.managers.push_back(manager(placement, setup, object.setup.name));
    object.outside = &object.managers[0]->add_cache();
    // The structure's own memory: used by one thread at a time.
    Memory& memory = object.managers[0]->add_cache();
    if (object.setup.kind == ObjectKind::column)
        object.shared_column = std::make_unique<SharedColumn>(memory);
    else
        object.shared_tree = std::make_unique<SharedTree>(
            memory, TreeShape{object.setup.key_bits, object.setup.prefix_bits});
}

void Engine::build_object(std::size_t number) {
    const EngineSetup& setup = world_.setup;
    ObjectState& object = world_.objects[number];
    object.setup = setup.objects[number];
    if (setup.placement != Layout::partitioned) return share(object);
    for (const int host : setup.host_node)
        object.managers.push_back(manager(Placement::near(host), setup, object.setup.name));
    const std::uint64_t workers = setup.workers();
    std::vector<std::uint64_t> bounds;
    for (std::uint64_t k = 0; k <= workers; ++k)
        bounds.push_back(part_of(object.setup.amount, k, workers));
    if (object.setup.kind == ObjectKind::column) {
        HolderBitmap holders(workers);
        for (std::size_t k = 0; k < workers; ++k) holders.set(k, bounds[k + 1] > bounds[k]);
        object.versions = std::make_unique<ColumnVersions>(std::move(holders));
        return;
    }
    std::vector<Partition> partitions;
    for (std::uint32_t k = 0; k < workers; ++k) partitions.push_back({bounds[k], k});
    // Readers: the workers, and calls from outside.
    object.table = std::make_unique<PartitionTable>(world_.buffer_managers[0]->add_cache(),
                                                    workers + 1, partitions);
    bounds_[number] = std::move(bounds);
}

// Engine: balancing cycles are checked, planned and published.

namespace {

void check_bounds(const std::vector<std::uint64_t>& wanted, const std::vector<std::uint64_t>& now) {
    if (wanted.size() != now.size())
        throw std::invalid_argument("bounds: expected one more than AEUs");
    if (wanted.front() != now.front() || wanted.back() != now.back())
        throw std::invalid_argument("bounds: expected the same ends as before");
    for (std::size_t k = 1; k < wanted.size(); ++k)
        if (wanted[k] < wanted[k - 1])
            throw std::invalid_argument("bounds: expected an order that does not fall");
}

}  // namespace

bool Engine::balancing(std::size_t object) const {
    const std::scoped_lock lock(world_.control.mutex);
    for (const auto& cycle : world_.control.cycles)
        if (cycle->object == object && !cycle->over()) return true;
    return false;
}

bool Engine::rebalance(std::size_t number, const std::vector<std::uint64_t>& wanted) {
    expect(State::running, "rebalance: expected after start");
    if (number >= world_.objects.size())
        throw std::invalid_argument("object: expected one of objects");
    if (world_.setup.placement != Layout::partitioned)
        throw std::invalid_argument("rebalance: data that all share cannot be balanced");
    if (balancing(number)) throw std::invalid_argument("rebalance: a cycle is under way");
    const std::size_t workers = world_.workers();
    auto cycle = std::make_shared<Cycle>(workers);
    cycle->object = number;
    cycle->began = ticks();
    ObjectState& object = world_.objects[number];
    Control& control = world_.control;
    const std::scoped_lock lock(control.mutex);
    std::vector<Partition> partitions;
    if (object.table) {
        check_bounds(wanted, bounds_[number]);
        cycle->bounds = wanted;
        cycle->transfers = index_transfers(bounds_[number], wanted, world_.setup.node);
        cycle->left = workers + cycle->transfers.size();
        for (std::uint32_t k = 0; k < workers; ++k) partitions.push_back({wanted[k], k});
    } else {
        std::vector<std::uint64_t> now;
        std::uint64_t before = 0, after = 0;
        for (const auto& counts : world_.counts) {
            now.push_back(counts->object[number].entries.load());
            before += now.back();
        }
        if (wanted.size() != workers)
            throw std::invalid_argument("sizes: expected one for each AEU");
        for (const std::uint64_t size : wanted) after += size;
        if (before != after)
            throw std::invalid_argument("sizes: expected the sum of " + std::to_string(before));
        cycle->transfers = column_transfers(now, wanted, world_.setup.node);
        cycle->left = workers;
        cycle->unready = workers + cycle->transfers.size();
    }
    if (cycle->transfers.empty()) return false;
    control.cycles.reserve(control.cycles.size() + 1);
    if (object.table) {
        std::vector<std::uint64_t> bounds = wanted;
        object.table->replace(partitions);
        bounds_[number].swap(bounds);
    }
    control.cycles.push_back(std::move(cycle));
    control.publish();
    return true;
}

std::vector<CycleReport> Engine::cycles() const {
    const std::scoped_lock lock(world_.control.mutex);
    std::vector<CycleReport> found;
    const auto seconds = [&](Ticks at) {
        return static_cast<double>(at - started_) * ps_per_tick() / 1e12;
    };
    for (const auto& cycle : world_.control.cycles) {
        if (!cycle->over()) continue;
        std::size_t links = 0;
        for (const Transfer& transfer : cycle->transfers) links += transfer.link ? 1 : 0;
        found.push_back({cycle->object, links, cycle->transfers.size() - links,
                         cycle->copied_bytes.load(), seconds(cycle->began),
                         seconds(cycle->ended.load())});
    }
    return found;
}

std::vector<std::uint64_t> Engine::bounds(std::size_t object) const {
    const std::scoped_lock lock(world_.control.mutex);
    return bounds_.at(object);
}

}  // namespace numatwin::native
