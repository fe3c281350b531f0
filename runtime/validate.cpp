// Checks of inputs, outputs, updates and givens.
#include "runtime/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/base/log.h"
#include "graph/base/text.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/shared.h"
#include "graph/walk/traverse.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/train/schedules.h"

namespace bitale {

namespace {

std::string described(const SharedState& s) {
    const std::string name = s.name.empty() ? "a shared variable" : "shared variable " + in_quotes(s.name);
    return name + " (" + text_of(Type{s.value.dtype(), shape_of(s.value.shape())}) + ")" +
           (s.where.line ? " at " + s.where.text() : "");
}

constexpr const char* float_variable = "make it a variable of floats: shared(value.as(float32))";

// Literals take the dtype of what they meet.
NodePtr with_dtype(const Expr& value, DType dtype, Where where) {
    return (value.is_weak() ? strengthen(value, dtype, where) : value).node();
}

// The pairs of constant lengths that can never be equal.
bool certainly_differ(const Shape& a, const Shape& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i].is_constant() && b[i].is_constant() && !(a[i] == b[i])) return true;
    return false;
}

class Validator {
  public:
    Validator(const std::vector<Input>& inputs, const std::vector<Expr>& outputs,
              const FunctionOptions& options, Where where)
        : inputs_(inputs), outputs_(outputs), options_(options), where_(where) {}

    Request run() {
        Graph& graph = request_.graph;
        graph.name = options_.name.empty() ? where_.text() : printable(options_.name);
        check_activations();
        take_inputs();
        for (std::size_t i = 0; i < outputs_.size(); ++i) {
            if (outputs_[i].is_null())
                throw GraphError(where_, fmt::format("output {} of the function is empty", i));
            graph.outputs.push_back(outputs_[i].node());
        }
        take_updates();
        take_givens();
        move_streams_on();
        move_counters_on();
        check_leaves();
        collect_checks(graph);
        request_.signature = signature_of(graph);
        request_.signature.checks.insert(request_.signature.checks.begin(), given_checks_.begin(),
                                         given_checks_.end());
        return std::move(request_);
    }

  private:
    void check_activations() const {
        const DType dtype = options_.activations;
        if (dtype == DType::float32 || dtype == DType::bfloat16 || dtype == DType::float16) return;
        throw TypeError(where_,
                        fmt::format("function {}: activations = {}; values of float32 can be saved for "
                                    "gradients as bfloat16, float16 or, as they are, float32",
                                    in_quotes(request_.graph.name), name_of(dtype)));
    }

