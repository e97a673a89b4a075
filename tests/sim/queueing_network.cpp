// Networks of queues on the kernel's clock, servers and draws, for tests against theory and SimPy.
//
// Usage: queueing_network UNTIL_PS... <stations; what each line says: simpy_queueing.py
// Writes the trace as rows of four 64-bit numbers: time, event (0 arrive, 1 depart), station,
// customer by its serial number. A visit draws its service on arrival.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "kernel/durations.hpp"
#include "kernel/fifo_server.hpp"
#include "kernel/guide_table.hpp"
#include "kernel/simulation.hpp"

using namespace numatwin;

namespace {

template <class Value>
Value next() {
    Value value{};
    if (!(std::cin >> value)) throw std::invalid_argument("a station is cut off");
    return value;
}

Stream read_stream() {
    const auto key = next<std::uint64_t>();
    return Stream(key, next<std::uint64_t>());
}

std::optional<DurationDraws> read_draws() {
    const auto kind = next<std::string>();
    if (kind == "none") return std::nullopt;
    std::vector<double> values(next<std::size_t>());
    for (double& value : values) value = next<double>();
    const auto time = [&](std::size_t k) { return static_cast<Time>(values.at(k)); };
    const auto made = [&] {
        if (kind == "deterministic") return Durations::deterministic(time(0));
        if (kind == "exponential") return Durations::exponential(values.at(0));
        if (kind == "uniform") return Durations::uniform(time(0), time(1));
        const std::array<std::int64_t, 2> times{time(0), time(1)};  // each with its weight
        return Durations::empirical(times, std::array{values.at(2), values.at(3)});
    }();
    return DurationDraws(made, read_stream());
}

struct Station {
    bool fifo = next<std::string>() == "fifo";
    std::size_t count = next<std::size_t>();
    FifoServer one;
    FifoServers many{count};
    DurationDraws service = read_draws().value();
    std::vector<std::size_t> target;
    GuideTable route;
    Stream route_stream = read_stream();
    std::optional<DurationDraws> between = read_draws();
    std::size_t customers = next<std::size_t>();
};

class Network {
  public:
    explicit Network(std::size_t stations) {
        for (std::size_t s = 0; s < stations; ++s) {
            Station& made = station_.emplace_back();
            std::vector<double> sums{0.0};
            for (std::size_t to = 0; to < stations; ++to)
                if (const auto chance = next<double>(); chance > 0) {
                    made.target.push_back(to);
                    sums.push_back(sums.back() + chance);
                }
            if (sums.back() < 1) {
                made.target.push_back(nowhere);
                sums.push_back(1.0);
            }
            made.route = GuideTable(sums);
        }
        for (std::uint32_t s = 0; s < stations; ++s)
            for (std::size_t k = 0; k < station_[s].customers; ++k)
                clock.schedule(0, enter, s, created_++);
        for (std::uint32_t s = 0; s < stations; ++s)
            if (station_[s].between) clock.schedule(station_[s].between->next(), source_due, s);
    }

    void handle(const Event& event) {
        Station& at = station_[event.subject];
        if (event.kind == enter) return come(event.subject, event.data);
        if (event.kind == source_due) {
            clock.schedule(clock.now() + at.between->next(), source_due, event.subject);
            return come(event.subject, created_++);
        }
        const bool one_way = at.target.size() == 1;
        const std::size_t way =
            one_way ? 0 : at.route.find(at.route_stream.uniform() * at.route.top());
        write(depart, event.subject, event.data);
        if (at.target[way] != nowhere) come(static_cast<std::uint32_t>(at.target[way]), event.data);
    }

    Simulation clock;

  private:
    enum Kind : std::uint32_t { enter, source_due, served };
    enum Row : std::int64_t { arrive, depart };
    static constexpr std::size_t nowhere = ~std::size_t{0};

    void come(std::uint32_t station, std::uint64_t customer) {
        Station& at = station_[station];
        write(arrive, station, customer);
        const Time now = clock.now(), service = at.service.next();
        const Time end = !at.fifo        ? now + service
                         : at.count == 1 ? at.one.admit(now, service)
                                         : at.many.admit(now, service);
        clock.schedule(end, served, station, customer);
    }

    void write(Row event, std::uint32_t station, std::uint64_t customer) const {
        const std::array<std::int64_t, 4> row{clock.now(), event, station,
                                              static_cast<std::int64_t>(customer)};
        std::fwrite(row.data(), sizeof row, 1, stdout);
    }

    std::vector<Station> station_;
    std::uint64_t created_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
    Network network(next<std::size_t>());
    for (int k = 1; k < count; ++k)
        network.clock.run(network, std::strtoll(arguments[k], nullptr, 10));
}
