// Networks of queues: the primitives put together, to be checked against queueing theory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernel/durations.hpp"
#include "kernel/fifo_server.hpp"
#include "kernel/guide_table.hpp"
#include "kernel/philox.hpp"
#include "kernel/simulation.hpp"
#include "kernel/statistics.hpp"
#include "kernel/trace.hpp"

namespace numatwin {

enum class StationKind : std::uint8_t {
    fifo,   // servers with one queue, in order of arrival (FifoServer, FifoServers)
    delay,  // everybody at once
};

// Customers come from sources (open) or are there from the start (closed), and go from station to
// station by chance; without a route they leave. A visit draws its service on arrival, from the
// station's stream.
//
// Trace: time, event (arrive, depart), station, customer by its serial number.
class QueueingNetwork {
  public:
    using Index = std::uint32_t;
    enum TraceEvent : std::int32_t { arrive, depart };

    struct StationSpec {
        StationKind kind;
        DurationDraws service;
        std::size_t servers = 1;
    };
    struct StationCounts {
        std::uint64_t arrivals = 0;
        std::uint64_t departures = 0;
    };

    explicit QueueingNetwork(std::uint64_t seed, std::uint64_t replication)
        : clock(seed, replication) {}

    // What there is; all throw std::invalid_argument for a value out of range. Before the first
    // run.
    Index add_station(StationSpec spec);
    void add_source(Index station, DurationDraws between);
    void add_customers(Index station, std::size_t count);
    // Where to from this station: a probability each; what is missing to 1 leaves.
    void set_route(Index station, std::span<const double> probability, Stream stream);

    void handle(const Event& event);
    static const char* event_name(std::uint32_t kind);

    // Statistics, since the start or the last reset.
    std::size_t stations() const { return station_.size(); }
    const StationCounts& counts(Index station) const { return station_at(station).counts; }
    double mean_number(Index station) const;
    double utilisation(Index station) const;
    const Histogram& sojourn_ps(Index station) const { return station_at(station).sojourn; }
    std::size_t customers() const { return static_cast<std::size_t>(number_.level()); }  // now
    double mean_customers() const { return number_.mean(clock.now()); }
    const Histogram& response_ps() const { return response_; }  // from source to leaving
    void reset_statistics();

    Simulation clock;
    Trace trace;

  private:
    enum Kind : std::uint32_t { source_due, enter, service_ends };
    static constexpr Index nowhere = ~Index{0};

    struct Customer {
        Time created;
        Time arrived;          // at the station
        std::uint64_t serial;  // from 0
        Index station;         // or nowhere
    };
    struct Source {
        Index station;
        DurationDraws between;
    };
    struct Station {
        explicit Station(StationSpec given) : spec(std::move(given)), many(spec.servers) {}

        StationSpec spec;
        FifoServer one;  // where there is one server
        FifoServers many;

        std::vector<Index> target;  // of routes; nowhere for leaving
        GuideTable route;           // empty where there is one target
        Stream route_stream;

        StationCounts counts;
        TimeAverage number;
        Histogram sojourn;
        Wide work_before = 0;  // up to the last reset
    };

    const Station& station_at(Index station) const;
    void require_before_run() const;
    Wide work(const Station& station) const;

    Index new_customer();
    void come(Index station, Index customer);
    void finish(Index customer);
    void leave(Index customer);

    std::vector<Station> station_;
    std::vector<Source> source_;
    std::vector<Customer> customer_;
    std::vector<Index> unused_;
    std::uint64_t created_ = 0;
    TimeAverage number_;
    Histogram response_;
    Time reset_at_ = 0;
};

}  // namespace numatwin
