// Programs from JSON, which may come from anybody.
#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "bitale/error.h"
#include "graph/base/text.h"
#include "graph/base/turns.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/shared.h"
#include "runtime/exec/program_io.h"
#include "runtime/exec/program_names.h"

namespace bitale {

namespace {

using namespace program_names;
using Json = nlohmann::ordered_json;

template <class Kind, std::size_t n>
Kind kind_named(const char* const (&names)[n], const std::string& name) {
    for (std::size_t i = 0; i < n; ++i)
        if (name == names[i]) return static_cast<Kind>(i);
    throw FileError("a program names the unknown kind " + in_quotes(name));
}

int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw FileError("a constant of the program is not hexadecimal");
}

// What a program may ask for by its text alone.
constexpr int deepest = 64;
constexpr std::size_t most_atoms = 1 << 20, most_terms = 1 << 10;

class Reader {
  public:
    explicit Reader(const LoadLimits& limits) : limits_(limits), left_(limits.bytes) {}

    Program run(const Json& j) {
        if (!j.is_object() || j.value("bitale_program", 0) != Program::version)
            throw FileError("this is not a program of version " + std::to_string(Program::version));
        Program p;
        p.name = j.at("name");
        p.target = j.at("target");
        for (const Json& s : j.at("symbols")) {
            const IntRange range{s.at("low").get<std::int64_t>(), s.at("high").get<std::int64_t>()};
            if (range.low < IntRange::lowest || range.high > IntRange::highest || range.low >= range.high)
                throw FileError("a symbol of the program has an impossible range");
            symbols_.push_back(Int::symbol(s.at("name"), range));
        }
        for (const Json& s : j.at("size_sources")) {
            const Int value = integer(s.at("value"));
            p.size_sources.push_back({value.symbol_id(), value, s.at("input"), s.at("axis")});
        }
        for (const Json& t : j.at("inputs")) p.inputs.push_back(type(t));
        for (const Json& t : j.at("outputs")) p.outputs.push_back(type(t));
        for (const Json& c : j.at("length_checks"))
            p.length_checks.push_back({integer(c.at("a")), integer(c.at("b")),
                                       from_readable(c.at("message").get<std::string>()),
                                       c.value("is_index", false)});
        for (const Json& c : j.at("checks")) p.checks.push_back({from_readable(c.get<std::string>())});
        for (const Json& s : j.at("shared")) {
            auto state = std::make_shared<SharedState>();
            state->name = s.at("name");
            state->value = array(type(s.at("type")));
            p.shared.push_back(std::move(state));
        }
        p.updated = j.at("updated").get<std::vector<int>>();
        for (const Json& c : j.at("constants")) p.constants.push_back(constant(c));
        for (const Json& b : j.at("buffers"))
            p.buffers.push_back({kind_named<BufferInfo::Kind>(buffer_kinds, b.at("kind")), b.at("index"),
                                 b.at("name"), type(b.at("type")), b.at("reason"), origins(b.at("origins")),
                                 b.contains("role") ? kind_named<BufferInfo::Role>(buffer_roles, b.at("role"))
                                                    : BufferInfo::Role::value});
        for (const Json& k : j.at("kernels"))
            p.kernels.push_back({k.at("name"), k.at("entries").get<std::vector<std::string>>(), k.at("body"),
                                 k.at("cuda_body"), "", k.at("notes"),
                                 k.at("cuda_threads").get<std::vector<int>>()});
        for (const Json& s : j.at("once")) p.once.steps.push_back(step(s));
        for (const Json& s : j.at("body")) p.body.steps.push_back(step(s));
        p.prelude = j.at("prelude");
        p.cuda_prelude = j.at("cuda_prelude");
        return p;
    }

  private:
    Int integer(const Json& j) {
        if (j.is_number_integer()) return j.get<std::int64_t>();
        Int sum = j.at(1).get<std::int64_t>();
        for (std::size_t t = 2; t < j.size(); ++t) {
            Int product = j[t].at(0).get<std::int64_t>();
            for (std::size_t a = 1; a < j[t].size(); ++a) product = short_enough(product * atom(j[t][a]));
            sum = short_enough(sum + product);
        }
        return sum;
    }

