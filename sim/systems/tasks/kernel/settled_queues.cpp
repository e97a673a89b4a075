#include "systems/tasks/kernel/settled_queues.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace numatwin {
namespace {

using Values = std::vector<double>;

constexpr int rounds_of_taking = 8;
// Queues of nodes with very different numbers of workers settle with short steps only.
constexpr double late_step = 0.4;
constexpr double busiest = 0.999;  // beyond, queries that come at random wait as in a full queue
constexpr double endless = 1e12;   // tasks that wait where more come than can be done
constexpr double servers_most = 256.0;
constexpr int queries_before = 4, queries_played = 20;  // of each of a few clients
constexpr double part_of_task = 1e-6;                   // is rounding

std::size_t at(std::int64_t position) {
    return static_cast<std::size_t>(position);
}

// The probability to wait for one of c servers that are busy for a part `use` of the time (Erlang).
double waits(int c, double use) {
    const double offered = use * c;
    double blocked = 1.0;
    for (int k = 1; k <= c; ++k) blocked = offered * blocked / (k + offered * blocked);
    return blocked / (1.0 - use * (1.0 - blocked));
}

// The same by c, in a straight line between whole ones.
double waits_by_server(double servers, double use) {
    const double most = std::clamp(servers, 1.0, servers_most);
    const int c = static_cast<int>(most);
    const double part = most - c, least = waits(c, use) / c;
    return part > 0 ? least + part * (waits(c + 1, use) / (c + 1) - least) : least;
}

bool below(const std::vector<std::int64_t>& positions, std::size_t end) {
    return std::ranges::all_of(
        positions, [end](std::int64_t at) { return at >= 0 && std::cmp_less(at, end); });
}

}  // namespace

SettledQueues::SettledQueues(const QueueSetup& setup)
    : of_(setup),
      batches_(of_.query.size()),
      kinds_(of_.kind_batch.size()),
      queries_(of_.population.size()),
      nodes_(of_.workers.size()),
      moved_(!of_.kind_share.empty()) {
    const std::size_t groups = of_.group_query.size();
    const bool lengths = of_.home.size() == batches_ && of_.group.size() == batches_ &&
                         of_.stealable.size() == batches_ && of_.kind_node.size() == kinds_ &&
                         (!moved_ || of_.kind_share.size() == kinds_) &&
                         of_.room.size() == nodes_ && of_.nearest.size() == nodes_ * nodes_ &&
                         of_.distance.size() == nodes_ * nodes_ && of_.mixed.size() == queries_ &&
                         of_.shares.size() == queries_ && of_.blocked.size() == queries_ &&
                         (moved_ || kinds_ >= batches_);
    const bool positions =
        below(of_.query, queries_) && below(of_.home, nodes_) && below(of_.group, groups) &&
        below(of_.group_query, queries_) && below(of_.kind_batch, batches_) &&
        below(of_.kind_node, nodes_) && below(of_.able, nodes_) && below(of_.nearest, nodes_) &&
        std::ranges::all_of(of_.few, [&](auto query) {
            return std::ranges::find(of_.group_query, query) != of_.group_query.end();
        });
    if (!lengths || !positions) throw std::invalid_argument("queues: columns do not fit together");
    stealing_ = !moved_ && std::ranges::any_of(of_.stealable, [](auto may) { return may != 0; });
    mix_ = std::ranges::any_of(of_.mixed, [](auto of_mix) { return of_mix != 0; });
    for (Values* of_queries : {&rates, &response_s}) of_queries->assign(queries_, 0.0);
    fit.assign(queries_, 1.0);
    for (Values* of_batches :
         {&present, &asked_, &seen_, &mean_s_, &able_, &residence_s_, &whole_, &away_})
        of_batches->assign(batches_, 0.0);
    for (Values* of_nodes :
         {&together_, &arriving_, &work_s_, &idle_, &excess_, &stolen_, &busy_, &on_})
        of_nodes->assign(nodes_, 0.0);
    for (Values* of_kinds : {&running, &before_, &worth_}) of_kinds->assign(kinds_, 0.0);
    others_s_.assign(nodes_ + 1, -1.0);
    for (Values* pairs : {&taken_, &thieves_}) pairs->assign(nodes_ * nodes_, 0.0);
    for (Values* pairs : {&by_query_, &own_}) pairs->assign(queries_ * nodes_, 0.0);
    response_.assign(groups, 0.0);
    double all = mix_ ? of_.mix_clients : 0.0;
    for (std::size_t k = 0; k < queries_; ++k) all += of_.mixed[k] ? 0.0 : of_.population[k];
    one_client_ = !(of_.arrivals_per_s > 0) && all <= 1.0;
    if (!of_.few.empty()) plays_.push_back(of_.few);
    for (const std::int64_t query : of_.group_query)
        if (one_client_ && !stealing_ && (plays_.empty() || plays_.back()[0] != query))
            plays_.push_back({query});
    for (std::size_t b = 0; b < batches_; ++b) able_[b] = of_.workers[at(of_.home[b])];
    for (const double room : of_.room) all_room_ += room;
}

