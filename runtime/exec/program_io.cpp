// The JSON form of programs. Integers of the algebra are nested arrays: ["+", constant, [factor, atom, ...],
// ...], an atom being a symbol's number or [kind, a, b].
#include "runtime/exec/program_io.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "bitale/error.h"
#include "graph/base/text.h"
#include "graph/base/turns.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/shared.h"

namespace bitale {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* buffer_kinds[] = {"arena",  "input",  "shared", "constant",
                                        "output", "errors", "slice",  "counters"};
constexpr const char* buffer_roles[] = {"value", "partial_sums", "task_rows"};
constexpr const char* step_kinds[] = {"kernel", "gemm", "conv", "copy", "routine"};
constexpr const char* conv_kinds[] = {"forward", "image_gradient", "filter_gradient"};
constexpr const char* parameters[] = {"none", "depth", "columns", "rows"};
constexpr const char* precisions[] = {"float32", "tf32", "bf16"};
constexpr const char* atom_kinds[] = {"symbol", "floordiv", "min", "max"};

template <class Kind, std::size_t n>
Kind kind_named(const char* const (&names)[n], const std::string& name) {
    for (std::size_t i = 0; i < n; ++i)
        if (name == names[i]) return static_cast<Kind>(i);
    throw FileError("a program names the unknown kind " + in_quotes(name));
}

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

int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw FileError("a constant of the program is not hexadecimal");
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
            Json origin{{"what", o.what}, {"file", o.where.file}, {"line", o.where.line}};
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

    Json write(const Step& s) {
        Json j{{"kind", step_kinds[static_cast<int>(s.kind)]},
               {"title", s.title},
               {"buffers", s.buffers},
               {"commits", s.commits},
               {"bytes", write(s.bytes)},
               {"flops", write(s.flops)}};
        if (s.kind == Step::Kind::kernel) {
            j["kernel"] = s.kernel;
            j["sizes"] = list(s.sizes, [&](const Int& x) { return write(x); });
            j["tasks"] = list(s.tasks, [&](const Int& x) { return write(x); });
            j["work"] = list(s.work, [&](const std::vector<TaskWork>& phase) {
                return list(phase, [&](const TaskWork& w) {
                    return Json{{"tasks", write(w.tasks)}, {"picoseconds", write(w.picoseconds)}};
                });
            });
            j["reads"] = list(s.reads, [&](const Int& x) { return write(x); });
            j["writes"] = list(s.writes, [&](const Int& x) { return write(x); });
        } else if (s.kind == Step::Kind::gemm) {
            j["m"] = write(s.gemm.m);
            j["n"] = write(s.gemm.n);
            j["k"] = write(s.gemm.k);
            j["transpose_a"] = s.gemm.transpose_a;
            j["transpose_b"] = s.gemm.transpose_b;
            j["parameter"] = parameters[static_cast<int>(s.gemm.parameter)];
            j["alpha"] = s.gemm.alpha;
            j["beta"] = s.gemm.beta;
            write_epilogue(s.gemm, j);
            if (s.kernel >= 0) {
                j["kernel"] = s.kernel;
                j["sizes"] = list(s.sizes, [&](const Int& x) { return write(x); });
            }
            if (s.gemm.slice_rows > 0)
                j["slice"] = {s.gemm.slice_rows, s.gemm.slice_columns, s.gemm.slice_depth};
            j["symmetric"] = s.gemm.symmetric;
            j["piece_depth"] = s.gemm.piece_depth;
            if (s.gemm.strides) j["strides"] = write(*s.gemm.strides);
            j["pieces"] = Json::array();
            for (const PieceKernel& piece : s.pieces)
                j["pieces"].push_back({{"kernel", piece.kernel},
                                       {"buffers", piece.buffers},
                                       {"sizes", list(piece.sizes, [&](const Int& x) { return write(x); })}});
        } else if (s.kind == Step::Kind::conv) {
            j["computes"] = conv_kinds[static_cast<int>(s.conv.kind)];
            j["image"] = write(s.conv.image);
            j["filters"] = write(s.conv.filters);
            j["output"] = write(s.conv.output);
            j["stride"] = s.conv.stride;
            j["pad"] = s.conv.pad;
            j["dilation"] = s.conv.dilation;
            j["flip"] = s.conv.flip;
            if (s.conv.groups != 1) j["groups"] = s.conv.groups;
            write_epilogue(s.conv, j);
        } else if (s.kind == Step::Kind::routine) {
            j["routine"] = s.routine.name;
            j["dtype"] = name_of(s.routine.dtype);
            j["sizes"] = list(s.routine.sizes, [&](const Int& x) { return write(x); });
            j["by_library"] = s.routine.by_library;
            j["workspace"] = write(s.routine.workspace);
        }
        if (!s.why.empty()) j["why"] = s.why;
        j["fused"] = write(s.fused);
        return j;
    }

