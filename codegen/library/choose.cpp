#include "codegen/library/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/group/joined.h"
#include "codegen/library/conv.h"
#include "codegen/library/cost.h"
#include "codegen/library/gemm.h"
#include "codegen/library/made.h"
#include "codegen/library/strided.h"
#include "codegen/nest/access.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/tune/excerpt.h"
#include "graph/ir/shared.h"

namespace bitale {

namespace {

bool moves_elements(const Value& v) {
    return v.storage == Value::Storage::inlined && v.nest.combine == Combine::none && v.nest.lets.empty() &&
           v.nest.body && v.nest.body->kind == ScalarNode::Kind::read && v.nest.body->guards.empty();
}

bool is_view(const Value& v) { return moves_elements(v) && !v.required && !v.by_library; }

// Of which a sum is a product of matrices.
bool is_product(const Value& v) {
    return v.storage == Value::Storage::inlined && opcode_of(*v.node->op) == Opcode::mul && !v.required &&
           v.users.size() == 1;
}

bool is_zero(const Value& v) {
    return is_constant(v.node) && v.node->type.rank() == 0 && constant_value(v.node).at(0) == 0;
}

// Whether the value is computed from the variable's own, element by element.
bool reads_elementwise(const Node& value, const SharedState& variable) {
    std::vector<const Node*> stack{&value};
    std::set<const Node*> seen;
    while (!stack.empty()) {
        const Node* const node = stack.back();
        stack.pop_back();
        for (const NodePtr& input : node->op->kind == OpKind::map ? node->inputs : Nodes{}) {
            if (shared_of(input).get() == &variable) return true;
            if (seen.insert(input.get()).second) stack.push_back(input.get());
        }
    }
    return false;
}

class Chooser {
  public:
    Chooser(Values& values, const Graph& graph, const Target& target, Tuner* tuner)
        : values_(values), target_(target), tuner_(tuner) {
        for (const SharedUpdate& update : graph.updates) {
            parameters_.insert(update.target.get());
            if (reads_elementwise(*update.value, *update.target)) updates_.insert(number(update.value));
        }
    }

    void run() {
        for (std::size_t v = 0; v < values_.list.size(); ++v) {
            Value& value = values_.list[v];
            if (value.storage == Value::Storage::leaf || value.nest.combine != Combine::sum) continue;
            value.by_library = product(value);
            if (value.by_library && !worth_a_call(value)) value.by_library.reset();
            if (!value.by_library && value.why_generated.empty()) {
                ConvChoice choice = choose_conv(values_, static_cast<int>(v), target_);
                value.by_library = std::move(choice.call);
                value.why_generated = std::move(choice.why_generated);
            }
            if (!value.by_library) continue;
            const int result = without_reshapes(static_cast<int>(v));
            const LibraryCall& call = *at(result).by_library;
            for (const int operand : call.operands)
                if (may_be_made(operand, call))
                    at(operand).made_in_pieces = true;
                else
                    mark(operand, "operand of the library call " + describe(*value.node));
            demand_orders(result);
            if (target_.library_in_tasks) find_parameter(static_cast<int>(v));
        }
        for (std::size_t v = 0; v < values_.list.size(); ++v)
            if (opcode_of(*values_.list[v].node->op) == Opcode::relu) masks_from_result(static_cast<int>(v));
        if (!target_.has_epilogues) return;
        for (std::size_t v = 0; v < values_.list.size(); ++v)
            if (opcode_of(*values_.list[v].node->op) == Opcode::add) absorb(static_cast<int>(v));
    }

  private:
    Value& at(int v) { return values_.list[static_cast<std::size_t>(v)]; }
    int number(const NodePtr& node) const { return values_.number.at(node.get()); }

    void mark(int operand, const std::string& reason) {
        Value& value = at(operand);
        value.feeds_product = true;
        if (value.reason.empty()) value.reason = reason;
    }