    void take_inputs() {
        std::unordered_map<const Node*, std::size_t> seen;
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            if (inputs_[i].variable.is_null())
                throw GraphError(where_, fmt::format("input {} of the function is empty", i));
            const NodePtr& node = inputs_[i].variable.node();
            if (const SharedPtr shared = shared_of(node))
                throw GraphError(
                    where_, fmt::format("input {} is {}; a shared variable is no input, the function reads "
                                        "it by itself (replace it in givens if a value must be passed)",
                                        i, described(*shared)));
            if (node->op != input_op())
                throw GraphError(
                    where_, fmt::format("input {} is {}; only variables made by input(), scalar(), vector(), "
                                        "matrix() and the like can be inputs",
                                        i, describe(*node)));
            if (const auto [at, fresh] = seen.emplace(node.get(), i); !fresh)
                throw GraphError(where_, fmt::format("inputs {} and {} are the same variable, {}", at->second,
                                                     i, describe(*node)));
            if (inputs_[i].by_default) check_default(*node, *inputs_[i].by_default);
            request_.graph.inputs.push_back(node);
            request_.defaults.push_back(inputs_[i].by_default);
        }
    }

    void check_default(const Node& input, const Array& value) const {
        const bool number =
            input.type.rank() == 0 && value.rank() == 0;  // converted at the call, when it fits
        if (!number && value.dtype() != input.type.dtype)
            throw TypeError(where_, fmt::format("the default of {} is {}, another dtype", describe(input),
                                                name_of(value.dtype())));
        bool fits = value.rank() == input.type.rank();
        if (fits) fits = !certainly_differ(input.type.shape, shape_of(value.shape()));
        if (!fits)
            throw ShapeError(
                where_, fmt::format("the default of {} has shape {}, which the variable {}", describe(input),
                                    text_of(value.shape()),
                                    input.type.rank() ? "cannot have" : "lacks: it is a scalar"));
    }

    static NodePtr new_value(const Update& u, const SharedState& target) {
        const DType dtype = target.value.dtype();
        try {
            return with_dtype(u.value, dtype, u.where);
        } catch (const TypeError&) {
            throw TypeError(u.where,
                            fmt::format("the update of {} is {}, which {} cannot hold; {}", described(target),
                                        program_text(u.value.node()), name_of(dtype), float_variable));
        }
    }

    // A shared variable keeps its dtype.
    [[noreturn]] static void refuse_dtype(const std::string& subject, const SharedState& target,
                                          const NodePtr& value, Where where) {
        const DType dtype = target.value.dtype();
        const std::string text = program_text(value);
        throw TypeError(where, fmt::format("{}: the dtypes differ; write cast({}, {}){}", subject,
                                           text.empty() ? "..." : text, name_of(dtype),
                                           is_float(value->type.dtype) && !is_float(dtype)
                                               ? std::string(", which drops fractions, or ") + float_variable
                                               : ""));
    }

    void take_updates() {
        options_.updates.require_present(where_);
        std::unordered_map<const SharedState*, Where> seen;
        for (const Update& u : options_.updates) {
            const SharedPtr& target = u.target.state();
            if (!target || u.value.is_null()) throw GraphError(u.where, "an update is empty");
            const Reading reading(target->turns);
            if (const auto [at, fresh] = seen.emplace(target.get(), u.where); !fresh)
                throw GraphError(u.where, fmt::format("{} has two updates, here and at {}",
                                                      described(*target), at->second.text()));
            const DType dtype = target->value.dtype();
            const NodePtr value = new_value(u, *target);
            const std::string subject =
                fmt::format("the update of {} is {}", described(*target), describe(*value));
            if (value->type.dtype != dtype) refuse_dtype(subject, *target, value, u.where);
            if (value->type.rank() != target->value.rank())
                throw ShapeError(u.where,
                                 subject + ": the ranks differ, and a shared variable keeps its shape");
            if (certainly_differ(value->type.shape, shape_of(target->value.shape())))
                throw ShapeError(u.where,
                                 subject + ": the shapes differ, and a shared variable keeps its shape");
            request_.graph.updates.push_back({target, value, u.where});
        }
    }

    void take_givens() {
        Graph& graph = request_.graph;
        if (options_.givens.empty()) return;
        const Nodes order = topological(graph.roots());
        NodeMap with;
        std::unordered_map<const void*, Where> seen;
        for (const Given& g : options_.givens) {
            if (g.variable.is_null() || g.replacement.is_null())
                throw GraphError(g.where, "a given is empty");
            const NodePtr& variable = g.variable.node();
            const SharedPtr shared = shared_of(variable);
            if (is_constant(variable))
                throw GraphError(
                    g.where, "a given replaces a constant; only variables and expressions can be replaced");
            const void* identity = shared ? static_cast<const void*>(shared.get()) : variable.get();
            if (const auto [at, fresh] = seen.emplace(identity, g.where); !fresh)
                throw GraphError(g.where, fmt::format("{} is given twice, here and at {}",
                                                      describe(*variable), at->second.text()));
            const NodePtr replacement = with_dtype(g.replacement, variable->type.dtype, g.where);
            check_given(g, *variable, *replacement);
            // Every use of a shared variable is a node of its own.
            if (!shared)
                with.emplace(variable.get(), replacement);
            else
                for (const NodePtr& node : order)
                    if (shared_of(node) == shared) with.emplace(node.get(), replacement);
            replaced_.insert(variable.get());
            const bool occurs = shared ? std::any_of(order.begin(), order.end(),
                                                     [&](const NodePtr& n) { return shared_of(n) == shared; })
                                       : std::find(order.begin(), order.end(), variable) != order.end();
            if (!occurs)
                complain(g.where,
                         fmt::format("{} is given as {}, but occurs in no output or update",
                                     describe(*variable), describe(*replacement)),
                         "; remove the given, or set .on_unused_input");
        }
        graph.set_roots(replace(graph.roots(), with));
    }

    // Each random stream that the function draws from counts the call, unless an update says what becomes of
    // it.
    void move_streams_on() {
        if (options_.hold_streams) return;
        Graph& graph = request_.graph;
        std::unordered_set<const SharedState*> updated;
        for (const SharedUpdate& u : graph.updates) updated.insert(u.target.get());
        for (const NodePtr& node : topological(graph.roots())) {
            if (!node->op->draws) continue;
            const SharedPtr counter = shared_of(node->inputs.back());
            if (!counter || !updated.insert(counter.get()).second) continue;
            const Expr next = Arg(Expr(node->inputs.back()), node->where) + Arg(1, node->where);
            graph.updates.push_back({counter, next.node(), node->where});
        }
    }

    // Each counter of steps that an update reads, likewise.
    void move_counters_on() {
        Graph& graph = request_.graph;
        std::unordered_set<const SharedState*> updated;
        Nodes values;
        for (const SharedUpdate& u : graph.updates) {
            updated.insert(u.target.get());
            values.push_back(u.value);
        }
        for (const NodePtr& node : topological(values)) {
            if (node->op != step_count_op()) continue;
            const SharedPtr counter = shared_of(node->inputs[0]);
            if (!counter || !updated.insert(counter.get()).second) continue;
            const Expr next = Arg(Expr(node->inputs[0]), node->where) + Arg(1, node->where);
            graph.updates.push_back({counter, next.node(), node->where});
        }
    }

    // Which expression of another rank was meant.
    static std::string rank_cure_of(const Node& variable, const Expr& replacement) {
        const auto kind = [](int rank) {
            constexpr const char* kinds[] = {"a scalar", "a vector", "a matrix"};
            return rank < 3 ? std::string(kinds[rank]) : fmt::format("a tensor of {} axes", rank);
        };
        const int wanted = variable.type.rank(), got = replacement.rank();
        const std::string text = program_text(replacement.node());
        std::string cure = fmt::format("{}, not {}", kind(wanted), kind(got));
        if (wanted == got + 1)
            cure += fmt::format(", as expand_dims({}, 0) is", text.empty() ? "..." : text);
        else if (got == wanted + 1)
            cure += fmt::format(", as a row of it is, {}[0]", text.empty() ? "..." : text);
        return cure;
    }

    void check_given(const Given& g, const Node& variable, const Node& replacement) {
        const std::string subject =
            fmt::format("{} is given as {}", describe(variable), describe(replacement));
        if (replacement.type.dtype != variable.type.dtype)
            throw TypeError(g.where, fmt::format("{}: the dtypes differ; write {}", subject,
                                                 cast_text(g.replacement.node(), variable.type.dtype)));
        if (replacement.type.rank() != variable.type.rank())
            throw ShapeError(g.where,
                             subject + ": the ranks differ; give " + rank_cure_of(variable, g.replacement));
        if (certainly_differ(variable.type.shape, replacement.type.shape))
            throw ShapeError(g.where, subject + ": the shapes differ; give an expression of the shape " +
                                          text_of(variable.type.shape) +
                                          ", or declare what it replaces with lengths of -1");
        for (std::size_t axis = 0; axis < variable.type.shape.size(); ++axis) {
            const Int &wanted = variable.type.shape[axis], &got = replacement.type.shape[axis];
            if (wanted.is_constant() && !got.is_constant())
                given_checks_.push_back(
                    {got, wanted,
                     fmt::format("{}: {}: axis {} must have length {}, but here it has {}", g.where.text(),
                                 subject, axis, number_there(), number_found())});
        }
    }

    static void add_symbols(const Int& x, std::set<std::uint64_t>& to) {
        if (x.is_constant()) return;
        for (const AtomPtr& a : symbols_of(x)) to.insert(a->id);
    }

    // Symbols in types and attributes: a function may need an argument for its length only.
    static std::set<std::uint64_t> symbols_in(const Nodes& order) {
        std::set<std::uint64_t> r;
        for (const NodePtr& node : order) {
            if (node->op == input_op()) continue;
            for (const Int& x : node->type.shape) add_symbols(x, r);
            for (const Attributes::Entry& e : node->attributes.entries()) {
                if (const Int* x = std::get_if<Int>(&e.second)) add_symbols(*x, r);
                if (const auto* list = std::get_if<std::vector<Int>>(&e.second))
                    for (const Int& x : *list) add_symbols(x, r);
            }
        }
        return r;
    }

    void check_leaves() const {
        const Nodes order = topological(request_.graph.roots());
        std::unordered_set<const Node*> listed, reached;
        for (const NodePtr& input : request_.graph.inputs) listed.insert(input.get());
        for (const NodePtr& node : order) reached.insert(node.get());
        const auto users = users_of(order);
        for (const NodePtr& node : order) {
            if (node->op != input_op() || listed.contains(node.get())) continue;
            const auto user = users.find(node.get());
            throw GraphError(
                where_,
                fmt::format("the function \"{}\" needs {}{}; list it in the inputs or replace it in "
                            "givens",
                            request_.graph.name, describe(*node),
                            user == users.end() ? "" : ", which is used by " + describe(*user->second[0])));
        }
        const std::set<std::uint64_t> symbols = symbols_in(order);
        std::set<std::uint64_t> bound;
        for (const NodePtr& input : request_.graph.inputs) {
            std::set<std::uint64_t> own;
            for (const Int& x : input->type.shape) add_symbols(x, own);
            if (const Attribute* symbol = input->attributes.find("symbol"))
                add_symbols(std::get<Int>(*symbol), own);
            bound.insert(own.begin(), own.end());
            const bool used =
                reached.contains(input.get()) ||
                std::any_of(own.begin(), own.end(), [&](std::uint64_t id) { return symbols.contains(id); });
            if (!used) unused(*input);
        }
        for (const NodePtr& node : order) {
            if (node->op == input_op()) continue;
            for (const std::uint64_t id : symbols_in({node}))
                if (!bound.contains(id))
                    throw GraphError(
                        where_, fmt::format("the function \"{}\" needs a length of a variable that is not "
                                            "among its inputs, in {}",
                                            request_.graph.name, describe(*node)));
        }
    }

    void unused(const Node& input) const {
        const std::string why = replaced_.contains(&input)
                                    ? "is replaced in givens, so its value would not be used"
                                    : "is not used by any output or update";
        complain(
            where_,
            fmt::format("the input {} of the function \"{}\" {}", describe(input), request_.graph.name, why),
            "; remove it, or set .on_unused_input");
    }

    // What changes nothing in the function, as the user wants such things treated.
    void complain(Where where, const std::string& text, const char* cure) const {
        if (options_.on_unused_input == OnUnused::ignore) return;
        if (options_.on_unused_input == OnUnused::warn)
            return warn((where.line ? where.text() + ": " : "") + text);
        throw GraphError(where, text + cure);
    }

    const std::vector<Input>& inputs_;
    const std::vector<Expr>& outputs_;
    const FunctionOptions& options_;
    const Where where_;
    Request request_;
    std::vector<LengthCheck> given_checks_;
    std::unordered_set<const Node*> replaced_;
};

}  // namespace

Request validate(const std::vector<Input>& inputs, const std::vector<Expr>& outputs,
                 const FunctionOptions& options, Where where) {
    return Validator(inputs, outputs, options, where).run();
}

}  // namespace bitale