    std::map<std::uint64_t, int> numbers_;
    std::vector<AtomPtr> symbols_;
};

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
        s.kind = kind_named<Step::Kind>(step_kinds, j.at("kind"));
        s.title = j.at("title");
        s.buffers = j.at("buffers").get<std::vector<int>>();
        s.commits = j.at("commits");
        s.bytes = integer(j.at("bytes"));
        s.flops = integer(j.at("flops"));
        if (s.kind == Step::Kind::kernel) {
            s.kernel = j.at("kernel");
            for (const Json& x : j.at("sizes")) s.sizes.push_back(integer(x));
            for (const Json& x : j.at("tasks")) s.tasks.push_back(integer(x));
            for (const Json& phase : j.at("work")) {
                std::vector<TaskWork>& work = s.work.emplace_back();
                for (const Json& w : phase)
                    work.push_back({integer(w.at("tasks")), integer(w.at("picoseconds"))});
            }
            for (const Json& x : j.at("reads")) s.reads.push_back(integer(x));
            for (const Json& x : j.at("writes")) s.writes.push_back(integer(x));
        } else if (s.kind == Step::Kind::gemm) {
            s.gemm.m = integer(j.at("m"));
            s.gemm.n = integer(j.at("n"));
            s.gemm.k = integer(j.at("k"));
            s.gemm.transpose_a = j.at("transpose_a");
            s.gemm.transpose_b = j.at("transpose_b");
            s.gemm.parameter = kind_named<GemmCall::Parameter>(parameters, j.at("parameter"));
            s.gemm.alpha = j.at("alpha");
            s.gemm.beta = j.at("beta");
            read_epilogue(j, s.gemm);
            if (j.contains("kernel")) {
                s.kernel = j.at("kernel");
                for (const Json& x : j.at("sizes")) s.sizes.push_back(integer(x));
            }
            if (j.contains("slice")) {
                const Json& slice = j.at("slice");
                s.gemm.slice_rows = slice.at(0);
                s.gemm.slice_columns = slice.at(1);
                s.gemm.slice_depth = slice.at(2);
            }
            s.gemm.symmetric = j.at("symmetric");
            s.gemm.piece_depth = j.at("piece_depth");
            if (j.contains("strides")) s.gemm.strides = strides(j.at("strides"));
            for (std::size_t side = 0; side < s.pieces.size(); ++side) {
                const Json& piece = j.at("pieces").at(side);
                s.pieces[side].kernel = piece.at("kernel");
                s.pieces[side].buffers = piece.at("buffers");
                for (const Json& x : piece.at("sizes")) s.pieces[side].sizes.push_back(integer(x));
            }
            s.gemm.made_a = s.pieces[0].kernel >= 0;
            s.gemm.made_b = s.pieces[1].kernel >= 0;
        } else if (s.kind == Step::Kind::conv) {
            s.conv.kind = kind_named<ConvCall::Kind>(conv_kinds, j.at("computes"));
            s.conv.image = tensor(j.at("image"));
            s.conv.filters = tensor(j.at("filters"));
            s.conv.output = tensor(j.at("output"));
            s.conv.stride = j.at("stride");
            s.conv.pad = j.at("pad");
            s.conv.dilation = j.at("dilation");
            s.conv.flip = j.at("flip");
            s.conv.groups = j.value("groups", std::int64_t{1});
            if (s.conv.groups < 1) throw FileError("a convolution of the program has no groups of channels");
            read_epilogue(j, s.conv);
        } else if (s.kind == Step::Kind::routine) {
            s.routine.name = j.at("routine");
            s.routine.dtype = dtype_named(j.at("dtype").get<std::string>());
            for (const Json& x : j.at("sizes")) s.routine.sizes.push_back(integer(x));
            s.routine.by_library = j.at("by_library");
            s.routine.workspace = integer(j.at("workspace"));
        }
        s.why = j.value("why", "");
        s.fused = origins(j.at("fused"));
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

std::string program_to_json(const Program& program) { return Writer().run(program); }

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
