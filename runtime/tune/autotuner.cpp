#include "runtime/tune/autotuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "codegen/pipeline.h"
#include "codegen/tune/excerpt.h"
#include "graph/base/log.h"
#include "graph/walk/traverse.h"
#include "ops/nn/pool_gradients.h"
#include "runtime/storage/host_memory.h"
#include "runtime/tune/choices.h"
#include "runtime/tune/measure.h"

namespace bitale {

namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
// Less than this is noise, or is lost in what surrounds the value in its function.
constexpr double worthwhile = 0.9;

Substitution as_substitution(const std::map<std::uint64_t, std::int64_t>& numbers) {
    Substitution r;
    for (const auto& [symbol, number] : numbers) r.emplace(symbol, Int(number));
    return r;
}

// The variable whose elements these are, moved and cast at most; else null.
const Node* variable_of(const NodePtr& node) {
    const Node* at = node.get();
    while ((at->op->kind == OpKind::view || at->op->name == "cast") && !at->inputs.empty())
        at = at->inputs[0].get();
    return at->op == input_op() ? at : nullptr;
}

// What integers may be, by input leaf: rows, labels and winners lead somewhere. Where nothing is known, bytes
// may be anything, and others are zero.
using Allowed = std::map<const Node*, std::vector<std::int64_t>>;

Allowed allowed_in(const Graph& graph, const Substitution& numbers) {
    constexpr std::int64_t most_values = std::int64_t{1} << 16;
    Allowed allowed;
    for (const Check& check : graph.checks) {
        const Node* const variable = variable_of(check.value);
        const Int low = substitute(check.low, numbers), high = substitute(check.high, numbers);
        if (!variable || !low.is_constant() || !high.is_constant()) continue;
        const std::int64_t first = std::max<std::int64_t>(low.constant(), 0);
        const std::int64_t step = std::max<std::int64_t>((high.constant() - first) / most_values, 1);
        for (std::int64_t x = first; x < high.constant(); x += step) allowed[variable].push_back(x);
    }
    for (const NodePtr& node : topological(graph.roots())) {
        if (node->op != unpool_op()) continue;
        const Node* const variable = variable_of(node->inputs[1]);
        if (!variable) continue;
        // Cells of a window that lie in the image wherever the window is.
        const PoolGeometry pool = PoolGeometry::of(node->attributes);
        for (std::int64_t y = pool.pad[0]; y < pool.window[0] - pool.pad[0]; ++y)
            for (std::int64_t x = pool.pad[1]; x < pool.window[1] - pool.pad[1]; ++x)
                allowed[variable].push_back(y * pool.window[1] + x);
        if (allowed[variable].empty()) throw GraphError("no cell of a window lies in the image everywhere");
    }
    return allowed;
}

// Floats between -1 and 1, integers of those allowed, all of them in no order.
Array data_for(const Type& type, const Dims& shape, const std::vector<std::int64_t>& allowed) {
    Array array = pooled_array(type.dtype, shape);
    const auto bytes = static_cast<std::size_t>(array.bytes());
    auto* const to = static_cast<unsigned char*>(array.mutable_data());
    std::uint64_t state = 0x9e3779b97f4a7c15u;
    const auto next = [&state] {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state >> 11;
    };
    constexpr std::size_t period = std::size_t{1} << 16;  // elements, then the same again
    const std::size_t count = std::min(static_cast<std::size_t>(array.size()), period);
    std::vector<double> values(count);
    const bool byte = type.dtype == DType::uint8 || type.dtype == DType::int8;
    for (double& x : values) {
        const std::uint64_t r = next();
        if (is_float(type.dtype))
            x = static_cast<double>(r % 20001) / 10000 - 1;
        else if (type.dtype == DType::boolean)
            x = static_cast<double>(r % 2);
        else
            x = allowed.empty() ? static_cast<double>(byte ? r % 128 : 0)
                                : static_cast<double>(allowed[r % allowed.size()]);
    }
    const Array piece = Array(values).as(type.dtype);
    const auto piece_bytes = static_cast<std::size_t>(piece.bytes());
    for (std::size_t at = 0; at < bytes; at += piece_bytes)
        std::memcpy(to + at, piece.data(), std::min(piece_bytes, bytes - at));
    return array;
}

// Every symbol is an argument of its own, so that lengths which only follow from others need no solving.
struct Excerpt {
    const Graph& graph;
    Signature signature;
    std::vector<Array> arguments;
};

Excerpt with_data(const Graph& graph, const std::map<std::uint64_t, std::int64_t>& numbers) {
    Excerpt e{graph, {}, {}};
    const Substitution known = as_substitution(numbers);
    Allowed allowed = allowed_in(graph, known);
    std::int64_t bytes = 0;
    for (const NodePtr& input : graph.inputs) {
        Type type = input->type;
        Dims dims;
        for (Int& length : type.shape) {
            length = substitute(length, known);
            dims.push_back(length.constant());
        }
        bytes += count_of(dims) * bytes_of(type.dtype);
        if (bytes > most_bytes) throw OutOfMemory("its operands take more than 1 GiB");
        const Attribute* symbol = input->attributes.find("symbol");
        e.arguments.push_back(symbol && numbers.contains(std::get<Int>(*symbol).symbol_id())
                                  ? Array(numbers.at(std::get<Int>(*symbol).symbol_id())).as(type.dtype)
                                  : data_for(type, dims, allowed[input.get()]));
        e.signature.inputs.push_back({"", input->where, type});
    }
    for (const auto& [symbol, number] : numbers) {
        e.signature.sources.push_back({symbol, Int(number), static_cast<int>(e.arguments.size()), -1});
        e.signature.inputs.push_back({"", {}, {DType::int64, {}}});
        e.arguments.emplace_back(number);
    }
    return e;
}

std::unique_ptr<Executable> prepared(Device& device, const Target& target, const Excerpt& e, Way way) {
    FixedTuner fixed(way);
    Program program = generate(e.graph, target, &fixed);
    program.size_sources = e.signature.sources;
    program.inputs.clear();
    for (const InputInfo& input : e.signature.inputs) program.inputs.push_back(input.type);
    auto plain = std::make_shared<const Graph>(e.graph);
    Build build{std::move(plain), e.signature, std::make_shared<const Program>(std::move(program))};
    // With one thread, so that what is remembered does not depend on how many there are.
    build.threads = 1;
    return device.prepare(std::move(build));
}

std::string microseconds(double seconds) {
    const double us = seconds * 1e6;
    return fmt::format("{:.{}f} us", us, us < 10 ? 2 : us < 100 ? 1 : 0);
}

std::string sentence_of(const Choice& choice, const char* how) {
    std::string s = "autotuned: ";
    for (std::size_t i = 0; i < choice.measured.size(); ++i)
        s += fmt::format("{}{} {}", i ? ", " : "", name_of(choice.measured[i].first),
                         microseconds(choice.measured[i].second));
    return s + " on one core" + how;
}

Way fastest(const std::vector<std::pair<Way, double>>& measured) {
    Way best = measured.at(0).first;
    double least = measured[0].second * worthwhile;
    for (std::size_t i = 1; i < measured.size(); ++i)
        if (measured[i].second < least) {
            best = measured[i].first;
            least = measured[i].second;
        }
    return best;
}

}  // namespace

