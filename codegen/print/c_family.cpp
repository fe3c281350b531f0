#include "codegen/print/c_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "codegen/kernel/in_flight.h"
#include "codegen/kernel/intrinsics.h"
#include "codegen/kernel/shared_memory.h"
#include "codegen/nest/walk.h"
#include "codegen/print/apart.h"
#include "codegen/print/declaration.h"
#include "codegen/print/expressions.h"
#include "codegen/print/functions.h"
#include "codegen/print/indices.h"
#include "codegen/print/literals.h"
#include "codegen/print/masked_groups.h"
#include "codegen/print/reading.h"
#include "codegen/print/repeated.h"
#include "codegen/print/turned.h"
#include "codegen/print/writer.h"

namespace bitale {

namespace {

constexpr std::int64_t shared_memory = 48 << 10;  // of a block, on every GPU

class Printer {
  public:
    Printer(const KernelIR& kernel, Dialect dialect, const ReadingNotes* reading)
        : kernel_(kernel),
          cuda_(dialect == Dialect::cuda),
          reading_(reading),
          literals_(kernel),
          indices_(cuda_, [this](const std::string& type, const std::string& text) {
              return temporary(type, text);
          }) {}

    PrintedKernel run() {
        for (std::size_t p = 0; p < kernel_.phases.size(); ++p) {
            result_.suffixes.emplace_back(suffix_of(p));
            phase(kernel_.phases[p], result_.suffixes.back());
        }
        // Literals come first: their number is known before any index is printed.
        result_.sizes = literals_.sizes();
        result_.sizes.insert(result_.sizes.end(), indices_.sizes().begin(), indices_.sizes().end());
        return std::move(result_);
    }

  private:
    void phase(const Phase& phase, const std::string& suffix) {
        threads_ = threads_of(phase);
        const std::string entry = cuda_ ? cuda_entry(suffix, threads_) : cpu_entry(suffix);
        const std::span<const Segment> all = phase.segments;
        constexpr std::size_t most = segments_of_function;
        Int done = 0;
        if (cuda_ || all.size() <= most) return function(entry, all, done, false);
        std::string calls;
        for (std::size_t k = 0; k * most < all.size(); ++k) {
            const auto part = all.subspan(k * most, std::min(most, all.size() - k * most));
            function(part_entry(suffix, k), part, done, true);
            done = done + tasks_of(part);
            calls += call_of_part(suffix, k);
        }
        result_.body += entry + "\n" + calls + "}\n";
    }

    // `done`: tasks of the segments before these.
    void function(const std::string& entry, std::span<const Segment> segments, Int done, bool is_part) {
        indices_.forget();
        for (std::size_t i = 0; i < kernel_.scalars.size(); ++i)
            indices_.bind_scalar(kernel_.scalars[i].symbol, "a" + std::to_string(i));
        memo_.assign(1, {});
        Writer body(reading_ && reading_->lines);
        std::swap(out_, body);
        std::string at, tasks;
        for (const Segment& segment : segments) {
            out_.heading(segment.title);
            out_.at(segment.where);
            note_loop(reading_, segment.task, out_);
            // As sizes, the starts of n segments of many unknown numbers of tasks would have n * n / 2 terms.
            const bool adds = !at.empty() && done.terms().size() > 1;
            if (adds) at = temporary("i64", at + " + " + tasks);
            tasks = index(segment.tasks);
            if (!adds) at = index(done);
            const std::string task = fresh("t");
            if (cuda_) {
                out_.open(fmt::format("for ({3} {0} = ({3})blockIdx.x{1}; {0} < {2}; {0} += gridDim.x) {{",
                                      task, done.is(0) ? "" : " - " + at, tasks,
                                      indices_.type_of(segment.task)));
                if (!done.is(0)) out_.line("if (" + task + " < 0) continue;");
            } else {
                const std::string n = fresh("n");
                out_.line(fmt::format("const i64 {0} = last - {1} < {2} ? last - {1} : {2};", n, at, tasks));
                out_.open(fmt::format("for (i64 {0} = first > {1} ? first - {1} : 0; {0} < {2}; ++{0}) {{",
                                      task, at, n));
            }
            indices_.bind(segment.task, task);
            if (cuda_) shared_ = shared_memory_of(kernel_, segment);
            most_shared_bytes_ = std::max(most_shared_bytes_, shared_.bytes);
            statements(segment.body);
            if (cuda_ && (segment.body.empty() || segment.body.back().kind != Stmt::Kind::barrier))
                out_.line("__syncthreads();");
            out_.close();
            if (!adds) done = done + segment.tasks;
        }
        if (std::exchange(settles_, false)) out_.line("b_settle();");
        std::swap(out_, body);
        Writer head(reading_ && reading_->lines);
        if (!segments.empty()) head.at(segments[0].where);
        head.open(entry);
        declarations(head, body.text(), is_part);
        const RepeatedParts once = with_repeated_parts_once(
            head.text(), body.text(), cuda_ ? std::vector<std::size_t>() : body.headings(), functions_);
        result_.body += once.functions + head.text() + once.body + "}\n";
    }