    // Whether slices of a product can make the pieces that they need of the operand: arguments and variables
    // that are cast, scaled, shifted, moved or gathered, which are not worth another form in memory. What is
    // certainly small, as a minibatch is, stays in a cache: there one copy takes less than several pieces.
    bool may_be_made(int operand, const LibraryCall& call) {
        const GemmCall* product = std::get_if<GemmCall>(&call.call);
        if (!target_.library_in_tasks || !product || product->strides) return false;
        constexpr int most_cost = 16;
        constexpr double small = 1 << 18;
        double most = 1;
        for (const Loop& l : at(operand).nest.parallel) most *= static_cast<double>(l.extent.range().high);
        if (most <= small) return false;
        if (at(operand).storage == Value::Storage::leaf || stored_anyway(at(operand))) return false;
        if (is_joined_from_computed(values_, operand)) return false;
        const double count = typical_count(at(operand).nest.parallel);
        const std::int64_t element = bytes_of(at(operand).node->type.dtype);
        int cost = 0;
        bool narrower = false;
        std::vector<int> stack{operand};
        std::set<int> seen;
        while (!stack.empty()) {
            const Value& value = at(stack.back());
            stack.pop_back();
            if (value.storage == Value::Storage::leaf || !value.nest.body) continue;
            const bool smaller = 2 * typical_count(value.nest.parallel) <= count;
            if (value.nest.combine != Combine::none || value.required || value.packed || value.searched) {
                if (!smaller) return false;
                continue;
            }
            if (!value.nest.guards.empty()) return false;
            if (!smaller) cost += cost_of(value.nest);
            if (cost > most_cost) return false;
            for_each_read(value.nest, [&](const ScalarNode& s) {
                narrower = narrower || bytes_of(s.dtype) < element;
                if (seen.insert(s.operand.value()).second) stack.push_back(s.operand.value());
            });
        }
        // Many products make it as often. As bytes it takes less memory all the same.
        constexpr int many = 3, little = 4;
        return narrower || cost < little || products_of(operand) < many;
    }

    // How many sums of products read it, through views too.
    int products_of(int v) {
        int count = 0;
        for (const int user : at(v).users)
            count += is_view(at(user)) ? products_of(user) : at(user).nest.combine == Combine::sum ? 1 : 0;
        return count;
    }

    // A value with all elements of another one, as they lie in memory.
    bool is_reshape(int v) {
        const Value& value = at(v);
        if (!moves_elements(value) || !value.nest.guards.empty()) return false;
        const ScalarNode& read = *value.nest.body;
        const Node& from = *at(read.operand.value()).node;
        if (from.type.dtype != value.node->type.dtype) return false;
        Int there = 0, here = 0;
        for (std::size_t d = 0; d < read.at.size(); ++d) there = there * from.type.shape[d] + read.at[d];
        for (const Loop& l : value.nest.parallel) here = here * l.extent + l.variable;
        return there == here && count_of(from.type.shape) == count_of(value.node->type.shape);
    }

    // Whether the axes of a value are those of a call's tensor: by others it is only the same memory.
    bool has_axes_of(const ConvTensor& tensor, int v) {
        const Shape& shape = at(v).node->type.shape;
        return std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end());
    }

    // A convolution in groups lies between reshapes to and from five axes. A call works on what is there
    // before the first ones and behind the last one, so that nothing is copied. The call's result.
    int without_reshapes(int v) {
        LibraryCall& call = *at(v).by_library;
        const ConvCall* const conv = std::get_if<ConvCall>(&call.call);
        if (!conv || at(v).node->type.rank() == 4) return v;
        for (int& operand : call.operands)
            while (is_view(at(operand)) && is_reshape(operand))
                operand = at(operand).nest.body->operand.value();
        const std::vector<int>& users = at(v).users;
        if (at(v).required || at(v).feeds_product || users.size() != 1 || !is_reshape(users[0]) ||
            !has_axes_of(*in_order(conv->kind, *conv).back(), users[0]))
            return v;
        const int last = users[0];
        call.absorbed.push_back(v);
        if (at(last).reason.empty()) at(last).reason = "result of the library call " + describe(*at(v).node);
        at(last).by_library = std::move(call);
        at(v).by_library.reset();
        at(v).absorbed = true;
        return last;
    }

