// Python's view of what messages and the processors of their processes cost.
#include "kernel/register.hpp"
#include "kernel/struct_binding.hpp"
#include "machine/kernel/message_path.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

void register_message_path(py::module_& module) {
    auto cost = def_struct<MessageCost>(
        module, "MessageCost",
        "What one message of a type costs, in ps; its size is in the numbers.\n\n"
        "A part of 0 of a thread takes none. The adapters' sides take the larger of 1 / message "
        "rate and bytes / bandwidth; cut-through: the incoming side starts when the first bits "
        "come, wire_ps after the outgoing side started.");
    def_value(cost);
    def_value(
        def_struct<PathFault>(module, "PathFault", "Paths between machines that fail for a time."));
    def_value(def_struct<Transport>(module, "Transport",
                                    "When a transport sends again what was lost or not answered."));
    def_value(def_struct<ProcessorSetup>(
        module, "ProcessorSetup",
        "Processors of one host that processes share by Linux's rules (EEVDF), and what that costs "
        "them, in their own time: sim/machine/reference/processors.py."));
}

const Registration registration("message_path", register_message_path);

}  // namespace
}  // namespace numatwin