void SettledQueues::go_on(const std::vector<Values>& state) {
    Values* const all[] = {&rates, &present, &able_, &thieves_};
    for (std::size_t k = 0; k < std::size(all); ++k) {
        if (state.at(k).size() != all[k]->size())
            throw std::invalid_argument("queues: the state of others");
        *all[k] = state[k];
    }
}

void SettledQueues::settle(const Values& tasks, const Values& local_s, const Values& task_s) {
    if (tasks.size() != batches_ || local_s.size() != batches_ || task_s.size() != kinds_)
        throw std::invalid_argument("queues: columns do not fit together");
    std::ranges::fill(response_, 0.0);
    for (const auto& clients : plays_) play(clients, tasks, local_s);
    for (std::int64_t round = 0; round < of_.rounds_max; ++round) {
        step_ = 2 * round < of_.rounds_max ? of_.damping : late_step * of_.damping;
        for (std::size_t b = 0; b < batches_; ++b) asked_[b] = rates[at(of_.query[b])] * tasks[b];
        see(local_s);
        if (of_.arrivals_per_s > 0) wait_for_others(tasks, local_s);
        steal(tasks, local_s, task_s);
        respond(tasks, local_s);
        const double change = ask();
        for (std::size_t b = 0; b < batches_; ++b) {
            const double found =
                std::min(rates[at(of_.query[b])] * tasks[b] * residence_s_[b], endless);
            present[b] += step_ * (found - present[b]);
        }
        before_.swap(running);
        run(tasks, task_s);
        double most = 1e-300;
        for (const double rate : rates) most = std::max(most, rate);
        const auto stays = [most = of_.tolerance * all_room_](double now, double before) {
            return !(std::abs(now - before) > most);
        };
        if (change <= of_.tolerance * most && std::ranges::equal(running, before_, stays)) break;
    }
}

// Adds what each kind on another node brings to its batch's; those of a batch follow each other.
template <class Amount>
void SettledQueues::add_by_batch(Values& to, Amount amount) const {
    for (std::size_t f = batches_; f < kinds_;) {
        const std::size_t b = at(of_.kind_batch[f]), home = at(of_.home[b]);
        double sum = to[b];
        for (; f < kinds_ && at(of_.kind_batch[f]) == b; ++f)
            sum += amount(f, b, at(of_.kind_node[f]) * nodes_ + home);
        to[b] = sum;
    }
}

// What a task finds in the queue that it comes to, but for its own query's tasks; how long those
// that come there run on average.
void SettledQueues::see(const Values& local_s) {
    std::ranges::fill(by_query_, 0.0);
    for (std::size_t b = 0; b < batches_; ++b)
        by_query_[at(of_.query[b]) * nodes_ + at(of_.home[b])] += present[b];
    for (std::size_t node = 0; node < nodes_; ++node) {
        double all = 0.0, of_mix = 0.0;
        for (std::size_t k = 0; k < queries_; ++k) {
            const double there = by_query_[k * nodes_ + node];
            all += there;
            if (of_.mixed[k]) of_mix += there;
            own_[k * nodes_ + node] = there / std::max(of_.population[k], 1.0);
        }
        together_[node] = all;
        for (std::size_t k = 0; k < queries_; ++k) {
            if (of_.mixed[k]) own_[k * nodes_ + node] = of_mix / std::max(of_.mix_clients, 1.0);
            if (of_.arrivals_per_s > 0) own_[k * nodes_ + node] = 0.0;
        }
    }
    std::ranges::fill(arriving_, 0.0);
    std::ranges::fill(work_s_, 0.0);
    for (std::size_t b = 0; b < batches_; ++b) {
        arriving_[at(of_.home[b])] += asked_[b];
        work_s_[at(of_.home[b])] += asked_[b] * local_s[b];
    }
    for (std::size_t b = 0; b < batches_; ++b) {
        const std::size_t node = at(of_.home[b]);
        seen_[b] = together_[node] - own_[at(of_.query[b]) * nodes_ + node];
        const double mean_s = arriving_[node] > 0 ? work_s_[node] / arriving_[node] : 0.0;
        mean_s_[b] = mean_s > 0 ? mean_s : local_s[b];
    }
}