    // Tensor cores want the channels of images next to each other; exact sums are as fast in the plain order.
    void demand_orders(int v) {
        const LibraryCall& call = *at(v).by_library;
        const auto demand = [&](int value, Value::Order order) {
            Value::Order& wanted = at(value).wanted_order;
            if (wanted != Value::Order::plain) wanted = order;
        };
        const ConvCall* conv = std::get_if<ConvCall>(&call.call);
        const bool rounded = conv && conv->precision != Precision::float32;
        const ConvValues places = conv ? conv_values(*conv, call.operands, v) : ConvValues{};
        for (const int value : {call.operands[0], call.operands[1], v}) {
            const bool image = rounded && value != places.filters &&
                               has_axes_of(value == places.image ? conv->image : conv->output, value);
            demand(value, image ? Value::Order::channel_last : Value::Order::plain);
        }
    }

    // Where the product meets a parameter that the step updates, whose rows the cores share in order.
    void find_parameter(int v) {
        GemmCall* call = std::get_if<GemmCall>(&at(v).by_library->call);
        if (!call || call->strides) return;
        const auto updated = [&](int operand) {
            const SharedPtr shared = shared_of(at(operand).node);
            return shared && parameters_.contains(shared.get());
        };
        using Parameter = GemmCall::Parameter;
        const std::vector<int>& operands = at(v).by_library->operands;
        if (updated(operands[1]))
            call->parameter = call->transpose_b ? Parameter::columns : Parameter::depth;
        else if (updated(operands[0]))
            call->parameter = call->transpose_a ? Parameter::depth : Parameter::rows;
        else if (becomes_update(v))
            call->parameter = Parameter::rows;
        if (call->parameter != Parameter::none)
            at(v).by_library->why += "; cut along the rows of the parameter, for the core that updates them";
    }

    // By elementwise steps alone, which read the old value; what replaces it unread follows no rows of it.
    bool becomes_update(int product) {
        std::vector<int> stack{product};
        std::set<int> seen;
        while (!stack.empty()) {
            const int v = stack.back();
            stack.pop_back();
            if (v != product && updates_.contains(v)) return true;
            for (const int user : at(v).users)
                if (at(user).nest.combine == Combine::none && at(user).node->op->kind == OpKind::map &&
                    seen.insert(user).second)
                    stack.push_back(user);
        }
        return false;
    }

    // Likewise; the library takes the bytes that are cast.
    std::optional<LibraryCall> product_of_integers(const Value& value, const ShapeOf& shape_of) {
        std::optional<LibraryCall> call;
        for (const bool through_views : {true, false}) {
            if (call) break;
            const Nest nest = simplify(compose(value.nest, [&](int operand) -> const Nest* {
                const Value& v = at(operand);
                return (is_widened_byte(v) && !v.required) || (through_views && is_view(v)) ? &v.nest
                                                                                            : nullptr;
            }));
            call = match_gemm(nest, shape_of, target_);
        }
        return call;
    }

    // Through transposes and reshapes first: the library reads either order, so no copy is needed.
    std::optional<LibraryCall> product(const Value& value) {
        const auto shape = [&](Operand operand) -> const Shape& {
            return at(operand.value()).node->type.shape;
        };
        if (value.nest.dtype == DType::int32) return product_of_integers(value, shape);
        const auto through_views = [&](const Nest& nest) {
            return simplify(compose(nest, [&](int operand) -> const Nest* {
                return is_view(at(operand)) ? &at(operand).nest : nullptr;
            }));
        };
        const Nest nest = through_views(value.nest);
        std::optional<LibraryCall> call = match_gemm(nest, shape, target_);
        if (!call) call = match_gemm(value.nest, shape, target_);
        if (call && target_.library_in_tasks && reads_part(*call))
            if (std::optional<LibraryCall> in_place = match_strided(nest, shape, target_);
                in_place && std::get<GemmCall>(in_place->call).strides->batches.empty())
                return in_place;
        if (call || !target_.library_in_tasks) return call;
        if (nest.body->kind != ScalarNode::Kind::read || !is_product(at(nest.body->operand.value())))
            return match_strided(nest, shape, target_);
        // A sum over a broadcast product.
        return match_strided(through_views(simplify(compose(nest,
                                                            [&](int operand) -> const Nest* {
                                                                return operand == nest.body->operand.value()
                                                                           ? &at(operand).nest
                                                                           : nullptr;
                                                            }))),
                             shape, target_);
    }