std::string text_of(const TuningNotes& n) {
    std::string s = fmt::format("{} choices measured, {} remembered", n.measured, n.remembered);
    if (n.waiting > 0)
        s += fmt::format(", {} by estimates until the first call tells the lengths", n.waiting);
    if (n.failed > 0) s += fmt::format(", {} by estimates because measuring failed", n.failed);
    return s + (n.problems.empty() ? "" : "; " + n.problems);
}

Autotuner::Autotuner(Device& device, const Target& target, std::map<std::uint64_t, std::int64_t> numbers)
    : device_(device),
      target_(target),
      numbers_(std::move(numbers)),
      identity_(fmt::format("bitale {}\n{}\n", BITALE_VERSION, device.timing().identity)) {}

void Autotuner::complain(const std::string& sentence) {
    if (notes_.problems.find(sentence) == std::string::npos)
        notes_.problems += (notes_.problems.empty() ? "" : "; ") + sentence;
}

Answer Autotuner::choose(const Question& question) {
    // The first minibatch is a whole one. Where that leaves lengths open, the call has to tell all.
    std::map<std::uint64_t, std::int64_t> numbers;
    for (const std::uint64_t symbol : symbols_of(question.excerpt)) numbers[symbol] = 0;
    const bool whole = are_longest(question.excerpt, as_substitution(numbers)),
               known = whole || !numbers_.empty();
    for (auto& [symbol, number] : numbers)
        if (const auto at = numbers_.find(symbol); !whole && at != numbers_.end()) number = at->second;
    std::string key = identity_ + (known ? "" : "lengths unknown\n");
    for (const Way way : question.ways) key += std::string(name_of(way)) + "\n";
    key += text_of_excerpt(question.excerpt, known ? as_substitution(numbers) : Substitution{});
    const auto at = answers_.find(key);
    if (at != answers_.end()) return at->second;
    if (!known) {
        ++notes_.waiting;
        return answers_.emplace(key, Answer{question.ways.at(0), ""}).first->second;
    }
    const Remembered remembered = recall(key, question.ways);
    if (remembered.choice) {
        ++notes_.remembered;
        const Answer answer{remembered.choice->chosen, sentence_of(*remembered.choice, ", remembered")};
        return answers_.emplace(key, answer).first->second;
    }
    if (!remembered.problem.empty()) complain(remembered.problem + ", so it was measured again");
    return answers_.emplace(key, measured(question, key, numbers)).first->second;
}

Answer Autotuner::measured(const Question& question, const std::string& key,
                           const std::map<std::uint64_t, std::int64_t>& numbers) {
    try {
        const Excerpt excerpt = with_data(question.excerpt, numbers);
        std::vector<std::unique_ptr<Executable>> executables;
        std::vector<Candidate> candidates;
        for (const Way way : question.ways) {
            executables.push_back(prepared(device_, target_, excerpt, way));
            notes_.compiler_runs += executables.back()->compiler_runs();
            Executable* const executable = executables.back().get();
            candidates.push_back(
                {name_of(way), [&excerpt, executable] { executable->run(excerpt.arguments); }});
        }
        const std::lock_guard lock(device_.turns());
        const std::vector<double> seconds = measure(candidates);
        Choice choice;
        for (std::size_t i = 0; i < seconds.size(); ++i)
            choice.measured.emplace_back(question.ways[i], seconds[i]);
        choice.chosen = fastest(choice.measured);
        ++notes_.measured;
        if (const std::string problem = remember(key, choice); !problem.empty())
            complain("choices are not kept for other processes: " + problem);
        const std::string sentence = sentence_of(choice, "");
        log(1, "autotune: " + sentence);
        return {choice.chosen, sentence};
    } catch (const Error& e) {
        ++notes_.failed;
        complain(e.what());
        return {question.ways.at(0), ""};
    }
}

}  // namespace bitale
