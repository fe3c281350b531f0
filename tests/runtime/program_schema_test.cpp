// docs/program.schema.json describes program.json as it is written.
#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "bitale/bitale.h"
#include "codegen/pipeline.h"
#include "ops/rules/phases.h"
#include "runtime/cuda/target.h"
#include "runtime/exec/program_io.h"
#include "runtime/state.h"
#include "tests/support/catch.h"
#include "tests/support/json_schema.h"
#include "tests/support/nets.h"
#include "tests/support/temporary.h"

using namespace bitale;
using namespace bitale::test;
using Json = nlohmann::json;

namespace {

const JsonSchema& schema() {
    static const JsonSchema schema(
        Json::parse(text_of_file(std::string(BITALE_SOURCE_DIR) + "/docs/program.schema.json")));
    return schema;
}

Json json_of(const Graph& plain, const Target& target) {
    Graph graph = plain;
    optimize(graph);
    return Json::parse(program_to_json(generate(graph, target)));
}

Target cpu_target() {
    Target target;
    target.architecture = "x86-64-v4";
    target.vector_bytes = 64;
    target.vector_registers = 32;
    target.has_gemm = target.has_gemm_int8 = target.has_lapack = true;
    return target;
}

}  // namespace

TEST_CASE("programs of networks and of every kind of step are of the schema") {
    std::set<std::string> kinds;
    const auto check = [&](const Function& f) {
        Target gpu = cuda::target_of("sm_90");
        gpu.has_gemm = gpu.has_conv = gpu.has_epilogues = true;
        for (const Target& target : {cpu_target(), gpu}) {
            if (target.kind == Target::Kind::cuda && f.name() == "eigh") continue;
            const Json program = json_of(*f.state().plain, target);
            INFO(f.name() << " for " << target.architecture);
            CHECK(schema().fault(program) == "");
            for (const char* region : {"once", "body"})
                for (const Json& step : program.at(region)) kinds.insert(step.at("kind"));
        }
    };
    for (const std::string& name : net_names()) {
        const Net net = make_net(name, options_of(name));
        check(net.step);
        check(net.evaluation);
    }
    const FunctionOptions null{.device = "null", .specialise = false};
    const auto named = [&](const char* name) {
        FunctionOptions options = null;
        options.name = name;
        return options;
    };
    const Expr x = matrix("x"), i = iscalar("i"), t = tensor3("t");
    const Shared table = shared(Array(float32, {50, 3}), "table");
    check(function({x}, {eigh(dot(x, transpose(x))).values}, named("eigh")));
    check(function({x}, {x, sum(x, {1})}, named("copy")));
    check(function({t}, {matmul(t, t)}, named("batches")));
    const Expr bytes = input(uint8, {64, 784}, "bytes"), weights = input(int8, {784, 96}, "weights");
    check(function({bytes, weights}, {dot(bytes, weights)}, named("bytes")));
    FunctionOptions updating = named("clipped slice");
    updating.updates = {{table, table * 0.5F}};
    check(function({i}, {table[Slice{i * 7, (i + 1) * 7}], table[i]}, updating));
    CHECK(kinds == std::set<std::string>{"conv", "copy", "gemm", "kernel", "routine"});
}

TEST_CASE("messages of a program have words for the numbers of a call, and come back") {
    const Expr x = matrix("x"), y = matrix("y"), start = vector("start", int64), n = lscalar("n");
    const Shared table = shared(Array(float32, {50, 3}), "{table}");
    const FunctionOptions null{.device = "null", .specialise = false};
    const Function f = function({x, y, start, n},
                                {dot(x, y), rows(table, start[0], 5), table[Slice{n * 4, n * 4 + 4}]}, null);
    const std::string text = program_to_json(*f.state().program);
    const auto is_mark = [](char c) { return static_cast<unsigned char>(c) < ' ' && c != '\n'; };
    CHECK(std::none_of(text.begin(), text.end(), is_mark));
    CHECK(text.find("\\u000") == std::string::npos);
    const Json program = Json::parse(text);
    CHECK(schema().fault(program) == "");
    const std::string lengths = program.at("length_checks").dump(), checks = program.at("checks").dump();
    CHECK_THAT(lengths,
               ContainsSubstring("has length {found} and axis 0") &&
                   ContainsSubstring("starts at index {found - 1}, but the axis has length {there}"));
    CHECK_THAT(checks, ContainsSubstring("rows {found} to {found + 4} of \\\"{{table}}\\\""));
    const Program back = program_from_json(text);
    const Program& there = *f.state().program;
    REQUIRE(back.length_checks.size() == there.length_checks.size());
    for (std::size_t i = 0; i < back.length_checks.size(); ++i)
        CHECK(back.length_checks[i].message == there.length_checks[i].message);
    REQUIRE(back.checks.size() == there.checks.size());
    for (std::size_t i = 0; i < back.checks.size(); ++i)
        CHECK(back.checks[i].message == there.checks[i].message);
    const std::string report = f.report(Detail::complete);
    CHECK(std::none_of(report.begin(), report.end(), is_mark));
}

TEST_CASE("what is not a program is not of the schema") {
    const Expr x = bitale::vector("x");
    const Function f = function({x}, sum(exp(x)), {.device = "null", .specialise = false});
    const Json program = Json::parse(program_to_json(*f.state().program));
    REQUIRE(schema().fault(program) == "");
    const auto fault_of = [&](const std::function<void(Json&)>& change) {
        Json changed = program;
        change(changed);
        return schema().fault(changed);
    };
    CHECK(fault_of([](Json& p) { p["bitale_program"] = 5; }) == "$.bitale_program is not 6");
    CHECK(fault_of([](Json& p) { p["more"] = 1; }) == "$ has an unknown member more");
    CHECK(fault_of([](Json& p) { p.erase("body"); }) == "$ has no \"body\"");
    CHECK_THAT(fault_of([](Json& p) { p["body"][0].erase("tasks"); }),
               ContainsSubstring("$.body[0] has no \"tasks\""));
    CHECK_THAT(fault_of([](Json& p) { p["body"][0]["kind"] = "sort"; }), ContainsSubstring("$.body[0]"));
    CHECK_THAT(fault_of([](Json& p) { p["inputs"][0]["shape"][0] = Json::array({"+"}); }),
               ContainsSubstring("$.inputs[0].shape[0] has 1 items"));
    CHECK_THAT(fault_of([](Json& p) { p["buffers"][0]["type"]["dtype"] = "float"; }),
               ContainsSubstring("is none of"));
}