    // Printed after the body, when the sizes it needs are known. A part declares only what it mentions.
    void declarations(Writer& w, const std::string& body, bool is_part) {
        const std::string buffers = cuda_ ? "arguments.buffers" : "buffers",
                          sizes = cuda_ ? "arguments.sizes" : "sizes";
        BITALE_CHECK(most_shared_bytes_ <= shared_memory, "more shared memory than a block has");
        if (cuda_ && most_shared_bytes_ > 0) w.line(fmt::format("B_SHARED_MEMORY({});", most_shared_bytes_));
        most_shared_bytes_ = 0;
        if (kernel_.errors_buffer >= 0)
            w.line("i64* errors = (i64*)" + buffers + "[" + std::to_string(kernel_.errors_buffer) + "];");
        if (cuda_ && kernel_.commits && kernel_.errors_buffer >= 0) w.line("if (*errors) return;");
        for (const DeviceScalar& s : kernel_.scalars) used_.insert(s.place);
        for (const int i : used_) {
            const Place& p = kernel_.places[i];
            if (p.scope != Place::Scope::global) continue;
            const std::string type = (p.written ? "" : "const ") + std::string(stored_type(p.dtype, cuda_));
            note_place(reading_, static_cast<std::size_t>(i), w);
            w.line(fmt::format("{0}* B_RESTRICT p{1} = ({0}*){2}[{3}];", type, i, buffers, p.buffer));
        }
        for (std::size_t i = 0; i < kernel_.scalars.size(); ++i)
            w.line(fmt::format("const i64 a{} = (i64)p{}[0];", i, kernel_.scalars[i].place));
        for (const std::size_t i : declared_sizes(indices_.sizes().size(), is_part, body)) {
            const std::string type = indices_.type_of_size(i), cast = type == "i32" ? "(i32)" : "";
            if (reading_) w.comment(fmt::format("s{}: {}", i, indices_.sizes()[i].text()));
            w.line(
                fmt::format("const {} s{} = {}{}[{}];", type, i, cast, sizes, literals_.sizes().size() + i));
        }
        for (const std::size_t i : used_literals_) {
            if (reading_) w.comment(fmt::format("c{}: {}", i, literals_.text(i)));
            w.line(fmt::format("const {} c{} = {};", literals_.type(i), i,
                               literals_.value(i, fmt::format("{}[{}]", sizes, i))));
        }
        used_.clear();
        used_literals_.clear();
    }

    void statements(const Stmts& body) {
        memo_.emplace_back();
        for (const Stmt& s : body) statement(s);
        memo_.pop_back();
    }