// The part of a batch's tasks that workers of other nodes take. Where there is one client alone,
// idle thieves begin as many as they are at once, before workers at home are free again.
double SettledQueues::away(std::size_t b, double tasks) const {
    const std::size_t home = at(of_.home[b]);
    const double own = of_.workers[home], excess = seen_[b] + tasks - own;
    if (!(excess > 0)) return 0.0;
    const double taken = 1.0 - own / able_[b];
    if (!one_client_ || !of_.stealable[b]) return taken * std::min(excess / tasks, 1.0);
    double thieves = 0.0;
    for (std::size_t thief = 0; thief < nodes_; ++thief) thieves += thieves_[thief * nodes_ + home];
    const double first = std::min(thieves, excess);
    return std::min((first + taken * (excess - first)) / tasks, 1.0);
}

// Workers that may take a batch's tasks, in workers of its own node: idle ones of the nearest nodes
// take what is too much for a queue's own. A node whose tasks are taken by others has the more idle
// workers; thieves who find less than they could do go on to queues of further nodes.
void SettledQueues::steal(const Values& tasks, const Values& local_s, const Values& task_s) {
    if (!stealing_) return;
    std::ranges::fill(idle_, 0.0);
    std::ranges::fill(excess_, 0.0);
    std::ranges::fill(stolen_, 0.0);
    for (std::size_t b = 0; b < batches_; ++b) {
        const std::size_t node = at(of_.home[b]);
        const double work = asked_[b] * local_s[b], stolen = work * away(b, tasks[b]);
        idle_[node] += work - stolen;
        stolen_[node] += stolen;
        if (of_.stealable[b])
            excess_[node] = std::max(excess_[node], seen_[b] + tasks[b] - of_.workers[node]);
    }
    for (std::size_t b = 0; b < batches_; ++b) able_[b] = of_.workers[at(of_.home[b])];
    for (std::size_t node = 0; node < nodes_; ++node) {
        idle_[node] = std::max(of_.workers[node] - idle_[node], 0.0);
        double came = 0.0;
        for (std::size_t thief = 0; thief < nodes_; ++thief)
            came += thieves_[thief * nodes_ + node];
        busy_[node] = came > 0 ? std::min(stolen_[node] / came, 1.0) : 1.0;
    }
    std::ranges::fill(taken_, 0.0);
    for (const std::int64_t thief_ : of_.able) {
        const std::size_t thief = at(thief_);
        const std::int64_t* const near = of_.nearest.data() + thief * nodes_;
        const double* const distance = of_.distance.data() + thief * nodes_;
        for (std::size_t from = 0, to = 0; from < nodes_; from = to) {
            while (to < nodes_ &&
                   (to == from || distance[at(near[to])] == distance[at(near[from])]))
                ++to;
            take(thief, from, to);
        }
    }
    for (std::size_t pair = 0; pair < taken_.size(); ++pair)
        thieves_[pair] += step_ * (taken_[pair] - thieves_[pair]);
    add_by_batch(able_, [&](std::size_t f, std::size_t b, std::size_t pair) {
        return thieves_[pair] * local_s[b] / task_s[f];
    });
}

// Idle workers take from equally far nodes, those of ranks `from` to `to`, in equal parts. Those
// who find less there than they could do take more from the others.
void SettledQueues::take(std::size_t thief, std::size_t from, std::size_t to) {
    for (int round = 0; round < rounds_of_taking; ++round) {
        double open = 0.0;
        const auto each_open = [&](auto act) {
            for (std::size_t rank = from; rank < to; ++rank) {
                const std::size_t victim = at(of_.nearest[thief * nodes_ + rank]);
                if (victim != thief && excess_[victim] > 0) act(victim);
            }
        };
        each_open([&](std::size_t) { ++open; });
        if (!(open > 0) || !(idle_[thief] > 0)) return;
        const double part = idle_[thief] / open;
        each_open([&](std::size_t victim) {
            const double some = std::min(part, excess_[victim]);
            taken_[thief * nodes_ + victim] += some;
            idle_[thief] -= some * busy_[victim];
            excess_[victim] -= some;
        });
    }
}