    // A product of sums has as many terms as both together have pairs.
    static Int short_enough(Int x) {
        if (x.terms().size() > most_terms) throw FileError("a number of the program is too long");
        return x;
    }

    Int atom(const Json& j) {
        if (++atoms_ > most_atoms) throw FileError("the numbers of the program are too long");
        if (j.is_number_integer()) return symbols_.at(j.get<std::size_t>());
        const Int a = integer(j.at(1)), b = integer(j.at(2));
        switch (kind_named<Atom::Kind>(atom_kinds, j.at(0))) {
            case Atom::Kind::floordiv: return floordiv(a, b);
            case Atom::Kind::min: return min(a, b);
            default: return max(a, b);
        }
    }

    Type type(const Json& j) {
        Type t;
        t.dtype = dtype_named(j.at("dtype").get<std::string>());
        for (const Json& x : j.at("shape")) t.shape.push_back(integer(x));
        return t;
    }

    static std::int64_t bytes_of_array(const Type& t) {
        if (!is_static(t.shape)) throw FileError("an array of the program has the shape " + text_of(t.shape));
        std::int64_t bytes = 0;
        if (__builtin_mul_overflow(count_of(static_dims(t.shape)), bytes_of(t.dtype), &bytes) ||
            bytes > IntRange::highest)
            throw FileError("an array of the program has the shape " + text_of(t.shape));
        return bytes;
    }

    Array array(const Type& t) {
        const std::int64_t bytes = bytes_of_array(t);
        if (t.rank() > limits_.rank || bytes > left_)
            throw FileError("an array of the program is beyond the limits of LoadLimits: " + text_of(t));
        left_ -= bytes;
        return Array(t.dtype, static_dims(t.shape));
    }