    // Whether an operand is a view, as a row of a larger array is, that would be copied for the call.
    bool reads_part(const LibraryCall& call) {
        return std::any_of(call.operands.begin(), call.operands.end(), [&](int operand) {
            const Value& value = at(operand);
            return is_view(value) && !stored_anyway(value);
        });
    }

    // Each product of those that are added up is a call of its own, which small ones spend on the call.
    static bool adds_small_products(const GemmCall& call) {
        constexpr double least_work = 1 << 18;
        return call.strides &&
               std::any_of(call.strides->batches.begin(), call.strides->batches.end(),
                           [](const GemmStrides::Batch& b) { return b.adds(); }) &&
               typical(call.m) * typical(call.n) * typical(call.k) < least_work;
    }

    // Whether a call beats a generated product that computes its operands where it reads them and hands its
    // results on; says why.
    bool worth_a_call(Value& value) {
        LibraryCall& found = *value.by_library;
        const GemmCall& call = std::get<GemmCall>(found.call);
        if (!target_.library_in_tasks) {
            // Below these sizes a kernel that is fused beats a launch of its own.
            constexpr double least_columns = 24, least_work = 1 << 18;
            const double rows = typical(call.m), columns = typical(call.n), depth = typical(call.k);
            found.why = "because it is a plain float32 product, large enough for a library";
            return std::min({rows, columns, depth}) >= least_columns && rows * columns * depth >= least_work;
        }
        if (adds_small_products(call)) {
            value.why_generated = "because the products that a library would add up are small";
            return false;
        }
        double passed = value.required ? 0 : typical_count(value.nest.parallel), made = 0, apart = 0;
        std::vector<int> operands = found.operands;
        operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
        for (const int operand : operands) {
            if (stored_anyway(at(operand))) continue;
            const double count = typical_count(at(operand).nest.parallel);
            (may_be_made(operand, found) ? made : passed) += count;
            if (operand == found.operands[1] && !is_view(at(operand)) &&
                lies_apart(operand, at(operand).nest.parallel.size() - 1))
                apart += count;
        }
        ProductCost cost = cost_of_product(call, passed, made);
        cost.generated += cost_of_turning(call, apart);
        bool worth = cost.library < cost.generated;
        const std::string library = rounded(cost.library), generated = rounded(cost.generated);
        std::string why = why_of(value, call, passed, cost, worth);
        if (tuner_) {
            std::vector<Way> ways{Way::library, Way::generated};
            if (!worth) std::swap(ways[0], ways[1]);
            const Answer answer = tuner_->choose({surroundings(value), std::move(ways)});
            worth = answer.way == Way::library;
            if (!answer.why.empty())
                why = fmt::format("{} (estimates: library {} us, generated {} us)", answer.why, library,
                                  generated);
        }
        (worth ? found.why : value.why_generated) = std::move(why);
        return worth;
    }

    // The call alone takes what the report's table says; what passes through memory is time of other kernels.
    static std::string why_of(const Value& value, const GemmCall& call, double passed,
                              const ProductCost& cost, bool worth) {
        const double alone = cost_of_product(call, 0, 0).library,
                     passing = cost_of_product(call, passed, 0).library - alone,
                     making = cost.library - passing - alone;
        constexpr double least_shown = 50;  // nanoseconds
        std::string more;
        if (passing >= least_shown)
            more +=
                fmt::format(" and {} us for passing operands and result through memory", rounded(passing));
        if (making >= least_shown) more += fmt::format(" and {} us for operands in pieces", rounded(making));
        return worth ? fmt::format("an estimated {} us on one core{}; as generated code, {} us",
                                   rounded(alone), more, rounded(cost.generated))
                     : fmt::format(
                           "{} is generated code: an estimated {} us on one core; by a library, {} us{}",
                           describe(*value.node), rounded(cost.generated), rounded(alone), more);
    }

