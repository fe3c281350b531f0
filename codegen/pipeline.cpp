#include "codegen/pipeline.h"

#include "codegen/group/group.h"
#include "codegen/plan/assemble.h"

namespace bitale {

namespace {

// An update by a bare leaf is a copy, and has to be a value of its own: a swap of two variables reads both old ones.
Graph with_copies(const Graph& graph) {
    Graph r = graph;
    for (SharedUpdate& update : r.updates)
        if (update.value->op->kind == OpKind::leaf)
            update.value = make_node(find_op("cast"), {update.value}, {{"dtype", update.value->type.dtype}}, update.where);
    return r;
}

}  // namespace

Program generate(const Graph& graph, const Target& target) {
    const Graph whole = with_copies(graph);
    const Values values = decide_storage(whole, target);
    const Grouping grouping = form_groups(values, whole, target);
    return assemble(whole, values, grouping, target);
}

}  // namespace bitale
