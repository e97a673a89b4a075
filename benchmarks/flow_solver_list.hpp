// The flow list that flow_solver.py hands to the compiled programs, and the times they hand back.
#pragma once

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <vector>

// A file of 8-byte numbers in the byte order of the machine: the counts of resources, flows, route
// entries and nodes, then the columns in the order below.
struct FlowList {
    std::vector<double> capacity;
    std::vector<std::int64_t> row_ptr;
    std::vector<std::int64_t> resource;
    std::vector<double> volume;
    std::vector<std::int64_t> source;
    std::vector<std::int64_t> target;
    std::size_t nodes = 0;

    static FlowList read(const char* path) {
        std::ifstream file(path, std::ios::binary);
        std::vector<std::int64_t> counts(4);
        fill(file, counts);
        const auto flows = static_cast<std::size_t>(counts[1]);
        FlowList list;
        list.capacity.resize(static_cast<std::size_t>(counts[0]));
        list.row_ptr.resize(flows + 1);
        list.resource.resize(static_cast<std::size_t>(counts[2]));
        list.volume.resize(flows);
        list.source.resize(flows);
        list.target.resize(flows);
        list.nodes = static_cast<std::size_t>(counts[3]);
        fill(file, list.capacity);
        fill(file, list.row_ptr);
        fill(file, list.resource);
        fill(file, list.volume);
        fill(file, list.source);
        fill(file, list.target);
        return list;
    }

  private:
    template <typename T>
    static void fill(std::ifstream& file, std::vector<T>& column) {
        file.read(reinterpret_cast<char*>(column.data()),
                  static_cast<std::streamsize>(column.size() * sizeof(T)));
        if (!file) throw std::runtime_error("the flow list is cut short");
    }
};

inline void write_times(const char* path, const std::vector<double>& times) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(times.data()),
               static_cast<std::streamsize>(times.size() * sizeof(double)));
    if (!file) throw std::runtime_error("the times cannot be written");
}
