// Python's view of the way of a message, for tests against its twin, by hand and by theory.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "kernel/register.hpp"
#include "kernel/running.hpp"
#include "kernel/struct_binding.hpp"
#include "machine/kernel/message_path.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

// Places that send what they are told, each at its time, and note when it was received.
class MessagePlayer : public MessagePath<MessageHead> {
  public:
    MessagePlayer(std::uint32_t machines, std::vector<Place> places, std::vector<MessageCost> costs)
        : MessagePath(0, 0, machines, std::move(places), std::move(costs), 1, {}) {
        for (const Place& place : places_)
            if (place.machine >= machines || place.threads < 1 || place.factor < 1)
                throw std::invalid_argument("no such place");
    }

    void send(Time at, std::uint32_t type, std::uint32_t sender, std::uint32_t receiver,
              Time work) {
        if (type >= sent().size() || std::max(sender, receiver) >= places_.size() || work < 0)
            throw std::invalid_argument("no such message");
        const std::uint32_t message = new_message(type, sender, receiver);
        messages_[message].work = work;
        received_.push_back(never);
        clock.schedule(at, sends, message);
    }
    // Of each message in the order of their sending; never for one that is under way.
    const std::vector<Time>& received_ps() const { return received_; }

  private:
    enum Own : std::uint32_t { sends = first_own };

    void note(const MessageHead&) override {}
    void delivered(std::uint32_t message) override { received_[message] = clock.now(); }
    void lost(std::uint32_t) override {}
    void happened(const Event& event) override { send_message(event.subject); }

    std::vector<Time> received_;
};

void register_message_path(py::module_& module) {
    auto cost = def_struct<MessageCost>(
        module, "MessageCost",
        "What one message of a type costs, in ps; its size is in the numbers.\n\n"
        "A part of 0 of a thread takes none. The adapters' sides take the larger of 1 / message "
        "rate and bytes / bandwidth; cut-through: the incoming side starts when the first bits "
        "come, wire_ps after the outgoing side started.");
    def_value(cost);
    auto fault =
        def_struct<PathFault>(module, "PathFault", "Paths between machines that fail for a time.");
    def_value(fault);
    auto transport = def_struct<Transport>(
        module, "Transport", "When a transport sends again what was lost or not answered.");
    def_value(transport);
    using Player = Runnable<MessagePlayer>;
    using Places = std::vector<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>>;
    py::class_<Player> bound(module, "MessagePath",
                             "Messages between places on machines.\n\n"
                             "See sim/machine/reference/message_path.py.");
    bound.def(
        py::init([](std::uint32_t machines, const Places& given, std::vector<MessageCost> costs) {
            std::vector<Place> places;
            for (const auto& [machine, threads, factor] : given)
                places.push_back({machine, threads, factor});
            return std::make_unique<Player>(machines, std::move(places), std::move(costs));
        }),
        py::arg("machines"), py::arg("places"), py::arg("costs"),
        "places: machine, threads and factor of each; costs: by type.");
    def_running<MessagePlayer>(bound);
    bound
        .def(
            "send",
            [](Player& self, Time at, std::uint32_t type, std::uint32_t sender,
               std::uint32_t receiver, Time work) { self->send(at, type, sender, receiver, work); },
            py::arg("at_ps"), py::arg("type"), py::arg("sender"), py::arg("receiver"),
            py::arg("work_ps") = 0, "Raises ValueError for what there is none of.")
        .def_property_readonly(
            "received_ps", [](Player& self) { return self->received_ps(); },
            "Of each message, in the order of their sending.");
}

const Registration registration("message_path", register_message_path);

}  // namespace
}  // namespace numatwin
