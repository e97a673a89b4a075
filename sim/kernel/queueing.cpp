// Networks of queues: how customers move.
#include "kernel/queueing.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace numatwin {
namespace {

void require(bool holds, const char* what, const char* expected) {
    if (!holds) throw std::invalid_argument(std::string(what) + ": expected " + expected);
}

}  // namespace

const QueueingNetwork::Station& QueueingNetwork::station_at(Index station) const {
    require(station < station_.size(), "station", "the index of a station of this network");
    return station_[station];
}

void QueueingNetwork::require_before_run() const {
    require(clock.events() == 0, "network", "to be complete before it runs");
}

QueueingNetwork::Index QueueingNetwork::add_station(StationSpec spec) {
    require_before_run();
    require(spec.servers >= 1 && spec.servers <= 1'000'000, "servers", "from 1 to 10^6");
    station_.emplace_back(std::move(spec));
    station_.back().target = {nowhere};
    return static_cast<Index>(station_.size() - 1);
}

void QueueingNetwork::add_source(Index station, DurationDraws between) {
    require_before_run();
    station_at(station);
    require(between.durations().mean_ps() > 0, "between", "times with a mean above 0");
    source_.push_back({station, std::move(between)});
    clock.schedule(source_.back().between.next(), source_due,
                   static_cast<std::uint32_t>(source_.size() - 1));
}

void QueueingNetwork::add_customers(Index station, std::size_t count) {
    require_before_run();
    station_at(station);
    for (std::size_t k = 0; k < count; ++k) clock.schedule(0, enter, station, new_customer());
}

void QueueingNetwork::set_route(Index station, std::span<const double> probability, Stream stream) {
    require_before_run();
    station_at(station);
    require(probability.size() == station_.size(), "probability", "one for each station");
    Station& from = station_[station];
    from.target.clear();
    std::vector<double> sums{0.0};
    for (Index to = 0; to < probability.size(); ++to) {
        require(probability[to] >= 0, "probability", "values from 0 on");
        if (probability[to] == 0) continue;
        from.target.push_back(to);
        sums.push_back(sums.back() + probability[to]);
    }
    require(sums.back() <= 1 + 1e-12, "probability", "a sum of at most 1");
    if (sums.back() < 1 - 1e-12) {
        from.target.push_back(nowhere);
        sums.push_back(1.0);
    }
    if (from.target.size() > 1) from.route = GuideTable(sums);
    from.route_stream = stream;
}

QueueingNetwork::Index QueueingNetwork::new_customer() {
    if (unused_.empty()) {
        unused_.push_back(static_cast<Index>(customer_.size()));
        customer_.emplace_back();
        unused_.reserve(customer_.capacity());
    }
    const Index customer = unused_.back();
    unused_.pop_back();
    customer_[customer] = {clock.now(), clock.now(), created_++, nowhere};
    number_.change(clock.now(), 1);
    return customer;
}

const char* QueueingNetwork::event_name(std::uint32_t kind) {
    constexpr const char* names[] = {"source_due", "enter", "service_ends"};
    return kind <= service_ends ? names[kind] : "unknown";
}

void QueueingNetwork::handle(const Event& event) {
    switch (event.kind) {
        case source_due: {
            Source& source = source_[event.subject];
            clock.schedule(clock.now() + source.between.next(), source_due, event.subject);
            come(source.station, new_customer());
            break;
        }
        case enter:
            come(event.subject, static_cast<Index>(event.data));
            break;
        case service_ends:
            finish(static_cast<Index>(event.data));
            break;
        default:
            throw std::logic_error("an event that no network knows");
    }
}

// A customer comes to a station, from a source or another station.
void QueueingNetwork::come(Index station, Index customer) {
    const Time now = clock.now();
    leave(customer);
    Station& at = station_[station];
    Customer& who = customer_[customer];
    who.station = station;
    who.arrived = now;
    trace.add(now, arrive, station, who.serial);
    ++at.counts.arrivals;
    at.number.change(now, 1);
    const Time service = at.spec.service.next();
    Time end = now + service;
    if (at.spec.kind == StationKind::fifo)
        end = at.spec.servers == 1 ? at.one.admit(now, service) : at.many.admit(now, service);
    clock.schedule(end, service_ends, station, customer);
}

// A visit's service is done: where to?
void QueueingNetwork::finish(Index customer) {
    const Index station = customer_[customer].station;
    Station& from = station_[station];
    const std::size_t way = from.target.size() > 1
                                ? from.route.find(from.route_stream.uniform() * from.route.top())
                                : 0;
    const Index to = from.target[way];
    if (to != nowhere) return come(to, customer);
    leave(customer);
    response_.add(clock.now() - customer_[customer].created);
    number_.change(clock.now(), -1);
    unused_.push_back(customer);
}

// The customer is no longer where it was.
void QueueingNetwork::leave(Index customer) {
    Customer& who = customer_[customer];
    if (who.station == nowhere) return;
    Station& from = station_[who.station];
    trace.add(clock.now(), depart, who.station, who.serial);
    ++from.counts.departures;
    from.number.change(clock.now(), -1);
    from.sojourn.add(clock.now() - who.arrived);
}

}  // namespace numatwin