    // Whether neighbours along the axis are no neighbours in the memory that the value is computed from.
    bool lies_apart(int v, std::size_t axis, int depth = 8) {
        const Value& value = at(v);
        if (value.storage == Value::Storage::leaf || stored_anyway(value) ||
            value.nest.combine != Combine::none)
            return axis + 1 < value.shape.size();
        if (!value.nest.body || depth == 0) return false;
        const Int& along = value.nest.parallel[axis].variable;
        bool apart = false;
        for_each_read(value.nest, [&](const ScalarNode& s) {
            const std::optional<std::size_t> there = apart ? std::nullopt : axis_along(s, along);
            if (there) apart = lies_apart(s.operand.value(), *there, depth - 1);
        });
        return apart;
    }

    // The product with what is computed where it reads, and with the maps that alone read its results.
    Graph surroundings(const Value& product) {
        const Value* last = &product;
        std::vector<const Node*> inside{last->node.get()};
        while (!last->required && !last->feeds_product && last->users.size() == 1) {
            const Value& user = at(last->users[0]);
            if (user.node->op->kind != OpKind::map || user.node->type.shape != last->node->type.shape) break;
            last = &user;
            inside.push_back(last->node.get());
        }
        const auto in_memory = [&](const NodePtr& node) {
            if (std::find(inside.begin(), inside.end(), node.get()) != inside.end()) return false;
            return stored_anyway(at(number(node)));
        };
        return excerpt_of(last->node, in_memory, Maps::plain);
    }

