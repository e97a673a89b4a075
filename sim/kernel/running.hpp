// Runs any model from Python: without the GIL, stopped by Ctrl-C, with errors that can be replayed.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

#include "kernel/simulation.hpp"
#include "kernel/trace.hpp"

namespace numatwin {

// Looks for signals by the wall clock; where one is found, Python's exception (KeyboardInterrupt)
// is set when the simulation stops. Only Python's main thread handles signals.
class SignalInterrupt : public Interrupt {
  public:
    bool requested() override {
        const auto now = Clock::now();
        if (now < next_look_) return false;
        const pybind11::gil_scoped_acquire acquired;
        const bool signalled = PyErr_CheckSignals() != 0;
        next_look_ = Clock::now() + interval;
        return signalled;
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds interval{25};
    Clock::time_point next_look_ = Clock::now() + interval;
};

// A model as Python holds it. Only one thread at a time may take hold of it; a call that meets
// another thread's run is refused (RuntimeError) and changes nothing. The flag is only looked at
// with the GIL.
//
//     py::class_<Runnable<Model>>(module, "Model")
//         .def("run", &Runnable<Model>::run, py::arg("until_ps"))
//         .def_property_readonly("now_ps", &Runnable<Model>::now)
//         .def("served", [](Runnable<Model>& self) { return self->served(); });
//
// The model has a member `clock`, its Simulation.
template <class Model>
class Runnable {
  public:
    template <class... Arguments>
    explicit Runnable(Arguments&&... arguments) : model_(std::forward<Arguments>(arguments)...) {}
    Runnable(const Runnable&) = delete;
    Runnable& operator=(const Runnable&) = delete;

    // Handles all events before until_ps, or all there are for None. Releases the GIL. Ctrl-C
    // raises KeyboardInterrupt between two events, and the next run goes on from there. False where
    // the model halted before until_ps, to let the control plane act.
    bool run(std::optional<Time> until_ps) {
        Model& model = *operator->();
        bool done = false;
        {
            const Busy busy(busy_);
            const pybind11::gil_scoped_release released;
            SignalInterrupt signals;
            done = model.clock.run(model, until_ps.value_or(never), &signals);
        }
        if (!done && PyErr_Occurred()) throw pybind11::error_already_set();
        return done;
    }

    Model* operator->() {
        if (busy_) throw std::runtime_error("the model is being run by another thread");
        return &model_;
    }
    Model& operator*() { return *operator->(); }

    Time now() { return operator->()->clock.now(); }
    std::uint64_t events() { return operator->()->clock.events(); }
    std::size_t pending() { return operator->()->clock.pending(); }

  private:
    // Taken and given back with the GIL held.
    class Busy {
      public:
        explicit Busy(bool& flag) : flag_(flag) { flag_ = true; }
        ~Busy() { flag_ = false; }
        Busy(const Busy&) = delete;
        Busy& operator=(const Busy&) = delete;

      private:
        bool& flag_;
    };

    Model model_;
    bool busy_ = false;
};

// A method of a model, or of what it is derived from, for Python, which holds a Runnable of it.
template <class Model, class Of, class Result, class... Arguments>
auto held(Result (Of::*method)(Arguments...)) {
    return [method](Runnable<Model>& self, Arguments... arguments) -> Result {
        return ((*self).*method)(std::forward<Arguments>(arguments)...);
    };
}
template <class Model, class Of, class Result, class... Arguments>
auto held(Result (Of::*method)(Arguments...) const) {
    return [method](Runnable<Model>& self, Arguments... arguments) -> Result {
        return ((*self).*method)(std::forward<Arguments>(arguments)...);
    };
}

// A copy: fields time_ps, event, subject, data.
inline pybind11::array_t<TraceRow> trace_array(const Trace& trace) {
    const auto& rows = trace.rows();
    return pybind11::array_t<TraceRow>(static_cast<pybind11::ssize_t>(rows.size()), rows.data());
}

// What every runnable model offers to Python: run, now_ps, events, pending.
template <class Model, class Class>
void def_running(Class& bound) {
    namespace py = pybind11;
    bound
        .def("run", &Runnable<Model>::run, py::arg("until_ps") = py::none(),
             R"(Handles all events before until_ps, or all; False where it halts before.

Releases the GIL; Ctrl-C raises KeyboardInterrupt, and the next run goes on from there.
Raises ModelError.)")
        .def_property_readonly("now_ps", &Runnable<Model>::now, "The time reached.")
        .def_property_readonly("events", &Runnable<Model>::events, "Events handled.")
        .def_property_readonly("pending", &Runnable<Model>::pending, "Events to come.");
}

}  // namespace numatwin
