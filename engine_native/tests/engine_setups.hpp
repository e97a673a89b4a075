// Engines for tests: small, any number of AEUs, on logical nodes.
#pragma once

#include <memory>
#include <vector>

#include "systems/eris/engine.hpp"

namespace numatwin::native {

inline std::shared_ptr<const KeyDraws> uniform_keys(std::uint64_t keys) {
    const std::vector<std::uint64_t> breaks{0, keys};
    const std::vector<double> mass{1.0};
    return std::make_shared<const KeyDraws>(breaks, mass, false);
}

/// An index of `keys` keys and, where `entries` > 0, a column; AEU k on node k % nodes; no clients.
inline EngineSetup small_setup(std::size_t workers, std::uint64_t keys, std::uint64_t entries = 0,
                               std::size_t nodes = 1) {
    EngineSetup setup;
    setup.objects.push_back({"index", ObjectKind::index, keys});
    if (entries > 0) setup.objects.push_back({"column", ObjectKind::column, entries});
    for (std::uint32_t k = 0; k < workers; ++k) {
        setup.node.push_back(static_cast<std::uint32_t>(k % nodes));
        setup.cpu.push_back(-1);
    }
    setup.host_node.assign(nodes, -1);
    setup.huge_pages = false;
    setup.clients = false;
    return setup;
}

inline void add_operation(EngineSetup& setup, OperationKind kind, double share = 1,
                          std::size_t object = 0) {
    OperationSetup operation;
    operation.name = "operation";
    operation.kind = kind;
    operation.object = object;
    operation.selectivity = 0.5;
    setup.operations.push_back(operation);
    setup.phase.shares.push_back(share);
    setup.phase.keys.push_back(
        kind == OperationKind::scan ? nullptr : uniform_keys(setup.objects[object].amount));
    setup.clients = true;
}

inline std::uint64_t done(const Engine& engine, std::size_t operation) {
    std::uint64_t sum = 0;
    for (const auto& counts : engine.world().counts)
        sum += counts->operation[operation].done.read();
    return sum;
}

/// One that has loaded its objects and runs.
struct Started : Engine {
    explicit Started(const EngineSetup& setup) : Engine(setup) {
        load();
        start();
    }
};

/// While `busy`, others may run; throws what the engine has failed by.
inline void wait_while(const Engine& engine, const auto& busy) {
    while (busy()) {
        engine.check();
        std::this_thread::yield();
    }
}

/// Waits until so many operations are done in all.
inline void wait_done(const Engine& engine, std::size_t operation, std::uint64_t wanted) {
    wait_while(engine, [&] { return done(engine, operation) < wanted; });
}

inline void balance(Engine& engine, std::size_t object, const std::vector<std::uint64_t>& wanted) {
    engine.rebalance(object, wanted);
    wait_while(engine, [&] { return engine.balancing(object); });
}

}  // namespace numatwin::native