    static std::string rounded(double ns) { return fmt::format("{:.{}f}", ns / 1000, ns < 10'000 ? 1 : 0); }

    static bool stored_anyway(const Value& value) {
        return value.storage == Value::Storage::leaf || value.required || value.feeds_product ||
               !value.nest.body || value.nest.combine != Combine::none ||
               (value.users.size() > 1 && is_costly(value.nest));
    }

    // x > 0 wherever relu(x) > 0: where the relu is stored, its gradient needs x no more.
    void masks_from_result(int relu) {
        if (!at(relu).required && !at(relu).feeds_product && !before_bias(relu) && !multiplied(relu)) return;
        const int x = number(at(relu).node->inputs[0]);
        std::vector<int> readers;
        std::vector<int>& users = at(x).users;
        for (const int user : users) {
            const Node& node = *at(user).node;
            if (user > relu && opcode_of(*node.op) == Opcode::gt && number(node.inputs[0]) == x &&
                is_zero(at(number(node.inputs[1]))))
                readers.push_back(user);
        }
        for (const int user : readers) {
            at(user).nest = map_reads(at(user).nest, [&](const Scalar& s) -> Scalar {
                if (s->operand.value() != x) return s;
                auto r = std::make_shared<ScalarNode>(*s);
                r->operand = Operand::of_value(relu);
                return r;
            });
            std::erase(users, user);
            at(relu).users.push_back(user);
        }
        std::sort(at(relu).users.begin(), at(relu).users.end());
    }

    // Generated products read it many times, so it will be stored.
    bool multiplied(int relu) {
        return std::any_of(at(relu).users.begin(), at(relu).users.end(), [&](int user) {
            return at(user).nest.combine != Combine::none && adds_products(at(user).nest);
        });
    }

    // A relu of a library's result and a bias: absorb() will store it, if its gradient allows that.
    bool before_bias(int relu) {
        const int sum = number(at(relu).node->inputs[0]);
        if (!target_.has_epilogues || opcode_of(*at(sum).node->op) != Opcode::add) return false;
        const Epilogue found = find_epilogue(sum);
        return found.bias >= 0 && may_apply_relu(*at(found.product).by_library);
    }

    // A NaN has to stay one, as in generated code: a diverging training must show it.
    bool may_apply_relu(const LibraryCall& call) const {
        const bool keeps_nan = std::holds_alternative<GemmCall>(call.call) ? target_.gemm_relu_keeps_nan
                                                                           : target_.conv_relu_keeps_nan;
        return keeps_nan || target_.assume_finite;
    }

    struct Epilogue {
        int product = -1, bias = -1;
    };

    // What `sum` adds: the result of a call that nothing else reads, and a vector along its last axis (a
    // product) or its channels (a convolution).
    Epilogue find_epilogue(int sum) {
        const Value& value = at(sum);
        for (const int side : {0, 1}) {
            const int product = number(value.node->inputs[static_cast<std::size_t>(side)]);
            const Value& p = at(product);
            if (!p.by_library || p.required || p.users.size() != 1 || p.feeds_product) continue;
            if (std::holds_alternative<RoutineCall>(p.by_library->call)) continue;
            if (value.node->type.shape.size() != p.node->type.shape.size()) continue;
            const ConvCall* conv = std::get_if<ConvCall>(&p.by_library->call);
            if (conv && (conv->kind != ConvCall::Kind::forward || p.node->type.rank() != 4)) continue;
            // A call over nothing clears its result, and no more.
            const Int& depth = conv ? conv->filters.shape[1] : std::get<GemmCall>(p.by_library->call).k;
            if (depth.range().low < 1) continue;
            const std::size_t axis = conv ? 1 : p.node->type.shape.size() - 1;
            if (const int bias =
                    vector_along(number(value.node->inputs[static_cast<std::size_t>(1 - side)]), axis);
                bias >= 0)
                return {product, bias};
        }
        return {};
    }

    // The value that `operand` repeats along every axis but one; -1 if it is not such a one.
    int vector_along(int operand, std::size_t axis) {
        if (!is_view(at(operand))) return -1;
        const Nest nest = simplify(compose(
            at(operand).nest, [&](int v) -> const Nest* { return is_view(at(v)) ? &at(v).nest : nullptr; }));
        const ScalarNode& read = *nest.body;
        if (read.kind != ScalarNode::Kind::read || !read.guards.empty() || read.dtype != DType::float32)
            return -1;
        const Value& vector = at(read.operand.value());
        const bool stored = vector.storage == Value::Storage::leaf || vector.feeds_product || vector.required;
        if (!stored) return -1;
        Int offset = 0;
        for (std::size_t d = 0; d < read.at.size(); ++d)
            offset = offset * vector.node->type.shape[d] + read.at[d];
        return offset == nest.parallel[axis].variable ? read.operand.value() : -1;
    }

    void absorb(int sum) {
        const Epilogue found = find_epilogue(sum);
        if (found.bias < 0) return;
        LibraryCall call = *at(found.product).by_library;
        call.operands.push_back(found.bias);
        call.absorbed.push_back(found.product);
        int result = sum;
        const std::vector<int>& users = at(sum).users;
        const bool only_relu = !at(sum).required && !at(sum).feeds_product && users.size() == 1 &&
                               opcode_of(*at(users[0]).node->op) == Opcode::relu;
        if (only_relu && may_apply_relu(call)) {
            result = users[0];
            call.absorbed.push_back(sum);
            at(sum).absorbed = true;
        }
        std::visit(
            [&](auto& c) {
                if constexpr (requires { c.bias; }) {
                    c.bias = true;
                    c.relu = result != sum;
                }
            },
            call.call);
        call.why += result != sum ? ", whose bias and relu the library applies"
                    : only_relu   ? ", whose bias the library adds; relu is generated, because the library's "
                                    "would turn a NaN into 0 (assume_finite=on allows that)"
                                  : ", whose bias the library adds";
        at(found.product).by_library.reset();
        at(found.product).absorbed = true;
        at(result).by_library = std::move(call);
        if (at(result).wanted_order != Value::Order::plain)
            at(result).wanted_order = at(found.product).wanted_order;
        if (at(result).reason.empty())
            at(result).reason =
                "result of the library call " + describe(*at(at(result).by_library->absorbed[0]).node);
    }

    Values& values_;
    const Target& target_;
    Tuner* const tuner_;
    std::set<const SharedState*> parameters_;  // those that the graph updates
    std::set<int> updates_;                    // new values that read the old ones
};

}  // namespace

void choose_libraries(Values& values, const Graph& graph, const Target& target, Tuner* tuner) {
    Chooser(values, graph, target, tuner).run();
}

}  // namespace bitale