// How long queries that come at random wait for those that came before: as in M/G/c by Allen and
// Cunneen (Probability, Statistics and Queueing Theory, 1990), where a query of m tasks on E
// workers is one customer of E / m servers, or of one that takes m / E times as long; negative
// where workers cannot do what is asked for.
void SettledQueues::wait_for_others(const Values& tasks, const Values& local_s) {
    const auto wait_of = [&](double workers, auto counts) {
        double work = 0.0, squares = 0.0, widths = 0.0;
        for (std::size_t b = 0; b < batches_; ++b) {
            if (!counts(b) || !(asked_[b] > 0)) continue;
            const double width = std::min(tasks[b], workers);
            const double time_s = local_s[b] * tasks[b] / width;
            work += asked_[b] * local_s[b];
            squares += asked_[b] * local_s[b] * time_s;
            widths += asked_[b] * local_s[b] * width;
        }
        if (!(work > 0)) return 0.0;
        const double use = work / workers;
        if (!(use < busiest)) return -1.0;
        const double servers = workers * work / widths;
        return waits_by_server(servers, use) / (1.0 - use) * squares / work / 2.0;
    };
    double all = 0.0;
    for (std::size_t node = 0; node < nodes_; ++node) {
        all += of_.workers[node];
        others_s_[node] =
            of_.workers[node] > 0
                ? wait_of(of_.workers[node], [&](auto b) { return at(of_.home[b]) == node; })
                : 0.0;
    }
    others_s_[nodes_] = wait_of(all, [](auto) { return true; });
}

// What `clients` wait for themselves and each other, by the query of each: tasks of a batch that
// begin at a time end at a time, and a node's queue is first come, first served. On average over
// some queries, after some others; for one client each query is like the first.
void SettledQueues::play(const std::vector<std::int64_t>& clients, const Values& tasks,
                         const Values& local_s) {
    struct Part {
        std::size_t client, batch;
        double count, came_s, end_s;  // it ends then, if it runs
    };
    struct Client {
        std::size_t group;
        double left, since_s;
    };
    std::vector<Part> runs, waits;
    std::vector<Client> state(clients.size());
    Values free = of_.workers, steps(response_.size(), 0.0), done(batches_, 0.0);
    for (std::size_t b = 0; b < batches_; ++b)
        if (std::ranges::find(clients, of_.query[b]) != clients.end()) residence_s_[b] = 0.0;
    double now_s = 0.0;
    const auto begin = [&](std::size_t c, std::size_t group) {
        while (of_.group_query[group % response_.size()] != clients[c]) ++group;
        state[c] = {group % response_.size(), 0.0, now_s};
        for (std::size_t b = 0; b < batches_; ++b) {
            if (at(of_.group[b]) != state[c].group) continue;
            waits.push_back({c, b, tasks[b], now_s, 0.0});
            state[c].left += tasks[b];
        }
    };
    for (std::size_t c = 0; c < clients.size(); ++c) begin(c, 0);
    const auto count = std::ssize(clients);
    const auto before = count > 1 ? queries_before * count : 0;
    const auto all = count > 1 ? before + queries_played * count : 1;
    for (std::ptrdiff_t answered = 0; answered < all;) {
        for (Part& part : waits) {
            double& room = free[at(of_.home[part.batch])];
            const double some = std::min(part.count, room);
            if (!(some > part_of_task)) continue;
            runs.push_back(part);
            runs.back().count = some;
            runs.back().end_s = now_s + local_s[part.batch];
            room -= some;
            part.count -= some;
        }
        std::erase_if(waits, [](const Part& part) { return !(part.count > part_of_task); });
        if (runs.empty()) return;
        const auto first = std::ranges::min_element(runs, {}, &Part::end_s);
        const Part part = *first;
        runs.erase(first);
        now_s = part.end_s;
        free[at(of_.home[part.batch])] += part.count;
        Client& client = state[part.client];
        const double counts = answered >= before ? 1.0 : 0.0;
        residence_s_[part.batch] += counts * part.count * (now_s - part.came_s);
        done[part.batch] += counts * part.count;
        client.left -= part.count;
        if (client.left > part_of_task) continue;
        response_[client.group] += counts * (now_s - client.since_s);
        steps[client.group] += counts;
        const std::size_t next = client.group + 1;
        answered += next == response_.size() || of_.group_query[next] != of_.group_query[next - 1];
        begin(part.client, next);
    }
    for (std::size_t b = 0; b < batches_; ++b)
        if (done[b] > 0) residence_s_[b] /= done[b];
    for (std::size_t g = 0; g < response_.size(); ++g)
        if (steps[g] > 0) response_[g] /= steps[g];
}

