// The kernels of whole functions, compiled for arm64 and run under emulation: the same bits as on this
// machine. Needs a cross compiler (g++-aarch64-linux-gnu) and qemu-aarch64 (qemu-user).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "codegen/pipeline.h"
#include "graph/base/options.h"
#include "ops/rules/phases.h"
#include "runtime/cpu/compiler.h"
#include "runtime/state.h"
#include "tests/numerics/workloads.h"
#include "tests/support/catch.h"
#include "tests/support/nets.h"
#include "tests/support/temporary.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

constexpr const char* cross_compiler = "aarch64-linux-gnu-g++";
constexpr const char* emulator = "qemu-aarch64";

bool on_path(const std::string& program) {
    return std::system(("command -v " + program + " > /dev/null 2>&1").c_str()) == 0;
}

// CTest shows a test whose output has this as skipped.
bool skipped() {
    std::string reason;
    if (!std::string(BITALE_SANITIZE).empty()) reason = "sanitizers are not run under emulation";
    for (const char* program : {cross_compiler, emulator})
        if (reason.empty() && !on_path(program)) reason = std::string(program) + " is not on PATH";
    if (reason.empty()) return false;
    std::printf("SKIPPED: %s\n", reason.c_str());
    WARN("SKIPPED: " << reason);
    return true;
}

std::string command_output(const std::string& command, int& status) {
    std::string text;
    FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(pipe);
    char part[4096];
    for (std::size_t n = 0; (n = fread(part, 1, sizeof part, pipe)) > 0;) text.append(part, n);
    status = pclose(pipe);
    return text;
}

// What the device cpu would have on such a machine (runtime/cpu/features.cpp).
Program arm64_program(const Function& f) {
    Graph graph = *f.state().plain;
    optimize(graph);
    Target target;
    target.architecture = "aarch64";
    target.vector_bytes = 16;
    target.vector_registers = 32;
    target.local_bytes = std::int64_t{512} << 10;
    return generate(graph, target);
}

std::int64_t bytes_of_buffer(const BufferInfo& buffer) {
    std::int64_t bytes = bytes_of(buffer.type.dtype);
    for (const Int& extent : buffer.type.shape) bytes *= extent.constant();
    return bytes;
}

std::string constants_of(const std::vector<Int>& list) {
    std::vector<std::int64_t> values;
    for (const Int& x : list) values.push_back(x.constant());
    return fmt::format("{}", fmt::join(values, "ll, "));
}

std::string steps_text(const Region& region, const Program& program) {
    std::string s;
    for (const Step& step : region.steps) {
        if (const auto* copy = std::get_if<CopyStep>(&step.operation)) {
            s += fmt::format("  memcpy(b{}, b{}, {});\n", copy->to, copy->from,
                             bytes_of_buffer(program.buffers[static_cast<std::size_t>(copy->from)]));
            continue;
        }
        const KernelStep& kernel = std::get<KernelStep>(step.operation);
        std::string pointers;
        for (const int b : kernel.launch.buffers) pointers += fmt::format("b{}, ", b);
        const std::vector<Int>& sizes = kernel.launch.sizes;
        s += fmt::format("  {{ void* const p[] = {{{}0}}; const long long s[] = {{{}{}0}};\n", pointers,
                         constants_of(sizes), sizes.empty() ? "" : ", ");
        const KernelText& text = program.kernels[static_cast<std::size_t>(kernel.launch.kernel)];
        for (std::size_t phase = 0; phase < kernel.tasks.size(); ++phase)
            s += fmt::format("    {}(p, s, 0, {});\n", text.entries[phase], kernel.tasks[phase].constant());
        s += "  }\n";
    }
    return s;
}

