// Makes a node's part of each operator. The node and its tables live as long as that.
#pragma once

#include <memory>

#include "systems/joins/join_operator.hpp"

namespace numatwin::native {

template <class Word>
std::unique_ptr<JoinOperator> make_join(JoinNode& node, const NodeTables<Word>& tables);
template <class Word>
std::unique_ptr<JoinOperator> make_message_join(JoinNode& node, const NodeTables<Word>& tables);
template <class Word>
std::unique_ptr<JoinOperator> make_aggregation(JoinNode& node, const NodeTables<Word>& tables);

template <class Word>
std::unique_ptr<JoinOperator> make_operator(JoinNode& node, const NodeTables<Word>& tables) {
    return node.setup.joins() ? make_join(node, tables) : make_aggregation(node, tables);
}

}  // namespace numatwin::native