    Array constant(const Json& j) {
        const Type t = type(j.at("type"));
        const std::string& hex = j.at("bytes").get_ref<const std::string&>();
        if (static_cast<std::int64_t>(hex.size()) != 2 * bytes_of_array(t))
            throw FileError("a constant of the program is truncated");
        Array a = array(t);
        auto* to = static_cast<unsigned char*>(a.mutable_data());
        for (std::size_t i = 0; i < hex.size() / 2; ++i)
            to[i] = static_cast<unsigned char>(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
        return a;
    }

    static std::vector<Origin> origins(const Json& j) {
        std::vector<Origin> list;
        for (const Json& o : j)
            list.push_back({{kept(o.at("file").get<std::string>()), o.at("line").get<unsigned>()},
                            o.at("what"),
                            o.value("of_gradient", false)});
        return list;
    }

    // Where points to text that lives as long as the process.
    static const char* kept(const std::string& file) {
        static ForkMutex& mutex = *new ForkMutex;
        static auto& files = *new std::map<std::string, char>;
        const std::lock_guard lock(mutex);
        return files.emplace(file, 0).first->first.c_str();
    }

    GemmStrides strides(const Json& j) {
        const Json& matrices = j.at("matrices");
        GemmStrides s{integer(matrices.at(0)), integer(matrices.at(1)), integer(matrices.at(2)),
                      integer(matrices.at(3)), integer(matrices.at(4)), {}};
        for (const Json& b : j.at("batches"))
            s.batches.push_back({integer(b.at(0)), integer(b.at(1)), integer(b.at(2)), integer(b.at(3))});
        return s;
    }

    ConvTensor tensor(const Json& j) {
        ConvTensor t;
        for (std::size_t d = 0; d < t.shape.size(); ++d) {
            t.shape[d] = integer(j.at("shape").at(d));
            t.strides[d] = integer(j.at("strides").at(d));
        }
        return t;
    }

    template <class Call>
    static void read_epilogue(const Json& j, Call& call) {
        call.bias = j.at("bias");
        call.relu = j.at("relu");
        call.precision = kind_named<Precision>(precisions, j.at("precision"));
    }

    Step step(const Json& j) {
        Step s;
        s.title = j.at("title");
        s.commits = j.at("commits");
        s.bytes = integer(j.at("bytes"));
        s.flops = integer(j.at("flops"));
        s.why = j.value("why", "");
        s.fused = origins(j.at("fused"));
        const std::string& kind = j.at("kind").get_ref<const std::string&>();
        if (kind == "kernel")
            s.operation = kernel_step(j);
        else if (kind == "gemm")
            s.operation = gemm_step(j);
        else if (kind == "conv")
            s.operation = conv_step(j);
        else if (kind == "copy")
            s.operation = copy_step(j);
        else if (kind == "routine")
            s.operation = routine_step(j);
        else
            throw FileError("a program names the unknown kind " + in_quotes(kind));
        return s;
    }

    // The buffers of a step, in the order of buffers_of.
    class Buffers {
      public:
        explicit Buffers(const Json& j) : list_(j.at("buffers").get<std::vector<int>>()) {}
        std::size_t left() const { return list_.size() - next_; }
        int next() { return list_.at(next_++); }
        std::vector<int> next(std::size_t count) {
            if (count > left()) refuse();
            const auto first = list_.begin() + static_cast<std::ptrdiff_t>(next_);
            next_ += count;
            return {first, first + static_cast<std::ptrdiff_t>(count)};
        }
        void end() const {
            if (left() > 0) refuse();
        }
        [[noreturn]] static void refuse() {
            throw FileError("a step of the program has another number of buffers than its kind");
        }

      private:
        std::vector<int> list_;
        std::size_t next_ = 0;
    };

    std::vector<Int> integers(const Json& j) {
        std::vector<Int> list;
        for (const Json& x : j) list.push_back(integer(x));
        return list;
    }

    KernelStep kernel_step(const Json& j) {
        KernelStep s;
        Buffers buffers(j);
        s.launch = {j.at("kernel"), buffers.next(buffers.left()), integers(j.at("sizes")),
                    integers(j.at("reads")), integers(j.at("writes"))};
        s.tasks = integers(j.at("tasks"));
        for (const Json& phase : j.at("work")) {
            std::vector<TaskWork>& work = s.work.emplace_back();
            for (const Json& w : phase)
                work.push_back({integer(w.at("tasks")), integer(w.at("picoseconds"))});
        }
        return s;
    }

    GemmStep gemm_step(const Json& j) {
        GemmStep s;
        GemmCall& call = s.call;
        call.m = integer(j.at("m"));
        call.n = integer(j.at("n"));
        call.k = integer(j.at("k"));
        if (j.contains("dtype")) call.dtype = dtype_named(j.at("dtype").get<std::string>());
        if (call.dtype != DType::float32 && call.dtype != DType::float64 && call.dtype != DType::int32)
            throw FileError("a product of the program is of " + std::string(name_of(call.dtype)));
        if (j.contains("unsigned_a")) call.unsigned_a = j.at("unsigned_a");
        call.transpose_a = j.at("transpose_a");
        call.transpose_b = j.at("transpose_b");
        call.parameter = kind_named<GemmCall::Parameter>(parameters, j.at("parameter"));
        call.alpha = j.at("alpha");
        call.beta = j.at("beta");
        read_epilogue(j, call);
        if (j.contains("slice")) {
            const Json& slice = j.at("slice");
            call.slice_rows = slice.at(0);
            call.slice_columns = slice.at(1);
            call.slice_depth = slice.at(2);
        }
        call.symmetric = j.at("symmetric");
        call.piece_depth = j.at("piece_depth");
        if (j.contains("strides")) call.strides = strides(j.at("strides"));
        Buffers buffers(j);
        for (int* buffer : {&s.a, &s.b, &s.c}) *buffer = buffers.next();
        if (call.bias) s.bias = buffers.next();
        const Json &a = j.at("pieces").at(0), &b = j.at("pieces").at(1);
        if (j.contains("kernel")) {
            std::size_t others = 0;
            for (const Json* pieces : {&a, &b})
                if (pieces->at("kernel").get<int>() >= 0) others += pieces->at("buffers").get<std::size_t>();
            if (others > buffers.left()) Buffers::refuse();
            s.epilogue = {
                j.at("kernel"), buffers.next(buffers.left() - others), integers(j.at("sizes")), {}, {}};
        }
        s.pieces_a = pieces(a, buffers);
        s.pieces_b = pieces(b, buffers);
        buffers.end();
        call.made_a = s.pieces_a.has_value();
        call.made_b = s.pieces_b.has_value();
        return s;
    }

    std::optional<KernelLaunch> pieces(const Json& j, Buffers& buffers) {
        const int kernel = j.at("kernel");
        if (kernel < 0) return {};
        return KernelLaunch{
            kernel, buffers.next(j.at("buffers").get<std::size_t>()), integers(j.at("sizes")), {}, {}};
    }

    ConvStep conv_step(const Json& j) {
        ConvStep s;
        ConvCall& call = s.call;
        call.kind = kind_named<ConvCall::Kind>(conv_kinds, j.at("computes"));
        call.image = tensor(j.at("image"));
        call.filters = tensor(j.at("filters"));
        call.output = tensor(j.at("output"));
        call.stride = j.at("stride");
        call.pad = j.at("pad");
        call.dilation = j.at("dilation");
        call.flip = j.at("flip");
        call.groups = j.value("groups", std::int64_t{1});
        if (call.groups < 1) throw FileError("a convolution of the program has no groups of channels");
        read_epilogue(j, call);
        Buffers buffers(j);
        for (int* buffer : in_order(call.kind, s)) *buffer = buffers.next();
        if (call.bias) s.bias = buffers.next();
        buffers.end();
        return s;
    }

    static CopyStep copy_step(const Json& j) {
        Buffers buffers(j);
        CopyStep s;
        s.from = buffers.next();
        s.to = buffers.next();
        buffers.end();
        return s;
    }

    RoutineStep routine_step(const Json& j) {
        RoutineStep s;
        s.call.name = j.at("routine");
        s.call.dtype = dtype_named(j.at("dtype").get<std::string>());
        s.call.sizes = integers(j.at("sizes"));
        s.call.by_library = j.at("by_library");
        s.call.workspace = integer(j.at("workspace"));
        Buffers buffers(j);
        if (buffers.left() < 2) Buffers::refuse();
        s.operands = buffers.next(buffers.left() - 2);
        s.result = buffers.next();
        s.workspace = buffers.next();
        return s;
    }

    LoadLimits limits_;
    std::int64_t left_;
    std::size_t atoms_ = 0;
    std::vector<Int> symbols_;
};

// Numbers are read by recursion, so a text may not nest without end. Factors of products aside, all numbers
// are whole; others do not convert to integers.
Json parsed(const std::string& text) {
    std::string key;
    return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& value) {
        if (depth > deepest) throw FileError("a program cannot be read: it nests too deep");
        if (event == Json::parse_event_t::key) key = value.get<std::string>();
        if (event != Json::parse_event_t::value || key == "alpha" || key == "beta") return true;
        const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX;
        if (value.is_number_float() || too_large)
            throw FileError("a program cannot be read: " + value.dump() + " is no int64");
        return true;
    });
}

}  // namespace

Program program_from_json(const std::string& text, const LoadLimits& limits) {
    try {
        return Reader(limits).run(parsed(text));
    } catch (const FileError&) {
        throw;
    } catch (const Error& e) {
        throw FileError(std::string("a program cannot be read: ") + e.what());
    } catch (const nlohmann::json::exception& e) {
        throw FileError(std::string("a program cannot be read: ") + printable(e.what()));
    } catch (const std::out_of_range& e) {
        throw FileError(std::string("a program cannot be read: ") + e.what());
    }
}

}  // namespace bitale
