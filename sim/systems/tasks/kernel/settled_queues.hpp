// Queues of a closed network of tasks in steady state, while service times stay as they are: the
// inner fixed point of sim/systems/tasks/steady_state.py, where the formulas stand.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/described.hpp"

namespace numatwin {

// B batches of tasks, F kinds of them that run (the first B: each batch on its own node), G steps
// of K queries, n nodes. Matrices are by rows.
struct QueueSetup {
    FIELDS_OF(QueueSetup);
    FIELD(std::vector<std::int64_t>, query, "(B) that a batch belongs to");
    FIELD(std::vector<std::int64_t>, home, "(B) node of the queue");
    FIELD(std::vector<std::int64_t>, group, "(B) step of a query");
    FIELD(std::vector<std::int64_t>, stealable, "(B) 1: across nodes");
    FIELD(std::vector<std::int64_t>, group_query, "(G)");
    FIELD(std::vector<std::int64_t>, kind_batch, "(F)");
    FIELD(std::vector<std::int64_t>, kind_node, "(F) of the worker");
    FIELD(std::vector<double>, kind_share, "(F) where threads are moved, else empty");
    FIELD(std::vector<double>, workers, "(n) of each node's");
    FIELD(std::vector<double>, room, "(n) that run on each node at most");
    FIELD(std::vector<std::int64_t>, able, "nodes with workers");
    FIELD(std::vector<std::int64_t>, nearest, "(n, n) nodes by distance from each");
    FIELD(std::vector<double>, distance, "(n, n) of equally far nodes thieves take in turn");
    FIELD(std::vector<double>, population, "(K) clients that may ask for a query");
    FIELD(std::vector<std::int64_t>, mixed, "(K) 1: asked for by clients of the mix");
    FIELD(std::vector<double>, shares, "(K) of the mix; else 1");
    FIELD(std::vector<std::int64_t>, blocked, "(K) 1: its clients wait for a part");
    FIELD(std::vector<std::int64_t>, few, "query of each closed client, if these are to be played");
    FIELD(double, mix_clients, "that are not stuck");
    FIELD(double, think_s, "of closed clients");
    FIELD(double, arrivals_per_s, "of open ones; 0: clients are closed");
    FIELD(double, damping, "part of a step that is gone");
    FIELD(double, tolerance, "of rates, in parts of the largest");
    FIELD(std::int64_t, rounds_max, "of one search");
    END_OF_FIELDS;
};

class SettledQueues {
  public:
    // Throws std::invalid_argument where lengths do not fit together.
    explicit SettledQueues(const QueueSetup& setup);

    // Goes on from where the last call ended, with so many `tasks` (B) of each batch, that take
    // `local_s` (B) on their own node and `task_s` (F) as each kind.
    void settle(const std::vector<double>& tasks, const std::vector<double>& local_s,
                const std::vector<double>& task_s);

    // Where the search is; another one of as many batches, nodes and queries may go on from there.
    std::vector<std::vector<double>> state() const { return {rates, present, able_, thieves_}; }
    void go_on(const std::vector<std::vector<double>>& state);

    std::vector<double> rates;       // (K) queries per second
    std::vector<double> present;     // (B) tasks that wait or run
    std::vector<double> running;     // (F)
    std::vector<double> response_s;  // (K)
    std::vector<double> fit;         // (K) part of what is asked for that workers can do

  private:
    template <class Amount>
    void add_by_batch(std::vector<double>& to, Amount amount) const;
    void see(const std::vector<double>& local_s);
    void steal(const std::vector<double>& tasks, const std::vector<double>& local_s,
               const std::vector<double>& task_s);
    void take(std::size_t thief, std::size_t from, std::size_t to);
    double away(std::size_t batch, double tasks) const;
    void respond(const std::vector<double>& tasks, const std::vector<double>& local_s);
    void play(const std::vector<std::int64_t>& clients, const std::vector<double>& tasks,
              const std::vector<double>& local_s);
    void wait_for_others(const std::vector<double>& tasks, const std::vector<double>& local_s);
    double ask();  // by how much rates changed
    void run(const std::vector<double>& tasks, const std::vector<double>& task_s);

    const QueueSetup of_;
    const std::size_t batches_, kinds_, queries_, nodes_;
    const bool moved_;
    bool stealing_ = false, mix_ = false, one_client_ = false;
    double all_room_ = 0.0;
    double step_ = 0.0;  // the part of a step that is gone
    // Clients that are played together, by the query of each: a few, or a lone one of each query.
    std::vector<std::vector<std::int64_t>> plays_;
    std::vector<double> asked_, seen_, mean_s_, able_, residence_s_, response_;
    std::vector<double> by_query_, own_, together_, arriving_, work_s_, idle_, excess_, taken_;
    std::vector<double> stolen_, busy_;
    std::vector<double> others_s_;  // (n + 1) what queries wait for others; last: workers of all
    std::vector<double> thieves_, worth_, whole_, away_, on_, before_;
};

}  // namespace numatwin
