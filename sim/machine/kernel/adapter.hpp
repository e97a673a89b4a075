// A network adapter: an outgoing and an incoming side, each of which sends in order of arrival.
#pragma once

#include <algorithm>

#include "kernel/fifo_server.hpp"

namespace numatwin {

// When the first and the last bits of a message can be at the receiver's adapter.
struct Passage {
    Time first_bits, last_bits;
};

// Cut-through: the receiver's side starts with the first bits, and is done no sooner than the last
// bits can be there. Between the two sides is a wire of constant latency.
class Adapter {
  public:
    // A message is handed over at `now`; the outgoing side takes `out` for it, the wire `wire`.
    Passage send(Time now, Time out, Time wire) {
        const Time last_bits = outgoing_.admit(now, out) + wire;
        return {last_bits - out, last_bits};
    }
    // Its first bits are here at `now`, and its last ones can be at `last_bits`; the incoming side
    // takes `in` for it. Returns when the host has the message.
    Time receive(Time now, Time in, Time last_bits) {
        return std::max(incoming_.admit(now, in), last_bits);
    }

    Wide outgoing_busy_ps(Time now) const { return outgoing_.busy_ps(now); }
    Wide incoming_busy_ps(Time now) const { return incoming_.busy_ps(now); }

  private:
    FifoServer outgoing_, incoming_;
};

}  // namespace numatwin