    void statement(const Stmt& s) {
        forget_statement();
        switch (s.kind) {
            case Stmt::Kind::comment: out_.heading(s.text), out_.at(s.where); return;
            case Stmt::Kind::barrier:
                if (cuda_) out_.line("__syncthreads();");
                return;
            case Stmt::Kind::declare: declare(s.place); return;
            case Stmt::Kind::loop: loop(s); return;
            case Stmt::Kind::when:
                out_.open("if (" + condition(s.guards) + ") {");
                statements(s.body);
                out_.close();
                return;
            case Stmt::Kind::let: {
                // g++ 12 takes a condition in an address for a number of one bit, with a sign.
                const bool apart = !cuda_ && any_part(s.value, [](const ScalarNode& x) {
                    return x.dtype == DType::boolean;
                });
                const std::string own = scalar(s.value), name = fresh("g"),
                                  value = apart ? opaque("i64", "(i64)" + own) : own;
                const std::string type = indices_.type_of(s.variable), cast = type == "i32" ? "(i32)" : "";
                out_.line(fmt::format("const {} {} = {}b_clamp_index((i64){}, {});", type, name, cast, value,
                                      index(s.end)));
                indices_.bind(s.variable, name);
                return;
            }
            case Stmt::Kind::call: call(s.call); return;
            case Stmt::Kind::search: {
                const std::string first = element(s.place, {0}), name = fresh("g");
                out_.line(fmt::format("const {} {} = b_search(&{}, {}, {}, {});",
                                      indices_.type_of(s.variable), name, first, index(s.begin), index(s.end),
                                      index(s.low)));
                indices_.bind(s.variable, name);
                return;
            }
            case Stmt::Kind::check: {
                const std::string value = "(i64)" + scalar(s.value), high = index(s.high);
                out_.line(fmt::format("if ({} < {} || {} >= {}) b_report(errors, {}, {}, {}, {});", value,
                                      index(s.low), value, high, s.number, value, index(s.begin), high));
                return;
            }
            case Stmt::Kind::set: {
                const std::string value = scalar(s.value);
                out_.line(element(s.place, s.at) + " = " + value + ";");
                return;
            }
            case Stmt::Kind::accumulate: accumulate(s); return;
            case Stmt::Kind::exchange: exchange(s); return;
        }
    }

    void call(const Call& c) {
        const std::string_view text = cuda_ ? c.intrinsic->cuda : c.intrinsic->cpu;
        BITALE_CHECK(!text.empty(), "this device has no " + std::string(c.intrinsic->name));
        std::string line;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t open = std::min(text.find('{', at), text.size());
            line += text.substr(at, open - at);
            if (open == text.size()) break;
            const std::size_t close = text.find('}', open);
            line += argument(c, text.substr(open + 1, close - open - 1));
            at = close + 1;
        }
        out_.line(line);
        settles_ = settles_ || c.intrinsic->streams;
    }

    // What a name between braces in the text of an intrinsic stands for.
    std::string argument(const Call& c, std::string_view name) {
        using Kind = Intrinsic::Operand::Kind;
        if (name == "values") {
            std::string list;
            for (const Scalar& value : c.values) list += (list.empty() ? "" : ", ") + scalar(value);
            return list;
        }
        if (name == "width") {
            std::size_t vector = 0;  // its first operand that is one
            while (c.intrinsic->operands.at(vector).kind != Kind::vector) ++vector;
            return std::to_string(kernel_.places[c.operands[vector].place].extents[0].constant());
        }
        const auto number = static_cast<std::size_t>(name.back() - '0');
        if (name[0] == 'n') return index(c.numbers[number]);
        if (name[0] == 'c') return std::to_string(c.constants[number]);
        const auto& [place, at] = c.operands[number];
        switch (c.intrinsic->operands[number].kind) {
            case Kind::memory: return "&" + element(place, at);
            case Kind::scalar: return element(place, at);
            default: return "p" + std::to_string(place);
        }
    }

    void declare(int number) {
        const Place& p = kernel_.places[number];
        note_place(reading_, static_cast<std::size_t>(number), out_);
        if (const std::string line = declaration_of(p, number, cuda_, shared_); !line.empty())
            out_.line(line);
    }