// When the last of a batch's tasks ends, and how long one is there on average.
void SettledQueues::respond(const Values& tasks, const Values& local_s) {
    std::ranges::fill(response_s, 0.0);
    if (plays_.empty()) std::ranges::fill(response_, 0.0);
    for (std::size_t b = 0; b < batches_ && plays_.empty(); ++b) {
        double ahead = std::max(seen_[b] + tasks[b] - able_[b], 0.0), others_s = 0.0;
        if (of_.arrivals_per_s > 0) {
            const double found_s = others_s_[of_.stealable[b] ? nodes_ : at(of_.home[b])];
            if (found_s >= 0) {
                others_s = found_s;
                ahead = std::max(tasks[b] - able_[b], 0.0);
            }
        }
        const double last_s = local_s[b] + others_s + ahead * mean_s_[b] / able_[b];
        const double behind = ahead <= tasks[b] ? ahead * (ahead + 1.0) / (2.0 * tasks[b])
                                                : ahead - (tasks[b] - 1.0) / 2.0;
        residence_s_[b] = local_s[b] + others_s + behind * mean_s_[b] / able_[b];
        double& slowest = response_[at(of_.group[b])];
        slowest = std::max(slowest, last_s);
    }
    for (std::size_t g = 0; g < response_.size(); ++g)
        response_s[at(of_.group_query[g])] += response_[g];
}

// Queries per second that clients ask for at the present response times.
double SettledQueues::ask() {
    double of_mix = 0.0;
    if (mix_ && !(of_.arrivals_per_s > 0)) {
        double mean_s = 0.0;
        for (std::size_t k = 0; k < queries_; ++k)
            if (of_.mixed[k]) mean_s += of_.shares[k] * response_s[k];
        of_mix = of_.mix_clients / std::max(of_.think_s + mean_s, 1e-300);
    }
    double change = 0.0;
    for (std::size_t k = 0; k < queries_; ++k) {
        double wanted = 0.0;
        if (of_.arrivals_per_s > 0)
            wanted = of_.arrivals_per_s * of_.shares[k];
        else if (of_.mixed[k])
            wanted = of_mix * of_.shares[k];
        else if (of_.population[k] > 0)
            wanted = of_.population[k] / (of_.think_s + response_s[k]);
        if (of_.blocked[k]) wanted = 0.0;
        change = std::max(change, std::abs(wanted - rates[k]));
        rates[k] = wanted;
    }
    return change;
}

// Tasks that run: by Little's law, and no more on a node than it has workers. `asked_` is of the
// rates before this round, as are those who are seen.
void SettledQueues::run(const Values& tasks, const Values& task_s) {
    std::ranges::fill(on_, 0.0);
    const auto runs = [&](std::size_t f, double part) {
        running[f] = asked_[at(of_.kind_batch[f])] * task_s[f] * part;
        on_[at(of_.kind_node[f])] += running[f];
    };
    if (moved_) {
        for (std::size_t f = 0; f < kinds_; ++f) runs(f, of_.kind_share[f]);
    } else {
        std::ranges::fill(whole_, 0.0);
        add_by_batch(whole_, [&](std::size_t f, std::size_t, std::size_t pair) {
            return worth_[f] = thieves_[pair] / task_s[f];
        });
        for (std::size_t b = 0; b < batches_; ++b) {
            away_[b] = away(b, tasks[b]);
            runs(b, 1.0 - away_[b]);
        }
        for (std::size_t f = batches_; f < kinds_; ++f) {
            const std::size_t b = at(of_.kind_batch[f]);
            runs(f, away_[b] * (whole_[b] > 0 ? worth_[f] / whole_[b] : 0.0));
        }
    }
    for (std::size_t node = 0; node < nodes_; ++node)
        on_[node] =
            on_[node] > 0 ? of_.room[node] / on_[node] : std::numeric_limits<double>::infinity();
    // The approximation may ask for a little more than all workers do; what open clients ask for
    // beyond that waits forever longer.
    std::ranges::fill(fit, 1.0);
    for (std::size_t f = 0; f < kinds_; ++f) {
        double& of_query = fit[at(of_.query[at(of_.kind_batch[f])])];
        const double part = on_[at(of_.kind_node[f])];
        if (running[f] > 0 && part < of_query) of_query = part;
        running[f] *= std::min(part, 1.0);
    }
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < queries_; ++k)
        if (of_.mixed[k]) least = std::min(least, fit[k]);
    for (std::size_t k = 0; k < queries_; ++k)
        if (of_.mixed[k]) fit[k] = least;
}

}  // namespace numatwin
