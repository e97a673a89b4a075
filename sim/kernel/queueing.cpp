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

QueueingNetwork::Index QueueingNetwork::add_link(double capacity) {
    require_before_run();
    return static_cast<Index>(links_.add_link(capacity));
}

QueueingNetwork::Index QueueingNetwork::add_station(StationSpec spec) {
    require_before_run();
    require(spec.servers >= 1 && spec.servers <= 1'000'000, "servers", "from 1 to 10^6");
    require(spec.room >= spec.servers, "room", "at least as many as servers");
    require(spec.cap > 0, "cap", "a rate above 0");
    const bool transfer = spec.kind == StationKind::transfer;
    require(transfer != spec.route.empty(), "route", "links for a transfer, and only for one");
    for (const std::int64_t link : spec.route) {
        require(link >= 0 && static_cast<std::size_t>(link) < links_.links(), "route",
                "indices of links of this network");
    }
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
    const StationSpec& spec = station_at(station).spec;
    require(count <= spec.room - station_[station].initial, "count", "no more than there is room");
    station_[station].initial += count;
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
    constexpr const char* names[] = {"source_due", "enter", "service_ends", "shared_ends",
                                     "transfer_ends"};
    return kind <= transfer_ends ? names[kind] : "unknown";
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
        case shared_ends: {
            const auto customer =
                static_cast<Index>(station_[event.subject].shared.finish(clock.now()));
            set_shared_timer(event.subject);
            finish(customer);
            break;
        }
        case transfer_ends: {
            std::uint64_t customer;
            const bool ended = links_.finish(clock.now(), customer);
            set_link_timer();
            if (ended) finish(static_cast<Index>(customer));
            break;
        }
        default:
            throw std::logic_error("an event that no network knows");
    }
}

// A customer comes to a station, from a source or another station.
void QueueingNetwork::come(Index station, Index customer) {
    Station& at = station_[station];
    if (at.spec.kind == StationKind::bounded) {
        Customer& who = customer_[customer];
        const bool full = at.queue.is_full();
        if (full && who.station == nowhere) {
            trace.add(clock.now(), lose, station, who.serial);
            ++at.counts.lost;
            number_.change(clock.now(), -1);
            unused_.push_back(customer);
            return;
        }
        at.queue.offer(customer);
        if (full) {
            trace.add(clock.now(), hold, station, who.serial);
            at.held.change(clock.now(), 1);
            return;
        }
    }
    const Index before = customer_[customer].station;
    accept(station, customer);
    if (before != nowhere && station_[before].spec.kind == StationKind::bounded)
        release_server(before);
}

// The station has room for the customer, which leaves where it was.
void QueueingNetwork::accept(Index station, Index customer) {
    const Time now = clock.now();
    leave(customer);
    Station& at = station_[station];
    Customer& who = customer_[customer];
    who.station = station;
    who.arrived = now;
    trace.add(now, arrive, station, who.serial);
    ++at.counts.arrivals;
    at.number.change(now, 1);
    if (at.spec.kind == StationKind::bounded) return serve(station);
    const Time service = at.spec.service.next();
    switch (at.spec.kind) {
        case StationKind::fifo: {
            const Time end =
                at.spec.servers == 1 ? at.one.admit(now, service) : at.many.admit(now, service);
            clock.schedule(end, service_ends, station, customer);
            break;
        }
        case StationKind::delay:
            clock.schedule(now + service, service_ends, station, customer);
            break;
        case StationKind::shared:
            at.shared.admit(now, customer, static_cast<double>(service), 1.0);
            set_shared_timer(station);
            break;
        case StationKind::transfer: {
            links_.start(
                now,
                {{at.spec.route, at.ones, at.spec.cap, 1.0}, static_cast<double>(service), 0.0},
                customer);
            set_link_timer();
            break;
        }
        case StationKind::bounded:
            break;
    }
}

// A bounded station serves as many as it can.
void QueueingNetwork::serve(Index station) {
    Station& at = station_[station];
    while (at.occupied < at.spec.servers && !at.queue.empty()) {
        const Index customer = at.queue.take_keeping_room();
        ++at.occupied;
        at.serving.change(clock.now(), 1);
        clock.schedule(clock.now() + at.spec.service.next(), service_ends, station, customer);
    }
}

// A visit's service is done: where to?
void QueueingNetwork::finish(Index customer) {
    const Index station = customer_[customer].station;
    Station& from = station_[station];
    const bool bounded = from.spec.kind == StationKind::bounded;
    if (bounded) from.serving.change(clock.now(), -1);
    const std::size_t way = from.target.size() > 1
                                ? from.route.find(from.route_stream.uniform() * from.route.top())
                                : 0;
    const Index to = from.target[way];
    if (to != nowhere) return come(to, customer);
    leave(customer);
    response_.add(clock.now() - customer_[customer].created);
    number_.change(clock.now(), -1);
    unused_.push_back(customer);
    if (bounded) release_server(station);
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

// A bounded station has a server and a place less in use: who waits is served, who was held before
// it comes in; and so on backwards.
void QueueingNetwork::release_server(Index station) {
    Station& at = station_[station];
    --at.occupied;
    at.queue.release();
    serve(station);
    Index customer;
    while (at.queue.admit(customer)) {
        at.held.change(clock.now(), -1);
        const Index before = customer_[customer].station;
        accept(station, customer);
        if (before != nowhere && station_[before].spec.kind == StationKind::bounded)
            release_server(before);
    }
}

void QueueingNetwork::set_shared_timer(Index station) {
    Station& at = station_[station];
    clock.cancel(at.timer);
    at.timer = at.shared.next_end() == never
                   ? no_timer
                   : clock.schedule_timer(at.shared.next_end(), shared_ends, station);
}

void QueueingNetwork::set_link_timer() {
    clock.cancel(link_timer_);
    const Time next = links_.next_change();
    link_timer_ = next == never ? no_timer : clock.schedule_timer(next, transfer_ends);
}

}  // namespace numatwin
