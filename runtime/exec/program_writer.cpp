// Programs as JSON. Integers of the algebra are nested arrays: ["+", constant, [factor, atom, ...], ...], an
// atom being a symbol's number or [kind, a, b].
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "graph/base/overloaded.h"
#include "graph/base/text.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/shared.h"
#include "runtime/exec/program_io.h"
#include "runtime/exec/program_names.h"

namespace bitale {

namespace {

using namespace program_names;
using Json = nlohmann::ordered_json;

std::string to_hex(const void* data, std::int64_t bytes) {
    std::string s;
    s.reserve(static_cast<std::size_t>(2 * bytes));
    for (std::int64_t i = 0; i < bytes; ++i) {
        const unsigned char c = static_cast<const unsigned char*>(data)[i];
        s += "0123456789abcdef"[c >> 4];
        s += "0123456789abcdef"[c & 15];
    }
    return s;
}

class Writer {
  public:
    std::string run(const Program& p) {
        Json j;
        j["bitale_program"] = Program::version;
        j["name"] = p.name;
        j["target"] = p.target;
        Json body;  // first, so that the symbols are numbered before they are listed
        body["size_sources"] = list(p.size_sources, [&](const SizeSource& s) {
            return Json{{"value", write(s.value)}, {"input", s.input}, {"axis", s.axis}};
        });
        body["inputs"] = list(p.inputs, [&](const Type& t) { return write(t); });
        body["outputs"] = list(p.outputs, [&](const Type& t) { return write(t); });
        body["length_checks"] = list(p.length_checks, [&](const LengthCheck& c) {
            Json check{{"a", write(c.a)}, {"b", write(c.b)}, {"message", readable(c.message)}};
            if (c.is_index) check["is_index"] = true;
            return check;
        });
        body["checks"] =
            list(p.checks, [&](const Program::CheckText& c) { return Json(readable(c.message)); });
        body["shared"] = list(p.shared, [&](const SharedPtr& s) {
            return Json{{"name", s->name},
                        {"type", write(Type{s->value.dtype(), shape_of(s->value.shape())})}};
        });
        body["updated"] = p.updated;
        body["constants"] = list(p.constants, [&](const Array& a) {
            return Json{{"type", write(Type{a.dtype(), shape_of(a.shape())})},
                        {"bytes", to_hex(a.data(), a.bytes())}};
        });
        body["buffers"] = list(p.buffers, [&](const BufferInfo& b) {
            Json buffer{{"kind", buffer_kinds[static_cast<int>(b.kind)]},
                        {"index", b.index},
                        {"name", b.name},
                        {"type", write(b.type)},
                        {"reason", b.reason},
                        {"origins", write(b.origins)}};
            if (b.role != BufferInfo::Role::value) buffer["role"] = buffer_roles[static_cast<int>(b.role)];
            return buffer;
        });
        body["kernels"] = list(p.kernels, [&](const KernelText& k) {
            return Json{{"name", k.name},   {"entries", k.entries},
                        {"notes", k.notes}, {"cuda_threads", k.cuda_threads},
                        {"body", k.body},   {"cuda_body", k.cuda_body}};
        });
        body["once"] = list(p.once.steps, [&](const Step& s) { return write(s); });
        body["body"] = list(p.body.steps, [&](const Step& s) { return write(s); });
        body["prelude"] = p.prelude;
        body["cuda_prelude"] = p.cuda_prelude;
        j["symbols"] = list(symbols_, [&](const AtomPtr& a) {
            return Json{{"name", a->name}, {"low", a->range.low}, {"high", a->range.high}};
        });
        j.update(body);
        // A name that is not UTF-8 has no form in JSON: its bytes become U+FFFD.
        return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
    }

  private:
    template <class T, class F>
    static Json list(const std::vector<T>& values, F&& f) {
        Json j = Json::array();
        for (const T& v : values) j.push_back(f(v));
        return j;
    }

    // Within an Int, terms and atoms are ordered by the age of their symbols; in the text, by the text.
    static bool by_text(const Json& a, const Json& b) { return a.dump() < b.dump(); }

    Json write(const Atom& a, const AtomPtr& pointer) {
        if (a.kind == Atom::Kind::symbol) {
            const auto [at, fresh] = numbers_.emplace(a.id, static_cast<int>(symbols_.size()));
            if (fresh) symbols_.push_back(pointer);
            return at->second;
        }
        Json left = write(a.a), right = write(a.b);
        const bool commutes = a.kind == Atom::Kind::min || a.kind == Atom::Kind::max;
        if (commutes && by_text(right, left)) std::swap(left, right);
        return Json::array({atom_kinds[static_cast<int>(a.kind)], std::move(left), std::move(right)});
    }

    Json write(const Int& x) {
        if (x.is_constant()) return x.constant();
        Json terms = Json::array();
        for (const Int::Term& term : x.terms()) {
            Json atoms = Json::array();
            for (const AtomPtr& a : term.atoms) atoms.push_back(write(*a, a));
            std::sort(atoms.begin(), atoms.end(), by_text);
            atoms.insert(atoms.begin(), term.factor);
            terms.push_back(std::move(atoms));
        }
        std::sort(terms.begin(), terms.end(), by_text);
        terms.insert(terms.begin(), x.constant_term());
        terms.insert(terms.begin(), "+");
        return terms;
    }

    Json write(const Type& t) {
        return Json{{"dtype", name_of(t.dtype)},
                    {"shape", list(t.shape, [&](const Int& x) { return write(x); })}};
    }

