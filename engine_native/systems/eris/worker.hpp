// A thread of the engine: it loads its part, then goes round and round until all halt.
#pragma once

namespace numatwin::native {

class EngineWorker {
  public:
    virtual ~EngineWorker() = default;
    /// Builds its part of the data. Returns early where all halt.
    virtual void load() = 0;
    /// A round of its loop; false where there was nothing to do.
    virtual bool round() = 0;
    /// Nanoseconds until it knows that it will have something to do; at least as much as it may
    /// sleep for.
    virtual double idle_ns() const { return 1e9; }
};

}  // namespace numatwin::native