    void loop(const Stmt& s) {
        note_loop(reading_, s.variable, out_);
        if (s.binding == Binding::turned) return turned(s);
        if (s.binding == Binding::lanes) return lanes(s);
        const bool threads = s.binding == Binding::threads;
        if ((s.end - s.begin).is(1) && s.step == 1 && !threads) {
            indices_.bind(s.variable, index(s.begin));
            out_.open("{");  // a scope of its own
            statements(s.body);
            return out_.close();
        }
        // Not "i": i8 to i64 are types.
        const std::string begin = index(s.begin), name = fresh("j");
        std::string end = index(s.end);
        if (end.find(' ') != std::string::npos) {
            const std::string bound = fresh("n");
            out_.line(fmt::format("const {} {} = {};", indices_.type_of_text(s.end), bound, end));
            end = bound;
        }
        indices_.bind(s.variable, name);
        if (!cuda_) {
            for (const std::vector<Guard>& fixed : guards_of_all_lanes(s))
                indices_.settle(fixed, [this](const std::string& value) { return opaque("i32", value); });
            for (const ApartRead& read : reads_apart(s, kernel_.places)) point_at(read, s.variable);
            for (const std::int64_t step : long_steps(s, kernel_.places))
                indices_.hide(s.variable, step, opaque("i64", std::to_string(step)));
        }
        const std::string type = indices_.type_of(s.variable);
        if (!cuda_ && s.binding == Binding::simd) out_.line("B_SIMD");
        if (s.binding == Binding::unrolled) out_.line("B_UNROLL");
        if (const int turns = cuda_ ? loads_in_flight(s, kernel_.places, threads_).turns : 1; turns > 1)
            out_.line(fmt::format("B_UNROLL_LOADS({})", turns));
        const std::string first = !threads ? begin : (begin == "0" ? "" : begin + " + ") + "threadIdx.x";
        out_.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4}) {{", type, name, first, end,
                              threads ? threads_ : s.step));
        if (!cuda_ && has_masked_group(s, kernel_.places)) out_.line("B_SCALAR_LOOP;");
        if (s.binding == Binding::rolled) indices_.bind(s.variable, opaque(type, name));
        const bool around = std::exchange(in_simd_, s.binding == Binding::simd);
        statements(s.body);
        in_simd_ = around;
        pointers_.clear();
        indices_.show_again();
        out_.close();
    }

    std::string opaque(const std::string& type, const std::string& value, const char* how = "B_OPAQUE") {
        const std::string name = fresh("q");
        out_.line(fmt::format("{} {} = {};", type, name, value));
        out_.line(how + ("(" + name + ");"));
        return name;
    }

    void point_at(const ApartRead& read, const Int& variable) {
        const Place& place = kernel_.places[read.place];
        const std::string first = index(substitute(read.offset, {{variable.symbol_id(), 0}}));
        const Pointed p = pointed(read, stored_type(place.dtype, cuda_), first, condition(read.guards));
        const char* how = place.written ? "B_OPAQUE_ADDRESS" : "B_OPAQUE";
        std::string name = p.is_value ? temporary(p.type, p.value, false) : opaque(p.type, p.value, how);
        used_.insert(read.place);
        pointers_.push_back({read, p.is_value ? name : name + "[" + index(read.step * variable) + "]"});
    }

    void turned(const Stmt& s) {
        BITALE_CHECK(!cuda_, "a tile turned in registers, on a GPU");
        const TurnedTile tile = turned_tile(s, kernel_.places);
        const std::string from = element(tile.from->operand.place(), tile.first), stride = index(tile.stride),
                          rows = index(s.end), columns = index(tile.columns);
        const std::string guard = s.end.is_constant() ? "" : "if (" + rows + " > 0) ";  // no row, no address
        if (const int to = tile.set->place; kernel_.places[to].scope == Place::Scope::private_)
            return out_.line(
                fmt::format("{}b_transpose(&{}, {}, p{}, {}, {});", guard, from, stride, to, rows, columns));
        out_.line(fmt::format("{}b_turn<{}>(&{}, {}, &{}, {}, {}, {});", guard, s.number != 0, from, stride,
                              element(tile.set->place, tile.there), index(tile.step), rows, columns));
        settles_ = settles_ || s.number != 0;
    }

    // ---- vector registers of a CPU

    void lanes(const Stmt& s) {
        BITALE_CHECK(!cuda_, "vector registers, on a GPU");
        lane_ = s.variable;
        width_ = s.number;
        end_ = s.end;
        memo_.emplace_back();
        for (const Stmt& one : s.body) in_lanes(one);
        memo_.pop_back();
    }

    void in_lanes(const Stmt& s) {
        forget_statement();
        const bool adds = s.kind == Stmt::Kind::accumulate;
        BITALE_CHECK(s.kind == Stmt::Kind::set || (adds && s.combine == Combine::sum),
                     "a statement that vector registers have no form of");
        if (kernel_.places[s.place].scope == Place::Scope::vector) {
            const std::string to = lane_register(s.place, s.at);
            if (s.fused) {
                const std::string a = vector(s.value->arguments[0]), b = vector(s.value->arguments[1]);
                out_.line(to + " = b_fma_lanes(" + a + ", " + b + ", " + to + ");");
            } else {
                out_.line(to + " = " + (adds ? to + " + " : "") + vector(s.value) + ";");
            }
            return;
        }
        const auto [first, step] = address(s.place, s.at);
        BITALE_CHECK(step.is(1) || !adds, "vector registers added to elements that are not neighbours");
        const std::string value = (adds ? loaded(first) + " + " : "") + vector(s.value);
        if (!step.is(1))
            out_.line(fmt::format("b_store_apart({}, {}, {}, {});", first, value, index(end_), index(step)));
        else if (end_.is(width_))
            out_.line(fmt::format("b_store({}, {});", first, value));
        else
            out_.line(fmt::format("b_store_first({}, {}, {});", first, value, index(end_)));
    }

    std::string loaded(const std::string& first) {
        const bool all = end_.is(width_) || !kernel_.reads_exactly;
        return fmt::format("b_load<{}>({}{})", width_, first, all ? "" : ", " + index(end_));
    }

    // Where lane 0 is, and how many elements from one lane to the next.
    std::pair<std::string, Int> address(int place, const std::vector<Int>& at) {
        used_.insert(place);
        const Int offset = offset_of(kernel_.places[place], at);
        const std::uint64_t id = lane_.symbol_id();
        return {fmt::format("p{} + {}", place, index(substitute(offset, {{id, 0}}))),
                substitute(offset, {{id, lane_ + 1}}) - offset};
    }

    std::string lane_register(int place, const std::vector<Int>& at) {
        BITALE_CHECK(at[1] == lane_, "a vector register in other lanes");
        return fmt::format("p{}[{}]", place, index(at[0]));
    }

    bool varies_in_lanes(const Scalar& s) const {
        bool found = false;
        for_each_read(s, [&](const ScalarNode& read) {
            found = found ||
                    depends_on(offset_of(kernel_.places[read.operand.place()], read.at), lane_.symbol_id());
        });
        return found;
    }

    std::string vector(const Scalar& s) {
        if (const auto at = printed_vectors_.find(s.get()); at != printed_vectors_.end()) return at->second;
        return printed_vectors_[s.get()] = vector_expression(s);
    }

    std::string vector_expression(const Scalar& s) {
        const std::string type = fmt::format("b_lanes<{}, {}>::type", c_type(s->dtype), width_);
        if (is_positive_zero(s)) return type + "{}";
        const bool read = s->kind == ScalarNode::Kind::read;
        if (read && kernel_.places[s->operand.place()].scope == Place::Scope::vector)
            return lane_register(s->operand.place(), s->at);
        if (read && depends_on(offset_of(kernel_.places[s->operand.place()], s->at), lane_.symbol_id())) {
            const auto [first, step] = address(s->operand.place(), s->at);
            BITALE_CHECK(step.is(1) && s->guards.empty(),
                         "a vector register from elements that are not neighbours");
            return temporary(type, loaded(first), !kernel_.places[s->operand.place()].written);
        }
        if (s->kind == ScalarNode::Kind::select && s->guards.size() == 1 && s->guards[0].value == lane_) {
            const std::string some = vector(s->arguments[0]), others = vector(s->otherwise);
            return temporary(
                type, fmt::format("b_first_lanes({}, {}, {})", some, others, index(s->guards[0].high)));
        }
        // Of integers, positions alone, none of which is out of range.
        const bool has_form = is_float(s->dtype) || s->dtype == DType::int32;
        if (s->kind == ScalarNode::Kind::apply && has_form && varies_in_lanes(s)) {
            using enum Opcode;
            const Opcode opcode = opcode_of(*s->op);
            const char sign = opcode == add ? '+' : opcode == sub ? '-' : opcode == mul ? '*' : 0;
            BITALE_CHECK(sign != 0, "a map that vector registers have no form of: " + s->op->name);
            const std::string a = vector(s->arguments[0]), b = vector(s->arguments[1]);
            return temporary(type, fmt::format("{} {} {}", a, sign, b));
        }
        // Between integers, or from them: no element is out of range.
        if (s->kind == ScalarNode::Kind::cast && is_integer(s->arguments[0]->dtype)) {
            const DType from = s->arguments[0]->dtype;
            std::string value = vector(s->arguments[0]);
            if (bytes_of(from) == 1) value = "b_widen(" + value + ")";
            if (from == DType::int32 && bytes_of(s->dtype) == 1)
                value = fmt::format("b_narrow<{}>({})", c_type(s->dtype), value);
            else if (bytes_of(from) != 1 || s->dtype != DType::int32)
                value = fmt::format("__builtin_convertvector({}, {})", value, type);
            return temporary(type, value);
        }
        return fmt::format("b_all<{}>({})", width_, scalar(s));
    }

    void accumulate(const Stmt& s) {
        const DType dtype = kernel_.places[s.place].dtype;
        const std::string target = element(s.place, s.at);
        if (s.fused) {
            const std::string a = scalar(s.value->arguments[0]), b = scalar(s.value->arguments[1]);
            out_.line(target + " = b_fma(" + a + ", " + b + ", " + target + ");");
            return;
        }
        const std::string value = scalar(s.value);
        switch (s.combine) {
            case Combine::argmax:
            case Combine::argmin: {
                const std::string there = element(s.number, s.at);
                const std::string position =
                    s.position
                        ? scalar(s.position)
                        : "(" + std::string(c_type(kernel_.places[s.number].dtype)) + ")" + index(s.begin);
                const bool least = s.combine == Combine::argmin;
                const std::string is_better =
                    s.position ? fmt::format("b_comes_first<{}>({}, {}, {}, {})", least, value, position,
                                             target, there)
                               : better_than(least, dtype, value, target, s.none_yet ? there : "");
                return where(is_better, {{target, value}, {there, position}});
            }
            default:
                out_.line(target + " = " + combined(s.combine, dtype, target, value) + ";");
                if (s.out_of_order && !in_simd_) out_.line("B_IN_ORDER(" + target + ");");
        }
    }

    // Where the condition holds, each of the variables gets its value.
    void where(const std::string& condition, const std::vector<std::pair<std::string, std::string>>& values) {
        out_.choose(fresh("better"), condition, values);
    }

    // What the lanes of 16 or 32 threads hold, combined; nobody reads the results of the upper lanes.
    void exchange(const Stmt& s) {
        BITALE_CHECK(cuda_, "lanes that are threads, on a CPU");
        const DType dtype = kernel_.places[s.place].dtype;
        const std::string target = element(s.place, {}), other = fresh("v");
        out_.line(fmt::format("const {} {} = b_other_lane({}, {});", c_type(dtype), other, target, s.step));
        if (s.number >= 0) {
            const std::string there = element(s.number, {}), position = fresh("v"),
                              type = c_type(kernel_.places[s.number].dtype);
            out_.line(fmt::format("const {} {} = b_other_lane({}, {});", type, position, there, s.step));
            const std::string better =
                fmt::format("b_comes_first<{}>({}, {}, {}, {})", s.combine == Combine::argmin, other,
                            position, target, there);
            return where(better, {{target, other}, {there, position}});
        }
        out_.line(target + " = " + combined(s.combine, dtype, target, other) + ";");
    }

    std::string element(int number, const std::vector<Int>& at, const std::vector<Guard>& guards = {}) {
        const Place& p = kernel_.places[number];
        used_.insert(number);
        if (is_variable(p)) return "p" + std::to_string(number);
        for (const auto& [read, text] : pointers_)
            if (read.place == number && read.guards == guards && read.offset == offset_of(p, at)) return text;
        const char* elements = p.scope == Place::Scope::vector ? ".at" : "";
        return fmt::format("p{}{}[{}]", number, elements, index(offset_of(kernel_.places[number], at)));
    }

    std::string scalar(const Scalar& s) {
        if (const auto at = printed_.find(s.get()); at != printed_.end()) return at->second;
        return printed_[s.get()] = expression(s);
    }

    std::string expression(const Scalar& s) {
        const std::string type = c_type(s->dtype);
        switch (s->kind) {
            case ScalarNode::Kind::constant:
                if (const std::optional<std::size_t> parameter = literals_.find(*s)) {
                    used_literals_.insert(*parameter);
                    return "c" + std::to_string(*parameter);
                }
                return literal(s->dtype, s->number, s->integer);
            case ScalarNode::Kind::index:
                return temporary(s->dtype,
                                 cast_call(s->dtype, "(i64)(" + index(s->index) + ")", DType::int64));
            case ScalarNode::Kind::read: {
                std::string text = element(s->operand.place(), s->at, s->guards);
                if (!s->guards.empty())
                    text = "(" + condition(s->guards) + ") ? " + text + " : " + scalar(s->otherwise);
                return temporary(s->dtype, text, !kernel_.places[s->operand.place()].written);
            }
            case ScalarNode::Kind::select: {
                const std::string yes = scalar(s->arguments[0]), no = scalar(s->otherwise);
                return temporary(s->dtype, "(" + condition(s->guards) + ") ? " + yes + " : " + no);
            }
            case ScalarNode::Kind::cast: {
                const Scalar& from = s->arguments[0];
                return temporary(s->dtype, cast_call(s->dtype, scalar(from), from->dtype));
            }
            case ScalarNode::Kind::apply: break;
        }
        std::vector<std::string> arguments;
        for (const Scalar& a : s->arguments) arguments.push_back(scalar(a));
        const std::string text = instantiate(text_of_op(*s), arguments);
        return temporary(s->dtype, is_float(s->dtype) ? text : "(" + type + ")(" + text + ")");
    }

    // A constant for the text, or the one that already holds it in this or an enclosing scope.
    std::string temporary(DType dtype, const std::string& text, bool remember = true) {
        return temporary(std::string(c_type(dtype)), text, remember);
    }

    std::string temporary(const std::string& type, const std::string& text, bool remember = true) {
        for (auto scope = memo_.rbegin(); remember && scope != memo_.rend(); ++scope)
            if (const auto at = scope->find(text); at != scope->end()) return at->second;
        std::string name = fresh("v");
        out_.line("const " + type + " " + name + " = " + text + ";");
        return remember ? memo_.back()[text] = name : name;
    }

    void forget_statement() { printed_.clear(), printed_vectors_.clear(); }
    std::string index(const Int& x) { return indices_.text(x); }
    std::string condition(const std::vector<Guard>& guards) { return indices_.condition(guards); }
    std::string fresh(const char* prefix) { return prefix + std::to_string(next_++); }

    const KernelIR& kernel_;
    bool cuda_;
    int threads_ = 1;  // of a block of this phase
    const ReadingNotes* reading_;
    Literals literals_;
    PrintedKernel result_;
    Writer out_;
    Indices indices_;
    std::vector<std::map<std::string, std::string>> memo_;
    // Parts of the statement being printed, which reads before it writes: one text serves all who share it.
    std::unordered_map<const ScalarNode*, std::string> printed_, printed_vectors_;
    std::vector<std::pair<ApartRead, std::string>> pointers_;  // of the loop being printed
    std::set<int> used_;
    std::set<std::size_t> used_literals_;
    int next_ = 0, width_ = 1, functions_ = 0;
    Int lane_, end_;                          // of the vector registers being printed, width_ of them
    bool in_simd_ = false, settles_ = false;  // each lane adds to its own result; stores passed the caches
    SharedMemory shared_;                     // of the segment
    std::int64_t most_shared_bytes_ = 0;      // of the phase
};

}  // namespace

PrintedKernel print_kernel(const KernelIR& kernel, Dialect dialect, const ReadingNotes* reading) {
    return Printer(kernel, dialect, reading).run();
}

}  // namespace bitale
