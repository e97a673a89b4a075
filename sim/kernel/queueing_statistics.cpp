// Networks of queues: statistics after a run.
#include "kernel/queueing.hpp"

namespace numatwin {

double QueueingNetwork::mean_number(Index station) const {
    return station_at(station).number.mean(clock.now());
}

// Picoseconds of service given by a station's servers since the start.
Wide QueueingNetwork::work(const Station& station) const {
    return station.spec.servers == 1 ? station.one.busy_ps(clock.now())
                                     : station.many.busy_ps(clock.now());
}

// Of the servers' time, the part in which they served; of a delay, the customers there.
double QueueingNetwork::utilisation(Index index) const {
    const Station& station = station_at(index);
    const Time now = clock.now();
    if (now == reset_at_) return 0;
    const auto passed = static_cast<double>(now - reset_at_);
    const auto servers = static_cast<double>(station.spec.servers);
    if (station.spec.kind == StationKind::delay) return station.number.mean(now);
    return static_cast<double>(work(station) - station.work_before) / passed / servers;
}

void QueueingNetwork::reset_statistics() {
    const Time now = clock.now();
    reset_at_ = now;
    number_.reset(now);
    response_.reset();
    for (Station& station : station_) {
        station.counts = {};
        station.number.reset(now);
        station.sojourn.reset();
        station.work_before = work(station);
    }
}

}  // namespace numatwin
