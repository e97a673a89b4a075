// What Python says of a cluster that joins: its machine, its operators step by step, its messages.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/described.hpp"
#include "machine/kernel/message_path.hpp"
#include "machine/kernel/service_machine.hpp"

namespace numatwin {

// n nodes, K pieces of a step, P partitions into which its rows go; lines are of 64 bytes.
struct ExchangeStep {
    FIELDS_OF(ExchangeStep);
    FIELD(bool, central, "workers fetch pieces from one queue; else each node has its own");
    FIELD(bool, gated, "a node begins it when all rows sent to it before have been taken in");
    FIELD(bool, checked, "its pieces contain each row once that steps marked as input sent");
    FIELD(bool, input, "sends rows that a later step checks");
    FIELD(std::vector<std::int64_t>, piece_home, "[K] node where its lines are");
    FIELD(std::vector<double>, piece_lines, "[K] units of work");
    FIELD(std::vector<std::int64_t>, piece_rows, "[K] rows in it, of a checked step");
    FIELD(std::vector<double>, instructions_ps, "[n] of a line, by node of the worker");
    FIELD(double, read, "lines of memory a line");
    FIELD(double, written, "lines of memory a line");
    FIELD(std::vector<std::vector<std::int64_t>>, rows,
          "[n, P] that pieces of a home send to each partition; empty: it sends none");
    FIELD(std::int64_t, rows_of_buffer, "that fill a buffer", 1);
    FIELD(double, row_lines, "lines of a row");
    END_OF_FIELDS;
};

struct ExchangeOperator {
    FIELDS_OF(ExchangeOperator);
    FIELD(bool, one_sided, "rows are written to remote memory; else sent, received, copied");
    FIELD(std::vector<ExchangeStep>, steps, "one after another on each node");
    FIELD(std::vector<MessageCost>, costs, "of a buffer, by how many of so many parts are full");
    END_OF_FIELDS;
};

// W workers.
struct ExchangeSetup {
    FIELDS_OF(ExchangeSetup);
    FIELD(ServiceMachine, machine, "without links: nodes have adapters");
    FIELD(std::vector<double>, slots, "[n] lines that a thread reads at a time");
    FIELD(std::vector<double>, copy_ps, "[n] of a thread that puts a received line in its place");
    FIELD(std::vector<std::int64_t>, worker_core, "[W]");
    FIELD(std::vector<std::int64_t>, slow, "[n] all that workers do takes so many times as long");
    FIELD(std::vector<ExchangeOperator>, operators, "that can be chosen");
    FIELD(std::int64_t, chosen, "of them, at first");
    FIELD(std::vector<MessageCost>, fetch, "to the queue and back, to a chunk's home and back");
    FIELD(std::int64_t, queue_node, "with the central queue");
    FIELD(std::int64_t, send_buffers, "of each worker and partition, for one-sided verbs", 2);
    FIELD(std::int64_t, signal_every, "requests of a worker to a node, at the latest", 1);
    FIELD(std::int64_t, taken_at_once, "messages that a worker receives in a row", 16);
    FIELD(Time, think_ps, "between two queries");
    END_OF_FIELDS;
};

}  // namespace numatwin