    static Json write(const std::vector<Origin>& origins) {
        return list(origins, [](const Origin& o) {
            Json origin{
                {"what", o.title.empty() ? o.what : o.title}, {"file", o.where.file}, {"line", o.where.line}};
            if (o.of_gradient) origin["of_gradient"] = true;
            return origin;
        });
    }

    Json write(const ConvTensor& t) {
        Json j{{"shape", Json::array()}, {"strides", Json::array()}};
        for (const Int& x : t.shape) j["shape"].push_back(write(x));
        for (const Int& x : t.strides) j["strides"].push_back(write(x));
        return j;
    }

    Json write(const GemmStrides& s) {
        const auto all = [&](const std::vector<Int>& list) {
            Json j = Json::array();
            for (const Int& x : list) j.push_back(write(x));
            return j;
        };
        Json j{{"matrices", all({s.first_a, s.first_b, s.row_a, s.row_b, s.row_c})},
               {"batches", Json::array()}};
        for (const GemmStrides::Batch& b : s.batches) j["batches"].push_back(all({b.count, b.a, b.b, b.c}));
        return j;
    }

    template <class Call>
    static void write_epilogue(const Call& call, Json& j) {
        j["bias"] = call.bias;
        j["relu"] = call.relu;
        j["precision"] = precisions[static_cast<int>(call.precision)];
    }

    static const char* kind_of(const Step& s) {
        return std::visit(
            Overloaded{[](const KernelStep&) { return "kernel"; }, [](const GemmStep&) { return "gemm"; },
                       [](const ConvStep&) { return "conv"; }, [](const CopyStep&) { return "copy"; },
                       [](const RoutineStep&) { return "routine"; }},
            s.operation);
    }

    Json write(const Step& s) {
        Json j{{"kind", kind_of(s)},   {"title", s.title},        {"buffers", buffers_of(s)},
               {"commits", s.commits}, {"bytes", write(s.bytes)}, {"flops", write(s.flops)}};
        std::visit([&](const auto& operation) { write(operation, j); }, s.operation);
        if (!s.why.empty()) j["why"] = s.why;
        j["fused"] = write(s.fused);
        return j;
    }

    Json write(const std::vector<Int>& integers) {
        return list(integers, [&](const Int& x) { return write(x); });
    }

    void write(const KernelStep& s, Json& j) {
        j["kernel"] = s.launch.kernel;
        j["sizes"] = write(s.launch.sizes);
        j["tasks"] = write(s.tasks);
        j["work"] = list(s.work, [&](const std::vector<TaskWork>& phase) {
            return list(phase, [&](const TaskWork& w) {
                return Json{{"tasks", write(w.tasks)}, {"picoseconds", write(w.picoseconds)}};
            });
        });
        j["reads"] = write(s.launch.reads);
        j["writes"] = write(s.launch.writes);
    }

    void write(const GemmStep& s, Json& j) {
        const GemmCall& call = s.call;
        j["m"] = write(call.m);
        j["n"] = write(call.n);
        j["k"] = write(call.k);
        j["dtype"] = name_of(call.dtype);
        if (call.unsigned_a) j["unsigned_a"] = true;
        j["transpose_a"] = call.transpose_a;
        j["transpose_b"] = call.transpose_b;
        j["parameter"] = parameters[static_cast<int>(call.parameter)];
        j["alpha"] = call.alpha;
        j["beta"] = call.beta;
        write_epilogue(call, j);
        if (s.epilogue) {
            j["kernel"] = s.epilogue->kernel;
            j["sizes"] = write(s.epilogue->sizes);
        }
        if (call.slice_rows > 0) j["slice"] = {call.slice_rows, call.slice_columns, call.slice_depth};
        j["symmetric"] = call.symmetric;
        j["piece_depth"] = call.piece_depth;
        if (call.strides) j["strides"] = write(*call.strides);
        j["pieces"] = Json::array();
        for (const std::optional<KernelLaunch>* pieces : {&s.pieces_a, &s.pieces_b}) {
            const KernelLaunch launch = pieces->value_or(KernelLaunch{});
            j["pieces"].push_back({{"kernel", launch.kernel},
                                   {"buffers", launch.buffers.size()},
                                   {"sizes", write(launch.sizes)}});
        }
    }

    void write(const ConvStep& s, Json& j) {
        const ConvCall& call = s.call;
        j["computes"] = conv_kinds[static_cast<int>(call.kind)];
        j["image"] = write(call.image);
        j["filters"] = write(call.filters);
        j["output"] = write(call.output);
        j["stride"] = call.stride;
        j["pad"] = call.pad;
        j["dilation"] = call.dilation;
        j["flip"] = call.flip;
        if (call.groups != 1) j["groups"] = call.groups;
        write_epilogue(call, j);
    }

    void write(const CopyStep& /*s*/, Json& /*j*/) {}

    void write(const RoutineStep& s, Json& j) {
        j["routine"] = s.call.name;
        j["dtype"] = name_of(s.call.dtype);
        j["sizes"] = write(s.call.sizes);
        j["by_library"] = s.call.by_library;
        j["workspace"] = write(s.call.workspace);
    }

    std::map<std::uint64_t, int> numbers_;
    std::vector<AtomPtr> symbols_;
};

}  // namespace

std::string program_to_json(const Program& program) { return Writer().run(program); }

}  // namespace bitale