// A program that reads arguments and constants from its input, runs the steps, and writes the results.
std::string driver_of(const Program& program) {
    std::string s = "#include <stdio.h>\n#include <string.h>\n", read, write;
    for (const KernelText& kernel : program.kernels)
        for (const std::string& entry : kernel.entries)
            s += "extern \"C\" void " + entry + "(void* const*, const long long*, long long, long long);\n";
    std::vector<std::string> inputs(program.inputs.size()), outputs(program.outputs.size()),
        constants(program.constants.size());
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const BufferInfo& buffer = program.buffers[b];
        const std::int64_t bytes = bytes_of_buffer(buffer);
        constexpr std::int64_t readable_past_the_end = 64;
        s += fmt::format("alignas(64) static unsigned char b{}[{}];\n", b, bytes + readable_past_the_end);
        const auto index = static_cast<std::size_t>(buffer.index);
        const std::string in = fmt::format("  if (fread(b{0}, 1, {1}, stdin) != {1}) return 2;\n", b, bytes);
        switch (buffer.kind) {
            case BufferInfo::Kind::input: inputs.at(index) = in; break;
            case BufferInfo::Kind::constant: constants.at(index) = in; break;
            case BufferInfo::Kind::output:
                outputs.at(index) = fmt::format("  fwrite(b{}, 1, {}, stdout);\n", b, bytes);
                break;
            default: REQUIRE(buffer.kind != BufferInfo::Kind::shared);
        }
    }
    s += "int main() {\n";
    for (const auto* list : {&inputs, &constants})
        for (const std::string& line : *list) s += line;
    s += steps_text(program.once, program) + steps_text(program.body, program);
    for (const std::string& line : outputs) {
        REQUIRE(!line.empty());
        s += line;
    }
    return s + "}\n";
}

void write_bytes(std::ofstream& file, const Array& a) {
    file.write(static_cast<const char*>(a.data()), a.bytes());
}

void check(const Workload& w) {
    Options usual = options();
    usual.disabled.insert("onednn");
    const ScopedOptions scope(usual);
    Function f = function(w.inputs, w.outputs, {.name = "arm64", .device = "cpu"});
    const Results expected = f.call(w.values);
    const Program program = arm64_program(f);
    REQUIRE(program.inputs.size() == w.inputs.size());

    const TemporaryFolder folder;
    write_file(folder / "driver.cpp", driver_of(program));
    std::string kernels = program.prelude + "\n";
    for (const KernelText& kernel : program.kernels) kernels += kernel.body + "\n";
    write_file(folder / "kernels.cpp", kernels);
    {
        std::ofstream data(folder / "data", std::ios::binary);
        for (const Array& a : w.values) write_bytes(data, a);
        for (const Array& a : program.constants) write_bytes(data, a);
    }
    // The flags of every kernel, but for this machine's own.
    std::string flags;
    for (const std::string& flag : compile_flags())
        if (!flag.starts_with("-m") && flag != "-shared") flags += flag + " ";
    const std::string program_path = folder / "program";
    int status = 0;
    const std::string said =
        command_output(fmt::format("{0} {1} -static -o {2} {3} {4} 2>&1", cross_compiler, flags, program_path,
                                   folder / "kernels.cpp", folder / "driver.cpp"),
                       status);
    INFO(said.substr(0, 3000));
    REQUIRE(status == 0);
    const std::string results =
        command_output(fmt::format("{} {} < {}", emulator, program_path, folder / "data"), status);
    REQUIRE(status == 0);
    std::size_t at = 0;
    for (std::size_t k = 0; k < expected.size(); ++k) {
        Array got(expected[k].dtype(), expected[k].shape());
        const auto bytes = static_cast<std::size_t>(got.bytes());
        REQUIRE(at + bytes <= results.size());
        std::copy_n(results.data() + at, bytes, static_cast<char*>(got.mutable_data()));
        at += bytes;
        INFO("result " << k << ": " << difference(got, expected[k]));
        CHECK(same(got, expected[k]));
    }
    CHECK(at == results.size());
}

}  // namespace

TEST_CASE("arm64: products, convolutions and gradients") {
    if (!skipped()) check(products());
}

TEST_CASE("arm64: elements, reductions, conversions") {
    if (!skipped()) check(elements());
}
