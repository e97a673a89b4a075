// An AEU (autonomous execution unit): one thread, the only one that touches its partitions.
//
// Its loop (Kissinger et al., ERIS, ADMS 2014; sim/systems/eris/kernel/routing.cpp is its model):
//   1. swap the incoming buffers
//   2. group what was received by object and operation
//   3. execute each group: by key, a batch at a time, whose misses overlap; scans of a column
//      together, in one pass. In turn with that, make new commands, a batch at a time, at most
//      `round_commands` in a round, and route them
//   4. balancing and transfers (see cycle.hpp)
//   5. flush the outgoing buffers
//
// No AEU ever waits for another one: where a target has no room, what is for it stays in the
// outgoing buffers, the AEU makes no more commands in this round, and goes on with what it
// receives. An AEU makes no commands either while what it received fills more than half a buffer:
// who is behind does not make more work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "systems/eris/command_maker.hpp"
#include "systems/eris/index_partition.hpp"
#include "systems/eris/outgoing_buffers.hpp"
#include "systems/eris/router.hpp"
#include "systems/eris/worker.hpp"
#include "systems/eris/world.hpp"

namespace numatwin::native {

class Aeu final : public EngineWorker {
  public:
    /// All of the world's incoming buffers are there.
    Aeu(World& world, std::uint32_t number);

    void load() override;
    bool round() override;
    double idle_ns() const override;

  private:
    /// Commands of one operation that have been received.
    struct Group {
        std::size_t object = 0;
        Kind kind = Kind::lookup;
        bool outside = false;
        std::vector<Command> commands;
        std::size_t at = 0, of = 0;  // the command and the entry that come next
        std::size_t left = 0;        // entries
    };
    /// A part of a batch that is executed: entries of one command, as far as they are held here.
    struct Part {
        CommandHeader header;
        std::size_t first, count;
    };
    /// What a scan has found so far.
    struct Sums {
        std::uint64_t matches = 0, sum = 0;
    };
    /// Scans of one column, one pass over it.
    struct Stretch {
        const Column* column = nullptr;
        std::uint64_t at = 0, until = 0;
        std::vector<std::size_t> tasks;
        std::vector<Scan> scans;
    };

    // aeu.cpp
    std::uint64_t now_ns() const noexcept;
    void sort(std::span<const std::byte> taken);
    Group& group_of(const CommandHeader& header);
    void work();
    bool execute();
    void count_step(Step step, Ticks since) noexcept;
    void flush();
    bool is_behind() const noexcept;

    // aeu_making.cpp
    void make();
    std::size_t route(const Drawn& drawn);
    std::size_t route_padded(CommandHeader header, const Drawn& drawn, std::size_t words);
    bool ask_scan(const Drawn& drawn);

    // aeu_executing.cpp
    void execute_batch(Group& group);
    std::size_t gather(Group& group, const Command& command, std::size_t count, std::size_t into);
    void complete(const Group& group);
    void answer(const CommandHeader& header, std::size_t first, std::size_t count);
    void append(const Command& command);
    void append_now(const Command& command);
    void append_held();

    // aeu_making.cpp
    void begin_scans(std::size_t object);
    void scan_chunk();
    void end_scan(ScanTask& task);

    // aeu_balancing.cpp
    void adopt();
    void adopt_index(const std::shared_ptr<Cycle>& cycle);
    void adopt_column(const std::shared_ptr<Cycle>& cycle);
    void receive(Parcel& parcel);
    bool transfer();
    bool send_part(std::size_t object, IndexPartition::Leaving& part);
    bool balance_column(std::size_t object);
    void ready(ColumnPartition& part);

    World& world_;
    const EngineSetup setup_;  // its own copy, on its node
    const std::uint32_t number_;
    const double ns_per_tick_;
    WorkerCounts& counts_;
    IncomingBuffers& incoming_;
    TransferMailbox& mailbox_;
    const std::span<RunningScans> running_scans_;
    OutgoingBuffers outgoing_;
    Router router_;
    CommandMaker maker_;

    // [objects]; one of the two each
    std::vector<std::unique_ptr<IndexPartition>> index_;
    std::vector<std::unique_ptr<ColumnPartition>> column_;
    std::vector<const PartitionTree*> table_;
    std::uint32_t version_ = 0;    // of Control
    std::size_t cycles_seen_ = 0;  // of Control

    // the round
    std::vector<Group> groups_;
    std::size_t group_ = 0;
    std::size_t taken_bytes_ = 0, to_make_ = 0;
    bool stuck_ = false, moved_ = false;
    ScanTasks own_scans_;
    std::vector<std::vector<ScanTask*>> scans_;  // [objects] received
    std::size_t scans_waiting_ = 0;
    std::vector<ScanTask*> tasks_;    // of the pass under way
    std::vector<Sums> sums_;          // of each of them
    std::vector<Stretch> stretches_;  // used again; the first are left of the pass
    std::size_t stretches_left_ = 0;
    std::size_t scan_object_ = 0;
    std::vector<ScanResult> results_;

    // a batch
    std::vector<std::uint64_t> keys_, values_, slots_, words_of_;
    std::vector<std::uint8_t> found_;
    std::vector<Part> parts_;
    std::vector<Pair> pairs_;
    std::vector<std::uint32_t> owners_;
    std::vector<std::uint64_t> words_;
    std::uint32_t batches_made_ = 0;

    struct Held {
        std::size_t object;
        CommandHeader header;
        std::vector<std::uint64_t> words;
    };
    std::vector<Held> held_;     // appends to a column that is being balanced
    std::size_t transfers_ = 0;  // parts of objects that are on their way from or to here
};

}  // namespace numatwin::native
